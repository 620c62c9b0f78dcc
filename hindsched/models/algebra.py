"""What Pyomo's objects are called in annotations: Pyomo itself says no types."""

from __future__ import annotations

from typing import Any, TypeAlias

Model: TypeAlias = Any
"""A model, or a block of one: its attributes are what rules put there."""
Variable: TypeAlias = Any
"""Variables of one name, or one of them."""
Expr: TypeAlias = Any
"""What a rule returns and a sum adds up: an expression, a relation, a variable or a number."""
Row: TypeAlias = Any
"""Constraints of one name, or one of them."""
Domain: TypeAlias = Any
"""What values a variable may take."""
ModelComponent: TypeAlias = Any
"""A variable, constraint or objective of a model, or an element of one."""

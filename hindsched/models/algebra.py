"""What the formulations are written in: Pyomo, or the recorder that stands in for it.

A formulation says ``from hindsched.models import algebra as pyo`` and uses it like
``pyomo.environ``. Inside ``with recording()`` its variables and constraints are recorded at once
(`recorder.py`) instead of becoming Pyomo components.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import pyomo.environ as _pyomo
from pyomo.common.gc_manager import PauseGC

from hindsched.json_types import JsonObject

# Pyomo says no types, and what is built may be its object or the recorder's stand-in.
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

paused_gc = PauseGC
"""Inside ``with paused_gc():`` nobody looks for garbage."""
RECORDER: JsonObject = {}
"""What replaces Pyomo's names while recording; filled by `recorder.py`."""
_is_recording: ContextVar[bool] = ContextVar("is_recording", default=False)


@contextmanager
def recording() -> Iterator[None]:
    """Record the formulations that are built inside."""
    token = _is_recording.set(True)
    try:
        with paused_gc():  # nothing is garbage yet, and looking for it takes longer than the rules
            yield
    finally:
        _is_recording.reset(token)


def is_recording() -> bool:
    """Whether formulations are recorded at present."""
    return _is_recording.get()


def value(expression: object, exception: bool = True) -> Any:
    """Value of an expression of either kind."""
    if hasattr(expression, "evaluate"):
        return expression.evaluate()
    return _pyomo.value(expression, exception=exception)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if _is_recording.get() and name in RECORDER:
        return RECORDER[name]
    return getattr(_pyomo, name)

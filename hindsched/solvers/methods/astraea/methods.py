"""Methods of ``solve`` for astraea: the generic ones and the bound for rivals that preempt."""

from __future__ import annotations

from hindsched.solvers.methods.base import Method, preemptive
from hindsched.solvers.methods.generic import generic_methods

METHODS: dict[str, Method] = {**generic_methods(), "preemptive": preemptive}
RIVALS_BOUND = ("preemptive", None)
"""Method and formulation of the bound for rivals that may do what the offline problem forbids."""

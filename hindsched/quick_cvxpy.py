"""CVXPY without scipy's statistics, which take as long to import as all the rest of it.

One of its atoms, for quantum mechanics, reads one function of them: that one is looked for when it
is called. Whoever asks for ``scipy.stats`` gets it as ever.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hindsched.stand_ins import stand_ins

__all__ = ["cp"]


class _Statistics(ModuleType):
    """What stands for ``scipy.stats`` while CVXPY is imported."""

    @staticmethod
    def entropy(*args: Any, **kwargs: Any) -> Any:
        from scipy.stats import entropy

        return entropy(*args, **kwargs)


with stand_ins([_Statistics("scipy.stats")]):
    import cvxpy as cp

"""CVXPY without scipy's statistics, which take as long to import as all the rest of it.

One of its atoms, for quantum mechanics, reads one function of them: that one is looked for when it
is called. Whoever asks for ``scipy.stats`` gets it as ever.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

__all__ = ["cp"]


class _Statistics(ModuleType):
    """What stands for ``scipy.stats`` while CVXPY is imported."""

    @staticmethod
    def entropy(*args: Any, **kwargs: Any) -> Any:
        from scipy.stats import entropy

        return entropy(*args, **kwargs)


_is_first = "cvxpy" not in sys.modules and "scipy.stats" not in sys.modules
if _is_first:
    sys.modules["scipy.stats"] = _Statistics("scipy.stats")
try:
    import cvxpy as cp
finally:
    if _is_first:
        del sys.modules["scipy.stats"]

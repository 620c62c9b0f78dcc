"""CVXPY without scipy's statistics, which take as long to import as all the rest of it.

One of its atoms, for quantum mechanics, reads one function of them: that one is looked for when it
is called. Whoever asks for ``scipy.stats`` gets it as ever.
"""

from __future__ import annotations

import importlib
import sys
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

    def __getattr__(self, name: str) -> Any:
        """Give another thread that imports it meanwhile what the real one has."""
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


with stand_ins([_Statistics("scipy.stats")]):
    import cvxpy as cp

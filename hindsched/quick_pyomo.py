"""Importing Pyomo without most of scipy, which takes longer than all the rest of this package.

Where scipy is there already, and numba brings it, Pyomo imports at once what any of its extensions
might read; nothing here reads the parts below.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from hindsched.stand_ins import stand_ins

UNUSED = ("scipy.stats", "scipy.integrate", "scipy.spatial")
"""What is not imported with Pyomo, but as ever by whoever asks for it."""


def import_quickly() -> None:
    """Import what of Pyomo looks for scipy; where the unused parts are absent they stay so."""
    if "pyomo.common.dependencies" in sys.modules:
        return
    importlib.import_module("scipy.sparse")
    with stand_ins(map(ModuleType, UNUSED)):
        importlib.import_module("pyomo.common.dependencies")

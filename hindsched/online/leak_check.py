"""Everything that can be reached from an object: what an algorithm that is handed it could read."""

from __future__ import annotations

import gc
from array import array
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ReferenceType

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_CODE = (type, ModuleType)
"""Where a walk ends: classes and modules are code, the same in every run."""


def reachable(start: object) -> list[Any]:
    """Values that can be reached: plain ones once for each place, other objects once.

    Attributes, items, closures, default arguments, partial arguments, generators' variables, what
    a method belongs to, weak references and the contents of caches are followed; of a function not
    its module's globals. Every element of an array or buffer counts as one value.
    """
    found: list[Any] = []
    seen: dict[int, Any] = {}  # holds the objects, so that no id is used twice
    waiting = [start]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _PLAIN):
            found.append(item)
        elif not isinstance(item, _CODE) and id(item) not in seen:
            seen[id(item)] = item
            found.append(item)
            waiting += _inside(item)
    return found


def _inside(item: object) -> list[Any]:
    """What one object holds."""
    if isinstance(item, np.ndarray):
        base = [] if item.base is None else [item.base]
        return [*item.ravel().tolist(), *base, *getattr(item, "__dict__", {}).values()]
    if isinstance(item, array | bytearray):
        return list(item)
    if isinstance(item, memoryview):
        return [item.obj]
    if isinstance(item, ReferenceType):
        return [item(), *gc.get_referents(item)]
    if isinstance(item, BuiltinFunctionType):
        return [item.__self__]
    if isinstance(item, FunctionType):
        cells = [cell.cell_contents for cell in item.__closure__ or () if _is_filled(cell)]
        defaults = [*(item.__defaults__ or ()), *(item.__kwdefaults__ or {}).values()]
        return [*cells, *defaults, *vars(item).values()]
    if isinstance(item, MethodType):
        return [item.__self__, item.__func__]
    if isinstance(item, dict):
        return [*item.keys(), *item.values()]
    return gc.get_referents(item)


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True

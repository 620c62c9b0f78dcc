"""Importing a library without parts of another one that nothing here reads of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def stand_ins(modules: Iterable[ModuleType]) -> Iterator[None]:
    """Have modules stand for those of their names that are not imported yet.

    Afterwards whoever asks for one of them gets the real one.

    Parameters
    ----------
    modules : iterable of module
        What whoever asks gets meanwhile.
    """
    absent = {module.__name__: module for module in modules if module.__name__ not in sys.modules}
    sys.modules.update(absent)
    try:
        yield
    finally:
        for name, module in absent.items():
            if sys.modules.get(name) is module:  # no real one has taken its place
                del sys.modules[name]

"""Algorithms of one's own from a Python file, ``path/to/file.py:ClassName``."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from hindsched.errors import InputError
from hindsched.online.protocol import OnlineAlgorithm


def load_class(path: str, name: str) -> type[OnlineAlgorithm]:
    """Load a class from a file, which is run once a process.

    Parameters
    ----------
    path : str
        The file.
    name : str
        The class, which derives from `OnlineAlgorithm`.

    Raises
    ------
    InputError
        If the file cannot be read or run, or has no such class.
    """
    module = _module(Path(path).resolve())
    found = vars(module).get(name)
    if isinstance(found, type) and issubclass(found, OnlineAlgorithm):
        return found
    own = [
        word
        for word, item in vars(module).items()
        if isinstance(item, type)
        and issubclass(item, OnlineAlgorithm)
        and item.__module__ == module.__name__
    ]
    rule = f"must be an OnlineAlgorithm of the file, which has: {', '.join(own) or 'none'}"
    raise InputError(f"algorithm.{path}", name, rule)


def _module(file: Path) -> ModuleType:
    key = f"<{file}>"
    if key in sys.modules:
        return sys.modules[key]
    spec = importlib.util.spec_from_file_location(key, file)
    assert spec is not None, "the name ends in .py"
    assert spec.loader is not None
    module = sys.modules[key] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[key]
        raise InputError(
            "algorithm", file, f"must run as Python: {place_of(error, file)}"
        ) from error
    return module


def place_of(error: BaseException, file: Path) -> str:
    """An exception that arose in a file, with the line."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    line = lines[-1] if lines else getattr(error, "lineno", None)
    text = f"{type(error).__name__}: {error}"
    return text if line is None else f"{text} (line {line})"

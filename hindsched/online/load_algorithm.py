"""Algorithms of one's own from a Python file, ``path/to/file.py:ClassName``."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from hindsched.errors import InputError
from hindsched.online.protocol import OnlineAlgorithm
from hindsched.printable import said_by


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
    except (Exception, SystemExit) as error:
        del sys.modules[key]
        raise InputError(
            "algorithm", file, f"must run as Python: {place_of(error, file)}"
        ) from error
    return module


def place_of(error: BaseException, file: Path) -> str:
    """An exception that arose in a file, with the line."""
    lines = [line for name, line in _frames(error) if name == str(file)]
    line = lines[-1] if lines else getattr(error, "lineno", None)
    text = said_by(error)
    return text if line is None else f"{text} (line {line})"


def place_in_own_file(error: BaseException) -> str | None:
    """File and line of an exception that arose in a file of algorithms; None elsewhere."""
    own = [f"{name}, line {line}" for name, line in _frames(error) if f"<{name}>" in sys.modules]
    return own[-1] if own else None


def _frames(error: BaseException) -> list[tuple[str, int | None]]:
    return [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]

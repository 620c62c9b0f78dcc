"""Finding algorithms by name, and their settings by inspection.

What a family offers stands in `FamilyOnline`.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject, Keywords
from hindsched.online.base import Factory, family_online
from hindsched.online.external import External
from hindsched.online.protocol import OnlineAlgorithm
from hindsched.printable import error_words

EXEC = "exec:"  # what a scheduler in another process is named by: ``exec:python my_scheduler.py``
LONGEST_ESTIMATE = 40
"""Characters of one declared estimate: a longer text or integer could hold the jobs to come."""


def algorithms(family: str) -> dict[str, Factory]:
    """Algorithms of a family by name, the paper's own first.

    Examples
    --------
    >>> import hindsched as hs
    >>> next(iter(hs.algorithms("astraea")))
    'astraea'
    """
    return dict(family_online(family).algorithms)


def estimates_of(instance: Instance, settings: Keywords | None = None) -> JsonObject:
    """Exact values of the estimates that the family's algorithms are told in advance.

    They depend on `settings`, which the algorithm's `estimate_settings` names.
    """
    declared = family_online(instance.family).declared_estimates
    known = [name for name in inspect.signature(declared).parameters if name != "instance"]
    for name, value in (settings or {}).items():
        if name not in known:
            rule = f"estimates of {instance.family} depend on {', '.join(known) or 'nothing'}"
            raise InputError(f"estimate_settings.{name}", value, rule)
    return declared(instance, **(settings or {}))


def check_estimates(estimates: object, where: str = "estimates") -> None:
    """Refuse what is no number or word by name, and could hold data of jobs to come."""
    if not isinstance(estimates, Mapping):
        raise InputError(where, estimates, "must be an object of numbers by name")
    for name, value in estimates.items():
        if isinstance(value, Mapping):
            check_estimates(value, f"{where}.{name}")
        elif not isinstance(name, str) or type(value) not in (int, float, str, bool):
            raise InputError(f"{where}.{name}", type(value).__name__, "must be a number or a word")
        elif len(str(value)) > LONGEST_ESTIMATE:
            rule = f"must have at most {LONGEST_ESTIMATE} characters"
            raise InputError(f"{where}.{name}", f"{str(value)[:20]}...", rule)


def find_algorithm(family: str, name: str) -> Factory:
    """Find what builds an algorithm; `InputError` for an unknown name or a file without it.

    The name is registered; ``exec:command``, a scheduler in another process (`External`); or
    ``path/to/file.py:ClassName``, a class of one's own.
    """
    if name.startswith(EXEC):
        return partial(External, name.removeprefix(EXEC))
    path, separator, class_name = name.rpartition(".py:")
    if separator:
        return load_class(f"{path}.py", class_name)
    known = algorithms(family)
    if name not in known:
        rule = f"must be one of {', '.join(known)}, FILE.py:CLASS or {EXEC}COMMAND"
        raise InputError("algorithm", name, rule)
    return known[name]


def is_registered_name(name: str) -> bool:
    """Whether a name is meant as a family's own, and not a command or a file's class."""
    return not name.startswith(EXEC) and ".py:" not in name


def name_of(algorithm: OnlineAlgorithm) -> str:
    """Name of an algorithm that is given as an object: its class and what it was set to."""
    if isinstance(algorithm, External):
        return repr(algorithm)
    changed = [
        f"{name}={getattr(algorithm, name)!r}"
        for name, parameter in settings_of(type(algorithm)).items()
        if hasattr(algorithm, name) and getattr(algorithm, name) != parameter.default
    ]
    return type(algorithm).__name__ + (f"({', '.join(changed)})" if changed else "")


def settings_of(factory: Factory) -> dict[str, inspect.Parameter]:
    """Settings that an algorithm takes, by name."""
    return {
        name: parameter
        for name, parameter in inspect.signature(factory).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def build_algorithm(family: str, name: str, settings: Keywords | None = None) -> OnlineAlgorithm:
    """Build an algorithm by its name, as for `find_algorithm`."""
    return build_from(find_algorithm(family, name), name, settings)


def build_from(factory: Factory, name: str, settings: Keywords | None = None) -> OnlineAlgorithm:
    """Build an algorithm from its settings, of which text is converted to the setting's type."""
    parameters = settings_of(factory)
    target = getattr(factory, "func", factory)
    target = target.__init__ if inspect.isclass(target) else target
    hints = get_type_hints(target, include_extras=True)
    values: JsonObject = {}
    for key, value in (settings or {}).items():
        if key not in parameters:
            allowed = ", ".join(parameters) or "none"
            raise InputError(f"set.{key}", value, f"{name} has the settings: {allowed}")
        values[key] = _convert(f"set.{key}", value, hints.get(key, Any))
    return factory(**values)


def _convert(where: str, value: Any, hint: Any) -> Any:
    """Convert a value to its type; text may be JSON of a list or an object."""
    adapter = TypeAdapter(hint)
    try:
        if isinstance(value, str) and value[:1] in "{[":
            return adapter.validate_json(value)
        return adapter.validate_python(value)
    except ValidationError as error:
        raise InputError(where, value, error.errors()[0]["msg"].lower()) from None


def load_class(path: str, name: str) -> type[OnlineAlgorithm]:
    """Load an `OnlineAlgorithm` from a file, which is run once a process."""
    module = _module(Path(path).resolve())
    known = {
        word: item for word, item in vars(module).items()
        if isinstance(item, type) and issubclass(item, OnlineAlgorithm)
    }  # fmt: skip
    if name in known:
        return known[name]
    offered = [word for word, item in known.items() if item.__module__ == module.__name__]
    rule = f"must be an OnlineAlgorithm of the file, which has: {', '.join(offered) or 'none'}"
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
        lines = [line for name, line in _frames(error) if name == str(file)]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        text = error_words(error) + ("" if line is None else f" (line {line})")
        raise InputError("algorithm", file, f"must run as Python: {text}") from error
    return module


def place_in_user_file(error: BaseException) -> str | None:
    """File and line of an exception that arose in a file of algorithms; None elsewhere."""
    lines = [f"{name}, line {line}" for name, line in _frames(error) if f"<{name}>" in sys.modules]
    return lines[-1] if lines else None


def _frames(error: BaseException) -> list[tuple[str, int | None]]:
    return [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]

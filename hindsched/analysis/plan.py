"""Which tasks a comparison consists of; what is wrong with it is said before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from hindsched.analysis.tasks import OFFLINE, ONLINE, Task, file_name
from hindsched.errors import InputError
from hindsched.instances.base import Instance, whole_number
from hindsched.json_types import JsonObject, Keywords
from hindsched.online.protocol import OnlineAlgorithm
from hindsched.online.registry import (
    Factory,
    algorithms,
    build_from,
    find_algorithm,
    is_registered_name,
    name_of,
    settings_of,
)
from hindsched.solvers.door.options import SolveOptions

DEFAULT_SEEDS = 5

Contender = str | type[OnlineAlgorithm] | OnlineAlgorithm
"""An algorithm to compare: a name (see `find_algorithm`), a class or an object of one's own."""


def plan_tasks(
    instances: Sequence[Instance],
    contenders: Sequence[Contender] | None = None,
    *,
    seeds: int = DEFAULT_SEEDS,
    first_seed: int = 0,
    settings: Keywords | None = None,
    offline: Keywords | None = None,
) -> list[Task]:
    """List the tasks of a comparison: offline solves first, because they take longest.

    Parameters
    ----------
    instances : sequence of Instance
        What to compare on; names must be unique.
    contenders : sequence of str, class or OnlineAlgorithm, optional
        Algorithms; None for all of each instance's family. With several families a registered
        algorithm is run where its family has it, one's own everywhere.
    seeds : int
        Number of seeds of each randomised algorithm; the others run once.
    first_seed : int
        The first seed.
    settings : mapping, optional
        Settings, each handed to every algorithm that has it.
    offline : mapping, optional
        Method and options of the offline solves.

    Raises
    ------
    InputError
        For an unknown algorithm, setting, method or option, or an instance or own algorithm whose
        name stands twice.
    """
    seeds, first_seed = whole_number("seeds", seeds, 1), whole_number("seed", first_seed, 0)
    if not instances:
        raise InputError("instances", "(none)", "at least one instance is needed")
    _check_instance_names(instances)
    families = list(dict.fromkeys(instance.family for instance in instances))
    _check_offline(families, offline or {})
    chosen = {family: _chosen(family, contenders) for family in families}
    _check_contenders(contenders, chosen)
    _check_settings(settings or {}, [name for names in chosen.items() for name in _named(*names)])
    solves: list[Task] = []
    runs: list[Task] = []
    for instance in instances:
        has_rivals = False
        for contender in chosen[instance.family]:
            label, own, built = _built(instance.family, contender, settings or {})
            held = None if isinstance(contender, str) else contender
            has_rivals |= built.relaxes(instance.check_formulation(None))
            for seed in range(first_seed, first_seed + (seeds if built.randomised else 1)):
                runs.append(Task(ONLINE, instance.name, label, seed, own, held))
        asked = dict(offline or {})
        solves.append(Task(OFFLINE, instance.name, settings=asked, has_rivals=has_rivals))
    return solves + runs


Value = TypeVar("Value")


def own_settings(
    family: str, contender: str | type[OnlineAlgorithm], settings: Mapping[str, Value]
) -> dict[str, Value]:
    """The settings that this algorithm has."""
    known = settings_of(_factory(family, contender))
    return {key: value for key, value in settings.items() if key in known}


def _built(
    family: str, contender: Contender, settings: Keywords
) -> tuple[str, JsonObject, OnlineAlgorithm]:
    """Its label, its settings and the algorithm; settings are checked by building it."""
    if isinstance(contender, OnlineAlgorithm):
        return name_of(contender), {}, contender
    own = own_settings(family, contender, settings)
    label = contender if isinstance(contender, str) else contender.__name__
    return label, own, build_from(_factory(family, contender), label, own)


def _factory(family: str, contender: str | type[OnlineAlgorithm]) -> Factory:
    return find_algorithm(family, contender) if isinstance(contender, str) else contender


def _chosen(family: str, contenders: Sequence[Contender] | None) -> list[Contender]:
    """Contenders that run on a family's instances, each name once."""
    known = algorithms(family)
    if contenders is None:
        return list(known)
    for item in contenders:
        is_class = isinstance(item, type) and issubclass(item, OnlineAlgorithm)
        if not (isinstance(item, str | OnlineAlgorithm) or is_class):
            rule = "must be a name, or a class or object of an OnlineAlgorithm"
            raise InputError("algorithm", type(item).__name__, rule)
    named = dict.fromkeys(item for item in contenders if isinstance(item, str))
    own = [item for item in contenders if not isinstance(item, str)]
    return [*(name for name in named if name in known or not is_registered_name(name)), *own]


def _named(family: str, contenders: Iterable[Contender]) -> Iterable[str]:
    """Names of the settings that contenders have."""
    for contender in contenders:
        if not isinstance(contender, OnlineAlgorithm):
            yield from settings_of(_factory(family, contender))


def _check_instance_names(instances: Sequence[Instance]) -> None:
    seen: set[str] = set()
    for instance in instances:
        name = file_name(instance.name)
        if name in seen:
            raise InputError("instances", instance.name, "names must be unique as file names")
        seen.add(name)


def _check_offline(families: Sequence[str], offline: Keywords) -> None:
    from hindsched.solvers.door.api import methods

    options = dict(offline)
    method = options.pop("method", "auto")
    SolveOptions.of(options)
    for family in families:
        known = methods(family)
        if method not in known:
            raise InputError("method", method, f"must be one of {', '.join(known)}")


def _check_contenders(
    contenders: Sequence[Contender] | None, chosen: Mapping[str, Sequence[Contender]]
) -> None:
    for name in contenders or ():
        if isinstance(name, str) and not any(name in found for found in chosen.values()):
            known = dict.fromkeys(word for family in chosen for word in algorithms(family))
            raise InputError("algorithm", name, f"must be one of {', '.join(known)}")
    labels = [
        name_of(item) if isinstance(item, OnlineAlgorithm) else item.__name__
        for item in contenders or ()
        if not isinstance(item, str)
    ]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError("algorithm", label, "stands twice: objects differ by their settings")


def _check_settings(settings: Keywords, known: Sequence[str]) -> None:
    for key, value in settings.items():
        if key not in known:
            allowed = ", ".join(dict.fromkeys(known)) or "none"
            raise InputError(f"set.{key}", value, f"the algorithms have the settings: {allowed}")

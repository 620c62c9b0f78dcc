"""Rules that every online algorithm must keep, as functions that raise when one is broken.

They run over every registered algorithm in the tests, and over yours: ``check_algorithm(instance,
YourAlgorithm)``; a class (or function), so that every run begins with a fresh one.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hindsched.errors import HindschedError
from hindsched.instances.base import Instance, JobRecord, canonical_json
from hindsched.json_types import Keywords
from hindsched.online.base import Factory, build_state
from hindsched.online.protocol import Decision, Environment, Estimates, OnlineAlgorithm
from hindsched.online.registry import build_algorithm, estimates_of
from hindsched.online.simulator import SimulationResult, environment_of, simulate

Algorithm = str | Factory
"""A registered name, or a class or function that builds an algorithm from its settings."""


class BrokenRuleError(HindschedError, AssertionError):
    """An online algorithm that does what none may do."""


class Stopped(Exception):
    """Ends a run whose later slots nobody needs."""


@dataclass(frozen=True)
class Transcript:
    """A run and what the algorithm decided in each slot in which it was asked."""

    instance: Instance
    algorithm: Algorithm
    settings: Keywords | None
    result: SimulationResult | None  # None if it was stopped early
    decisions: tuple[tuple[int, str], ...]  # slot and canonical text

    def until(self, slot: int) -> tuple[tuple[int, str], ...]:
        """Decisions up to and in a slot."""
        return tuple(decision for decision in self.decisions if decision[0] <= slot)

    def __str__(self) -> str:
        name = self.algorithm
        return name if isinstance(name, str) else getattr(name, "__name__", "it")


class _Watched(OnlineAlgorithm):
    """An algorithm whose decisions are written down and whose view is guarded."""

    def __init__(self, algorithm: OnlineAlgorithm, last_slot: int | None) -> None:
        self.algorithm, self.last_slot = algorithm, last_slot
        self.decisions: list[tuple[int, str]] = []
        self._jobs: tuple[JobRecord, ...] = ()
        public = set(vars(OnlineAlgorithm)) - {"start", "step"}
        for name in (name for name in public if not name.startswith("_")):  # all else is its own
            setattr(self, name, getattr(algorithm, name))

    def start(self, environment: Environment) -> None:
        """Start the algorithm and remember what it was told."""
        self._environment = environment
        self._jobs = ()
        before = self._view()
        self.algorithm.start(environment)
        self._check_view(before, "start")

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Let the algorithm decide; `BrokenRuleError` if it changes what it was shown."""
        if self.last_slot is not None and slot > self.last_slot:
            raise Stopped
        self._jobs += arrivals
        before = self._view()
        decision = self.algorithm.step(slot, arrivals)
        self._check_view(before, f"slot {slot}")
        self.decisions.append((slot, _decision_text(decision)))
        return copy.deepcopy(decision)

    def _view(self) -> tuple[str, str, list[str]]:
        jobs = [canonical_json(job.model_dump(mode="json")) for job in self._jobs]
        cluster = canonical_json(self._environment.cluster.to_dict())
        return cluster, repr(sorted(self._environment.estimates.items())), jobs

    def _check_view(self, before: object, when: str) -> None:
        if self._view() != before:
            raise BrokenRuleError(f"{type(self.algorithm).__name__} changed its view in {when}")


def run_watched(
    instance: Instance, algorithm: Algorithm, *, seed: int = 0, settings: Keywords | None = None,
    estimates: Estimates | None = None, last_slot: int | None = None,
) -> Transcript:  # fmt: skip
    """Run an algorithm, which may not change its view, and write down its decisions."""
    watched = _Watched(_built(instance, algorithm, settings), last_slot)
    result = None
    with suppress(Stopped):
        result = simulate(instance, watched, seed=seed, estimates=estimates)
    return Transcript(instance, algorithm, settings, result, tuple(watched.decisions))


def check_repeatable(run: Transcript) -> None:
    """The same seed gives the same decisions; without randomness any seed does."""
    randomised = _built(run.instance, run.algorithm, run.settings).randomised
    seed = 0 if randomised else 1
    again = run_watched(run.instance, run.algorithm, seed=seed, settings=run.settings)
    if run.decisions != again.decisions:
        slot = _first_difference(run.decisions, again.decisions)
        what = "the same seed" if randomised else "another seed, though not randomised,"
        raise BrokenRuleError(f"{run}: {what} gives another decision in slot {slot}")


def check_feasible(run: Transcript) -> None:
    """The simulator accepted every decision, and the kernel finds nothing broken."""
    result = run.result
    if result is not None and result.in_feasible_set and result.violations:
        raise BrokenRuleError(f"{run} breaks {result.violations[0]}")


def check_no_peeking(run: Transcript, slot: int, future: Sequence[JobRecord]) -> None:
    """Other jobs after a slot leave every decision up to it unchanged, but for the clairvoyant.

    Jobs revealed after `slot` are replaced by `future`; horizon and estimates stay the original's.
    """
    instance, built = run.instance, _built(run.instance, run.algorithm, run.settings)
    if built.card.clairvoyant:
        return
    reveal = reveal_slots(instance)
    past = tuple(job for job in instance.jobs if reveal[job.name] <= slot)
    changed = run_watched(
        instance.with_jobs((*past, *future)), run.algorithm, settings=run.settings,
        estimates=estimates_of(instance, built.estimate_settings()), last_slot=slot,
    )  # fmt: skip
    if run.until(slot) != changed.until(slot):
        where = _first_difference(run.until(slot), changed.until(slot))
        raise BrokenRuleError(f"{run} peeks: jobs after slot {slot} change slot {where}")


def check_environment(instance: Instance) -> None:
    """What an algorithm is told before the first slot holds nothing of any job.

    It is plain data, names no job, and with every job twice is not one value longer. With one job
    alone, or a longer horizon, the estimates have the same names, but for those of the cluster.
    """
    family, jobs = instance.family, instance.jobs
    pickled = _plain_data(instance)
    names = {job.name for job in jobs}
    hidden = next((name for name in sorted(names) if name.encode() in pickled), None)
    renamed = [job.model_copy(update={"name": f"another {job.name}"}) for job in jobs]
    twice = _plain_data(instance.with_jobs((*jobs, *renamed)))
    if len(twice) != len(pickled):
        raise BrokenRuleError(
            f"the environment of {family} grows with the jobs: from {len(pickled)} to "
            f"{len(twice)} bytes when there are twice as many"
        )
    cluster = environment_of(instance, {}).cluster
    words = canonical_json(cluster.to_dict())
    if hidden is not None and f'"{hidden}"' not in words:
        raise BrokenRuleError(f"the environment of {family} holds job {hidden}")
    estimate_names = _names_of(estimates_of(instance))
    alone = [instance.with_jobs((job,)) for job in (*jobs[:1], *jobs[-1:])]
    for fewer in (*alone, instance.with_fields(horizon=2 * instance.horizon)):
        for path in sorted(estimate_names ^ _names_of(estimates_of(fewer))):
            if f'"{path[-1]}"' not in words:
                raise BrokenRuleError(
                    f"the estimates of {family} depend on the jobs or slots: {'.'.join(path)}"
                )


def _plain_data(instance: Instance) -> bytes:
    """All that leads from an environment anywhere, pickled."""
    environment = environment_of(instance, estimates_of(instance))
    try:
        return pickle.dumps((environment.cluster, vars(environment.cluster), environment.estimates))
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise BrokenRuleError(
            f"the environment of {instance.family} is no plain data: {error}"
        ) from None


def other_futures(instance: Instance, slot: int) -> list[list[JobRecord]]:
    """Replacements of the jobs revealed after a slot: none, half of them renamed, twice each."""
    reveal = reveal_slots(instance)
    future = [job for job in instance.jobs if reveal[job.name] > slot]
    renamed = [job.model_copy(update={"name": f"other {job.name}"}) for job in future]
    return [[], renamed[len(renamed) // 2 :], [*future, *renamed]]


def cuts(instance: Instance, count: int = 3) -> list[int]:
    """Slots after which to change the future: spread over the slots in which jobs arrive."""
    slots = sorted(set(reveal_slots(instance).values()))[:-1]
    if len(slots) <= count:
        return slots
    return [slots[index * (len(slots) - 1) // (count - 1)] for index in range(count)]


def check_algorithm(
    instance: Instance, algorithm: Algorithm, settings: Keywords | None = None
) -> None:
    """Run every check of this file; `BrokenRuleError` or `Refused` names the first that fails.

    Parameters
    ----------
    instance : Instance
        What it runs on.
    algorithm : str or callable
        A registered name, or a class or function that builds the algorithm from its settings.
    settings : mapping, optional
        Settings of the algorithm.
    """
    check_environment(instance)
    run = run_watched(instance, algorithm, settings=settings)
    check_feasible(run)
    check_repeatable(run)
    for slot in cuts(instance):
        for future in other_futures(instance, slot):
            check_no_peeking(run, slot, future)


def reveal_slots(instance: Instance) -> dict[str, int]:
    """Slot in whose step each job is told to the algorithm, by name."""
    environment = environment_of(instance, {})
    return build_state(instance, environment).revealed


def _built(instance: Instance, algorithm: Algorithm, settings: Keywords | None) -> OnlineAlgorithm:
    if isinstance(algorithm, str):
        return build_algorithm(instance.family, algorithm, settings)
    return algorithm(**(settings or {}))


def _names_of(estimates: Estimates) -> set[tuple[str, ...]]:
    """Where estimates stand: the names on the way to each."""
    names: set[tuple[str, ...]] = set()
    for name, value in estimates.items():
        below = _names_of(value) if isinstance(value, Mapping) else {()}
        names |= {(name, *rest) for rest in below}
    return names


def _decision_text(decision: Decision) -> str:
    rows = {job: [dict(row) for row in given] for job, given in decision.assignments.items()}
    data = {
        "assignments": {job: given for job, given in rows.items() if given},
        "admitted": list(decision.admitted),
        "rejected": list(decision.rejected),
    }
    return json.dumps(data, sort_keys=True, default=lambda number: number.item())


def _first_difference(first: Sequence[tuple[int, str]], second: Sequence[tuple[int, str]]) -> int:
    """First slot in which two runs differ, by decision or by being asked at all."""
    return min(slot for slot, _ in set(first) ^ set(second))

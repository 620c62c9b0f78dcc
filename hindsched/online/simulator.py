"""The simulator: it owns the truth, applies decisions and times the algorithm apart from itself."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance, family_module, has_module
from hindsched.online.decision_check import DecisionCheck
from hindsched.online.protocol import Environment, OnlineAlgorithm
from hindsched.online.registry import (
    NOT_SIMULATED,
    build_algorithm,
    check_estimates,
    declared_estimates,
    name_of,
)
from hindsched.solutions.base import Solution

SLOTS_WITHOUT_PROGRESS = 100_000
"""After the last arrival an algorithm that leaves work undone this long is stopped as stuck."""


def environment_of(
    instance: Instance,
    estimates: Mapping[str, Any],
    seed: int = 0,
    formulation: str | None = None,
    *,
    in_feasible_set: bool = True,
) -> Environment:
    """What an algorithm is told of an instance before the first slot.

    Neither jobs nor what could lead to them: the cluster has no name and no provenance (generator
    and seed), and the estimates are numbers by name.

    Raises
    ------
    InputError
        If the estimates hold anything but numbers and words by name.
    """
    check_estimates(estimates)
    cluster = instance.with_fields(jobs=(), name="cluster", provenance=None)
    formulation = instance.check_formulation(formulation)
    return Environment(cluster, estimates, seed, formulation, in_feasible_set)


@dataclass(frozen=True)
class SimulationResult:
    """One online run.

    Parameters
    ----------
    instance : Instance
        What was simulated.
    algorithm : str
        Name of the algorithm.
    settings : dict
        Its settings as given.
    seed : int
        The seed.
    solution : Solution
        The decisions, checked: `violations` lists what is broken (empty for algorithms inside the
        feasible set).
    in_feasible_set : bool
        False if the algorithm may do what the offline problem forbids.
    rejected : tuple of str
        Jobs the algorithm refused.
    decision_ms : tuple of float
        Milliseconds of each step that had arrivals, divided by the number of arrivals.
    seconds : float
        Time spent inside the algorithm.
    simulator_seconds : float
        Time spent outside it.
    report : dict
        Further facts of the algorithm.
    prices : dict, optional
        The algorithm's own final prices by row set.
    price_path : sequence of dict
        Its posted prices by slot, rows ``slot, resource, price``.
    mark : str
        What stands behind the algorithm's name in tables if it knows more than others do.
    """

    instance: Instance
    algorithm: str
    settings: Mapping[str, Any]
    seed: int
    solution: Solution
    in_feasible_set: bool
    rejected: tuple[str, ...]
    decision_ms: tuple[float, ...]
    seconds: float
    simulator_seconds: float
    report: Mapping[str, Any] = field(default_factory=dict)
    prices: Mapping[str, Any] | None = None
    price_path: Sequence[Mapping[str, Any]] = ()
    mark: str = ""

    def __repr__(self) -> str:
        rejected = f"{len(self.rejected)} of {len(self.instance.jobs)} jobs rejected"
        return (
            f"<{self.algorithm} on {self.instance.name!r}, seed {self.seed}: objective "
            f"{self.objective:.6g}, {rejected}>"
        )

    @property
    def objective(self) -> float:
        """Objective recomputed from the decisions."""
        return self.solution.objective()

    @property
    def violations(self) -> list[str]:
        """Broken constraints, as text."""
        return [str(violation) for violation in self.solution.violations()]

    def to_dict(self) -> dict[str, Any]:
        """The object that ``simulate --json`` prints."""
        completed = sum(
            self.solution.completion(job.name) is not None for job in self.instance.jobs
        )
        return {
            "family": self.instance.family,
            "instance": self.instance.name,
            "algorithm": self.algorithm,
            "settings": dict(self.settings),
            "seed": self.seed,
            "objective": self.objective,
            "jobs_completed": completed,
            "jobs_rejected": len(self.rejected),
            "violations": self.violations,
            "in_feasible_set": self.in_feasible_set,
            "mark": self.mark,
            "decision_ms_median": median(self.decision_ms) if self.decision_ms else None,
            "decision_ms_max": max(self.decision_ms, default=None),
            "seconds": self.seconds,
            "simulator_seconds": self.simulator_seconds,
            "report": dict(self.report),
        }


def simulate(
    instance: Instance,
    algorithm: str | OnlineAlgorithm,
    *,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    engine: str | None = None,
    formulation: str | None = None,
    estimates: Mapping[str, Any] | None = None,
    on_slot: Callable[[int, int], None] | None = None,
) -> SimulationResult:
    """Run an online algorithm on an instance.

    Parameters
    ----------
    instance : Instance
        The instance.
    algorithm : str or OnlineAlgorithm
        A name known to ``hindsched list algorithms``, ``path/to/file.py:ClassName``,
        ``exec:command`` (see `External`), or an algorithm.
    seed : int
        Seed of a randomised algorithm.
    settings : mapping, optional
        Settings of a named algorithm.
    engine : str, optional
        ``oracle`` or ``model``: who computes best responses, for algorithms that have the choice.
    formulation : str, optional
        Which of the family's problems; None for the default.
    estimates : mapping, optional
        Declared estimates in place of the exact ones computed from the instance.
    on_slot : callable, optional
        Called with (slot, horizon) after each slot, for progress.

    Raises
    ------
    Refused
        If a decision breaks a constraint or revokes an earlier one.
    InputError
        For an unknown algorithm or setting, or a seed that is none.

    Notes
    -----
    The algorithm gets copies of the cluster, the estimates and the jobs, and its rows are copied
    before they count: nothing it does to an object that it was shown, or keeps, changes the run.
    Algorithms share the process with the truth; one that searches the memory of the process for
    the future is found by ``checks.check_no_peeking``, not here. A scheduler in another process
    (`External`) sees its messages and nothing else.
    """
    if type(seed) is not int or seed < 0:
        raise InputError("seed", seed, "must be an integer of at least 0")
    if not has_module("online", instance.family, "dynamics"):
        raise InputError("family", instance.family, NOT_SIMULATED)
    settings = dict(settings or {})
    if engine is not None:
        settings["engine"] = engine
    name = algorithm if isinstance(algorithm, str) else name_of(algorithm)
    if isinstance(algorithm, str):
        algorithm = build_algorithm(instance.family, algorithm, settings)
    formulation = instance.check_formulation(formulation)
    if estimates is None:
        estimates = declared_estimates(instance, algorithm.estimate_settings())
    environment = environment_of(
        instance, estimates, seed, formulation, in_feasible_set=algorithm.feasible_set
    )
    with closing(algorithm):
        return _run(instance, algorithm, environment, name, settings, on_slot)


def _run(
    instance: Instance,
    algorithm: OnlineAlgorithm,
    environment: Environment,
    name: str,
    settings: Mapping[str, Any],
    on_slot: Callable[[int, int], None] | None,
) -> SimulationResult:
    """Play all slots: what arrives is shown, what is decided is checked and applied."""
    clock = time.perf_counter
    begin = clock()
    truth = family_module("online", instance.family, "dynamics").Truth(instance, environment)
    check = DecisionCheck(truth)
    arrivals: dict[int, list[Any]] = {}
    for job in instance.jobs:
        arrivals.setdefault(truth.reveal_slot(job), []).append(job)
    last_arrival = max(arrivals, default=0)
    last_slot = max(instance.horizon, last_arrival)

    started = clock()
    algorithm.start(copy.deepcopy(environment))
    inside = clock() - started
    decision_ms: list[float] = []
    slot = 0
    while slot < last_slot or not truth.is_over(slot):
        slot += 1
        if slot > last_slot + SLOTS_WITHOUT_PROGRESS:
            raise SolveFailed(f"{name} left jobs unfinished for {SLOTS_WITHOUT_PROGRESS} slots")
        now = tuple(job.model_copy(deep=True) for job in arrivals.get(slot, ()))
        started = clock()
        decision = algorithm.step(slot, now)
        spent = clock() - started
        inside += spent
        if now:
            decision_ms += [1000 * spent / len(now)] * len(now)
        truth.apply(slot, check.take_over(slot, decision))
        if on_slot is not None:
            on_slot(slot, last_slot)

    return SimulationResult(
        instance=instance,
        algorithm=name,
        settings=settings,
        seed=environment.seed,
        solution=truth.solution(),
        in_feasible_set=environment.in_feasible_set,
        rejected=tuple(check.rejected),
        decision_ms=tuple(decision_ms),
        seconds=inside,
        simulator_seconds=clock() - begin - inside,
        report={**algorithm.report(), **truth.report()},
        prices=algorithm.prices(),
        price_path=tuple(algorithm.price_path()),
        mark=algorithm.card.mark,
    )

"""The simulator: it keeps the order of time, times the algorithm, and has the run judged."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from reprlib import repr as shortened
from statistics import median
from typing import TYPE_CHECKING, Any

from hindsched.errors import InputError, Refused, SolveFailed, check_type
from hindsched.instances.base import Instance, JobRecord, check_instance
from hindsched.json_types import JsonObject, Keywords
from hindsched.limits import check_count, check_time
from hindsched.online import registry
from hindsched.online.base import build_state
from hindsched.online.protocol import Environment, Estimates, OnlineAlgorithm
from hindsched.solutions.base import Solution
from hindsched.solvers.compiling import compile_first
from hindsched.solvers.door.work import caught, interruption

if TYPE_CHECKING:
    from hindsched.solvers.oracles.rows import PriceRow

STEPS_WITHOUT_PROGRESS, SHARE_WITHOUT_PROGRESS = 100_000, 0.9
"""After the last arrival an algorithm is stopped as stuck that leaves work undone so often while
nothing runs, and in so large a share of all steps: some wait twice as long each time."""
FEW_JOBS = 3  # jobs of the runs that compile kernels; more would only be played


def environment_of(
    instance: Instance, estimates: Estimates, seed: int = 0, formulation: str | None = None, *,
    in_feasible_set: bool = True,
) -> Environment:  # fmt: skip
    """What an algorithm is told of an instance before the first slot.

    Neither jobs nor what could lead to them: the cluster has no name and no provenance (generator
    and seed), and estimates that are not numbers or words by name are an `InputError`.
    """
    registry.check_estimates(estimates)
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
    settings: Keywords
    seed: int
    solution: Solution
    in_feasible_set: bool
    rejected: tuple[str, ...]
    decision_ms: tuple[float, ...]
    seconds: float
    simulator_seconds: float
    report: Mapping[str, Any] = field(default_factory=dict)
    prices: Mapping[str, object] | None = None
    price_path: Sequence[PriceRow] = ()
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

    def to_dict(self) -> JsonObject:
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
    instance: Instance, algorithm: str | OnlineAlgorithm, *, seed: int = 0,
    settings: Keywords | None = None, engine: str | None = None, formulation: str | None = None,
    estimates: Estimates | None = None, on_slot: Callable[[int, int], None] | None = None,
) -> SimulationResult:  # fmt: skip
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
    KeyboardInterrupt
        On Ctrl-C, also where it ended a solve of the algorithm, which decided by what it had.

    Notes
    -----
    The algorithm gets copies of the cluster, the estimates and the jobs, and its rows are copied
    before they count: nothing it does to an object that it was shown, or keeps, changes the run.
    Algorithms share the process with all jobs; one that searches the memory of the process for
    the future is found by ``checks.check_no_peeking``, not here. A scheduler in another process
    (`External`) sees its messages and nothing else.

    Examples
    --------
    >>> import hindsched as hs
    >>> run = hs.simulate(hs.generate("oasis", seed=2), "oasis")
    >>> run.algorithm, run.violations
    ('oasis', [])
    """
    if type(seed) is not int or seed < 0:
        raise InputError("seed", seed, "must be an integer of at least 0")
    check_instance(instance)
    check_type("algorithm", algorithm, (str, OnlineAlgorithm), "a name or an OnlineAlgorithm")
    settings = dict(settings or {})
    if engine is not None:
        settings["engine"] = engine
    name = algorithm if isinstance(algorithm, str) else registry.name_of(algorithm)
    if isinstance(algorithm, str):
        algorithm = registry.build_algorithm(instance.family, algorithm, settings)
    formulation = instance.check_formulation(formulation)
    if estimates is None:
        estimates = registry.estimates_of(instance, algorithm.estimate_settings())
    in_feasible_set = not algorithm.relaxes(formulation)
    environment = environment_of(
        instance, estimates, seed, formulation, in_feasible_set=in_feasible_set
    )
    family = instance.family
    if name in registry.algorithms(family):  # its kernels compile before a decision is timed
        compile_first(f"{family} {name}", lambda tiny: simulate(tiny, name), family, jobs=FEW_JOBS)
    with closing(algorithm):
        return _run_slots(
            instance, algorithm, environment=environment, name=name, settings=settings,
            on_slot=on_slot,
        )  # fmt: skip


def _run_slots(
    instance: Instance, algorithm: OnlineAlgorithm, *, environment: Environment, name: str,
    settings: Keywords, on_slot: Callable[[int, int], None] | None,
) -> SimulationResult:  # fmt: skip
    """Play all slots, or events: what arrives is shown, what is decided is applied."""
    clock = time.perf_counter
    begin, heard = clock(), caught()
    state = build_state(instance, environment)
    check_count(f"a run on {instance.name}", state.slots_to_play, "slots")
    arrivals: dict[int, list[JobRecord]] = {}
    for job in instance.jobs:
        arrivals.setdefault(state.revealed[job.name], []).append(job)
    to_come = sorted(arrivals, reverse=True)
    last_slot = state.last_slot

    capabilities = algorithm.card  # what it says before it starts holds for the whole run
    started = clock()
    algorithm.start(copy.deepcopy(environment))
    if capabilities.clairvoyant:
        algorithm.foresee(tuple(job.model_copy(deep=True) for job in instance.jobs))
    inside = clock() - started
    decision_ms: list[float] = []
    slot = steps = idle = after = 0
    while slot < last_slot or not state.is_over(slot):
        wake_up = algorithm.wake_up()
        if wake_up is not None and (type(wake_up) is not int or wake_up <= slot):
            raise Refused("wake-up", f"slot {slot}", f"{shortened(wake_up)} is no later slot")
        waits = (to_come[-1] if to_come else None, state.next_slot(slot), wake_up)
        known = [wait for wait in waits if wait is not None]
        if slot >= last_slot:
            after += 1
            check_count(f"a run on {instance.name} after its last arrival", after, "slots")
            idle = idle + 1 if state.is_idle(slot) else 0
        if not known or idle > max(STEPS_WITHOUT_PROGRESS, SHARE_WITHOUT_PROGRESS * steps):
            what = f"for {idle - 1} slots" if known else f"after slot {slot}"
            raise SolveFailed(f"{name} left jobs unfinished {what}")
        slot = min(known)
        check_time()
        steps += 1
        if to_come and to_come[-1] == slot:
            to_come.pop()
        ended = state.advance(slot)
        now = tuple(state.shown(job, capabilities) for job in arrivals.get(slot, ()))
        started = clock()
        if ended:
            algorithm.completed(slot, ended)
        if news := state.news(slot):
            algorithm.told(slot, news)
        decision = algorithm.step(slot, now)
        spent = clock() - started
        if caught() != heard:
            raise interruption()
        inside += spent
        if now:
            decision_ms += [1000 * spent / len(now)] * len(now)
        taken = state.take_over(slot, decision)
        try:
            state.apply(slot, taken)
        except InputError as error:
            raise Refused("row", f"slot {slot}", str(error)) from None
        if on_slot is not None:
            on_slot(slot, last_slot)

    return SimulationResult(
        instance=instance, algorithm=name, settings=settings, seed=environment.seed,
        solution=state.judged_solution(), in_feasible_set=environment.in_feasible_set,
        rejected=tuple(state.rejected), decision_ms=tuple(decision_ms), seconds=inside,
        simulator_seconds=clock() - begin - inside,
        report={**algorithm.report(), **state.report()}, prices=algorithm.prices(),
        price_path=tuple(algorithm.price_path()), mark=capabilities.mark,
    )  # fmt: skip

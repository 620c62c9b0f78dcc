"""Methods of the mlbroker family.

``milp`` solves (8), ``relaxation`` its linear relaxation (``tight``: the disaggregated LP,
``paper``: P_f), ``chord`` P_f with the envelope of the concave price, job by job, ``conditioned``
the same given the place of the PS, in closed form and certified, ``tree`` an optimum of ``tight``
proven by branch and bound on tiers and presence (`nodes`), ``bound`` the Lagrangian bound with
shared fees, certified, ``search`` a placement of all slots together, and ``auto`` the bound and a
search from what the jobs answer to its prices, where it is small also the program, whose optimum a
tree certifies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hindsched.arrays import Bools, Ints
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.solutions.mlbroker.solution import MlbrokerSolution
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Result, keep
from hindsched.solvers.door.status import Progress, Status, StoppedBy
from hindsched.solvers.door.work import is_counted, now, spend
from hindsched.solvers.families.mlbroker.bound import (
    ITERATIONS,
    lagrangian_certificate,
    relaxation_bound,
)
from hindsched.solvers.families.mlbroker.oracle import MlbrokerOracle
from hindsched.solvers.families.mlbroker.plan import launches, plan_slots, polish, with_launches
from hindsched.solvers.families.mlbroker.slot import SlotPlacement, tight_placement
from hindsched.solvers.methods.base import Method, joined, relaxation, solve_milp
from hindsched.solvers.tree.method import (
    SHARE_BEFORE_TREE,
    Growing,
    certify_optimum,
    check_has_tree,
)

SMALL_JOB_SLOTS = 60
"""Job-slots times data centres up to which ``auto`` also solves the integer program."""
DEFAULT_SECONDS = 60.0
"""Time of ``auto`` when the options give no limit."""
SHARE_OF_BOUND = 0.6
"""Share of the time after which slots keep equal shares of the fees: prices are still certified,
and the schedule that they lead to relocated."""
Plans = Sequence[tuple[Ints, Ints]]
"""Workers (life, R) and places of the PS (life,) by job."""


def find_schedule(
    instance: MlbrokerInstance,
    formulation: str,
    deadline: float | None = None,
    plans: Plans | None = None,
) -> MlbrokerSolution:
    """Find a schedule with all data known, all slots together.

    Parameters
    ----------
    instance, formulation
        What is solved.
    deadline : float, optional
        Value of `now` after which nothing is begun; without anything better slots are placed by the
        relaxation and largest remainder alone, in milliseconds.
    plans : Plans, optional
        What the jobs answer to the prices of a good bound: the first start.
    """

    def late() -> bool:
        spend()
        return deadline is not None and now() > deadline

    views = _views(instance)
    found: list[MlbrokerSolution] = []

    def improve(plan: list[SlotPlacement]) -> None:
        while not late() and (polished := polish(views, {}, plan)) is not plan:
            plan = polished
        found.append(_solution(instance, views, plan, formulation))

    if plans is not None:
        improve(_slots_of(instance, views, plans))
    if not (found and late()) and (plan := plan_slots(views, {}, deadline)) is not None:
        improve(plan)
    if not found:
        improve(_slot_by_slot(views))
    return min(found, key=lambda solution: solution.objective())


def _views(instance: MlbrokerInstance) -> list[SlotData]:
    return [SlotData.at(instance, t) for t in range(1, instance.horizon + 1)]


def _slots_of(
    instance: MlbrokerInstance, views: list[SlotData], plans: Plans
) -> list[SlotPlacement]:
    """Every job's plan over its life, slot by slot."""
    index = {job.name: j for j, job in enumerate(instance.jobs)}
    placed: list[SlotPlacement] = []
    for t, view in enumerate(views, 1):
        workers = np.zeros(view.data.shape, dtype=np.int64)
        ps = np.zeros(len(view.jobs), dtype=np.int64)
        for row, job in enumerate(index[name] for name in view.jobs):
            step = t - instance.jobs[job].arrival
            workers[row], ps[row] = plans[job][0][step], max(plans[job][1][step], 0)
        placed.append(SlotPlacement(workers, ps, 0.0))
    return with_launches(views, {}, placed)


def _slot_by_slot(views: list[SlotData]) -> list[SlotPlacement]:
    """Place slots one after the other, without a search."""
    plan: list[SlotPlacement] = []
    held: dict[str, Bools] = {}
    for view in views:
        plan.append(tight_placement(view, launches(view, held), relocation=False))
        held = dict(zip(view.jobs, plan[-1].used, strict=True))
    return plan


def _solution(
    instance: MlbrokerInstance, views: list[SlotData], plan: list[SlotPlacement], formulation: str
) -> MlbrokerSolution:
    shape = (len(instance.jobs), instance.horizon, len(instance.datacenters))
    workers, ps = np.zeros(shape, dtype=np.int64), np.full(shape[:2], -1, dtype=np.int64)
    index = {job.name: j for j, job in enumerate(instance.jobs)}
    for t, (view, placement) in enumerate(zip(views, plan, strict=True)):
        jobs = [index[name] for name in view.jobs]
        workers[jobs, t], ps[jobs, t] = placement.workers, placement.ps
    return MlbrokerSolution(instance, workers, ps, formulation)


def _deadline(options: SolveOptions, share: float = 1.0) -> float | None:
    return None if options.time_limit is None else now() + share * options.time_limit


def _why(deadline: float | None) -> StoppedBy:
    late = deadline is not None and now() > deadline
    return StoppedBy.TIME_LIMIT if late else StoppedBy.CONVERGED


def milp(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Solve (8) by a mixed-integer solver, begun from a heuristic schedule."""
    assert isinstance(instance, MlbrokerInstance)
    started = now()
    begin = find_schedule(instance, formulation, _deadline(options, 0.3))
    if options.time_limit is not None:
        options = options.with_time(options.time_limit - (now() - started))
    return solve_milp(instance, formulation, options, on_progress, incumbent=begin)


def search(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Find a schedule; no bound."""
    assert isinstance(instance, MlbrokerInstance)
    deadline = _deadline(options)
    return Result(
        instance=instance, formulation=formulation, method="search", status=Status.FEASIBLE,
        solution=find_schedule(instance, formulation, deadline), stopped_by=_why(deadline),
        backend="tier prices, shortest paths, relocation",
    )  # fmt: skip


def chord(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """P_f (9) with the chord of the concave price, one linear program a job; not certified."""
    assert isinstance(instance, MlbrokerInstance)
    limit = None if is_counted() else options.time_limit
    return Result(
        instance=instance, formulation=formulation, method="chord", status=Status.NO_SOLUTION,
        stopped_by=StoppedBy.CONVERGED,
        bound=relaxation_bound(instance, "chord", time_limit=limit),
        backend="highs, one program a job",
    )  # fmt: skip


def conditioned(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Chord price, given the place of each PS: certified, without any solver."""
    return _certified(instance, formulation, options, on_progress, "conditioned", 0)[0]


def bound(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Lagrangian bound with shared fees: certified, without any solver."""
    return _certified(instance, formulation, options, on_progress)[0]


def _certified(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None,
    method: str = "bound", iterations: int = ITERATIONS,
) -> tuple[Result, Plans]:  # fmt: skip
    """A certified bound, and the jobs' best responses to its prices."""
    assert isinstance(instance, MlbrokerInstance)
    oracle, started, deadline = MlbrokerOracle(instance, formulation), now(), _deadline(options)

    def report(value: float, slot: int) -> None:
        if on_progress is not None:
            on_progress(None, None, now() - started, f"slot {slot}: {value:.6g}")

    certificate = lagrangian_certificate(
        instance, formulation, oracle=oracle, iterations=iterations, deadline=deadline,
        on_slot=report,
    )  # fmt: skip
    result = Result(
        instance=instance, formulation=formulation, method=method, status=Status.NO_SOLUTION,
        stopped_by=_why(deadline), bound=certificate.bound, certificate=certificate,
        backend="fee sharing, pricing oracle", details={"iterations": iterations},
    )  # fmt: skip
    return result, oracle.priced_within(certificate.prices, {})[1]


def auto(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Bound and search; small instances also by the integer program."""
    assert isinstance(instance, MlbrokerInstance)
    size = int(instance.alive.sum()) * len(instance.datacenters)
    limit = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
    deadline = now() + limit
    within = options.with_time(SHARE_OF_BOUND * limit)
    bounded, plans = _certified(instance, formulation, within, on_progress)
    views = _views(instance)
    answers = _solution(instance, views, _slots_of(instance, views, plans), formulation)
    known = replace(bounded, method="bound+search", status=Status.FEASIBLE, solution=answers)
    keep(known)  # a loaded machine may overrun the limit in the search
    known = replace(
        known,
        solution=find_schedule(instance, formulation, deadline, plans),
        stopped_by=_why(deadline),
        backend=f"{bounded.backend}, shortest paths, relocation",
        details={
            **bounded.details,
            "certified_bound": bounded.bound,
            "why": f"job-slots x centres = {size}, small up to {SMALL_JOB_SLOTS}",
        },
    )
    if within_gap(known.objective, known.bound, options.gap) or size > SMALL_JOB_SLOTS:
        return known
    left = options.with_time(max(0.0, deadline - now()))
    try:
        program = solve_milp(instance, formulation, left, on_progress, incumbent=known.solution)
    except SolveFailed as error:
        return replace(known, details={**known.details, "program_failed": str(error)})
    details = {**known.details, **{f"program_{k}": v for k, v in program.details.items()}}
    both = replace(joined(known, program), method="bound+search+milp", details=details)
    if not within_gap(both.objective, both.bound, options.gap):
        return both
    gone = now() - (deadline - limit)
    asked = replace(both, status=Status.OPTIMAL, seconds=gone, options=options.to_dict())
    return certify_optimum(asked)


def tree(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Prove an optimum of ``tight`` by branch and bound on tiers and presence."""
    assert isinstance(instance, MlbrokerInstance)
    check_has_tree(instance, formulation)
    started = now()
    limit = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
    within = options.with_time(SHARE_BEFORE_TREE * limit)
    bounded, plans = _certified(instance, formulation, within, None)
    found = find_schedule(instance, formulation, started + 0.5 * limit, plans)
    known = replace(bounded, method="tree", status=Status.FEASIBLE, solution=found)
    if within_gap(known.objective, known.bound, options.gap):
        return known
    assert known.certificate is not None
    with catch_interrupt() as interrupted:
        prices = known.certificate.prices
        growing = Growing(known, prices, options.gap, interrupted, on_progress)
        return growing.run(lambda: limit - (now() - started))


METHODS: dict[str, Method] = {
    "auto": auto, "tree": tree, "milp": milp, "relaxation": relaxation, "chord": chord,
    "conditioned": conditioned, "bound": bound, "search": search,
}  # fmt: skip

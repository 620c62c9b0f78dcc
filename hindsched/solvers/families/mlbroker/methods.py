"""Methods of the mlbroker family.

``milp`` solves (8), ``relaxation`` its linear relaxation (``tight``: the disaggregated LP,
``paper``: P_f), ``chord`` P_f with the envelope of the concave price, job by job, ``conditioned``
the same given the place of the PS, in closed form and certified, ``tree`` an optimum of ``tight``
proven by branch and bound on tiers and presence (`nodes`), ``bound`` the Lagrangian bound
with shared fees, certified, ``search`` a placement of all slots together, and ``auto`` the bound
and a search from what the jobs answer to its prices, where it is small then the tree, and the
program where that does not close the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from threading import Event
from typing import Any

import numpy as np

from hindsched.arrays import Ints
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.solutions.mlbroker.solution import MlbrokerSolution
from hindsched.solvers.door.answer import Progress
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.kept import keep
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.door.work import aside, is_counted, now, spend
from hindsched.solvers.families.mlbroker.bound import ITERATIONS, lagrangian_certificate
from hindsched.solvers.families.mlbroker.nodes import NodePoint
from hindsched.solvers.families.mlbroker.oracle import MlbrokerOracle
from hindsched.solvers.families.mlbroker.plan import (
    plan_slots,
    polish,
    rolling_plan,
    used_centers,
    with_launches,
)
from hindsched.solvers.families.mlbroker.slot import (
    SlotPlacement,
    priced_placement,
    tight_placement,
)
from hindsched.solvers.methods.base import Method, better, relaxation, solve_milp
from hindsched.solvers.methods.bound_and_search import ENDED
from hindsched.solvers.tree.method import (
    SHARE_BEFORE_TREE,
    Growing,
    certified_by,
    check_has_tree,
    tree_rows,
)

SMALL_JOB_SLOTS = 60
"""Job-slots times data centres up to which ``auto`` also solves the integer program."""
DEFAULT_SECONDS = 60.0
"""Time of ``auto`` when the options give no limit."""
SHARE_OF_BOUND = 0.6
"""Share of the time after which slots keep equal shares of the fees: prices are still certified,
and the schedule that they lead to relocated."""
SHARE_OF_TREE = 0.25
"""Share of the time that a tree gets before the program."""
Plans = Sequence[tuple[Ints, Ints]]
"""Workers (life, R) and places of the PS (life,) by job."""
TINY: dict[str, Any] = {
    "format": "hindsched/1", "family": "mlbroker", "name": "tiny", "horizon": 1, "slot_seconds": 1,
    "resources": ["k"],
    "datacenters": [
        {"name": "r", "prices": {"k": {"unit_usd": 2, "discounted_usd": 1, "threshold": 1}}}
    ],
    "transfer_usd_per_gb": [[0]],
    "jobs": [
        {"name": "j", "arrival": 1, "departure": 1, "worker": {"k": 1}, "ps": {}, "capacity_gb": 1,
         "exchange_gb": 1, "deployment_usd": 1, "data_gb": [[1]]}
    ],
}  # fmt: skip
"""What `load_kernels` runs on."""


def find_schedule(
    instance: MlbrokerInstance,
    formulation: str,
    deadline: float | None = None,
    plans: Plans | None = None,
) -> MlbrokerSolution:
    """Find a schedule with all data known: slot by slot, all together, and by rolling windows.

    Parameters
    ----------
    instance, formulation
        What is solved.
    deadline : float, optional
        Value of `now` after which slots are placed by the relaxation and largest remainder alone
        (milliseconds), and what has not begun is left out.
    plans : Plans, optional
        What the jobs answer to the prices of a good bound: a start that is tried first.
    """

    def late() -> bool:
        spend()
        return deadline is not None and now() > deadline

    views = [SlotData.at(instance, t) for t in range(1, instance.horizon + 1)]
    ways: list[Callable[[], list[SlotPlacement] | None]] = [
        lambda: _slot_by_slot(views, late, both=False),
        lambda: plan_slots(views, {}, deadline),
        lambda: rolling_plan(views, deadline=deadline),
        lambda: _slot_by_slot(views, late, both=True),
    ]
    if plans is not None:
        ways.insert(0, lambda: _slots_of(instance, views, plans))
    found: list[MlbrokerSolution] = []
    for way in ways:
        if found and late():
            break
        plan = way()
        if plan is None:
            continue
        while not late() and (polished := polish(views, {}, plan)) is not plan:
            plan = polished
        found.append(_solution(instance, views, plan, formulation))
    return min(found, key=lambda solution: solution.objective())


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


@cache
def load_kernels() -> None:
    """Run every compiled kernel once on a tiny instance: no time limit pays for the compiler.

    What was compiled stays on disk, so only the first process of an installation waits for long.
    """
    tiny = MlbrokerInstance.parse(TINY)
    with aside():
        find_schedule(tiny, "tight")
        for iterations in (0, 1):
            lagrangian_certificate(tiny, iterations=iterations)


def _slot_by_slot(
    views: list[SlotData], late: Callable[[], bool], both: bool
) -> list[SlotPlacement]:
    """Place slots one after the other; `both` takes the cheaper of two ways in each."""
    plan: list[SlotPlacement] = []
    present: dict[str, np.ndarray] = {}
    for view in views:
        nowhere = np.zeros(view.num_centers, dtype=bool)
        before = np.array([present.get(name, nowhere) for name in view.jobs], dtype=bool)
        launch = view.deployment[:, None] * ~before.reshape(view.data.shape)
        best = tight_placement(view, launch, relocation=not late())
        if both and not late():
            other, _ = priced_placement(view, launch, relocation=True)
            best = best if best.cost <= other.cost else other
        plan.append(best)
        present = dict(zip(view.jobs, used_centers(best), strict=True))
    return with_launches(views, {}, plan)


def _solution(
    instance: MlbrokerInstance, views: list[SlotData], plan: list[SlotPlacement], formulation: str
) -> MlbrokerSolution:
    shape = (len(instance.jobs), instance.horizon, len(instance.datacenters))
    workers = np.zeros(shape, dtype=np.int64)
    ps = np.full(shape[:2], -1, dtype=np.int64)
    index = {job.name: j for j, job in enumerate(instance.jobs)}
    for t, (view, placement) in enumerate(zip(views, plan, strict=True)):
        jobs = [index[name] for name in view.jobs]
        workers[jobs, t] = placement.workers
        ps[jobs, t] = placement.ps
    return MlbrokerSolution(instance, workers, ps, formulation)


def milp(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Solve (8) by a mixed-integer solver, begun from a heuristic schedule."""
    assert isinstance(instance, MlbrokerInstance)
    load_kernels()
    started = now()
    deadline = None if options.time_limit is None else started + 0.3 * options.time_limit
    begin = find_schedule(instance, formulation, deadline)
    if options.time_limit is not None:
        options = options.with_time(options.time_limit - (now() - started))
    return solve_milp(instance, formulation, options, on_progress, incumbent=begin)


def search(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Find a schedule; no bound."""
    assert isinstance(instance, MlbrokerInstance)
    load_kernels()
    started = now()
    deadline = None if options.time_limit is None else started + options.time_limit
    found = find_schedule(instance, formulation, deadline)
    return Result(
        instance=instance,
        formulation=formulation,
        method="search",
        status=Status.FEASIBLE,
        stopped_by=_why(deadline),
        solution=found,
        seconds=now() - started,
        backend="tier prices, shortest paths, relocation",
        options=options.to_dict(),
    )


def chord(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """P_f (9) with the chord of the concave price, one linear program a job; not certified."""
    from hindsched.solvers.families.mlbroker.relaxation import relaxation_bound

    assert isinstance(instance, MlbrokerInstance)
    started = now()
    limit = None if is_counted() else options.time_limit
    value = relaxation_bound(instance, "chord", time_limit=limit)
    return Result(
        instance=instance,
        formulation=formulation,
        method="chord",
        status=Status.NO_SOLUTION,
        stopped_by=StoppedBy.CONVERGED,
        bound=value,
        seconds=now() - started,
        backend="highs, one program a job",
        options=options.to_dict(),
    )


def conditioned(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Chord price, given the place of each PS: certified, without any solver."""
    assert isinstance(instance, MlbrokerInstance)
    oracle = MlbrokerOracle(instance, formulation)
    return _certified(oracle, options, on_progress, "conditioned", 0)


def bound(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Lagrangian bound with shared fees: certified, without any solver."""
    assert isinstance(instance, MlbrokerInstance)
    return _certified(MlbrokerOracle(instance, formulation), options, on_progress)


def _certified(
    oracle: MlbrokerOracle,
    options: SolveOptions,
    on_progress: Progress | None,
    method: str = "bound",
    iterations: int = ITERATIONS,
) -> Result:
    load_kernels()
    started = now()
    deadline = None if options.time_limit is None else started + options.time_limit

    def report(value: float, slot: int) -> None:
        if on_progress is not None:
            on_progress(None, None, now() - started, f"slot {slot}: {value:.6g}")

    certificate = lagrangian_certificate(
        oracle.instance, oracle.formulation, oracle=oracle, iterations=iterations,
        deadline=deadline, on_slot=report,
    )  # fmt: skip
    return Result(
        instance=oracle.instance,
        formulation=oracle.formulation,
        method=method,
        status=Status.NO_SOLUTION,
        stopped_by=_why(deadline),
        bound=certificate.bound,
        certificate=certificate,
        seconds=now() - started,
        backend="fee sharing, pricing oracle",
        options=options.to_dict(),
        details={"iterations": iterations},
    )


def _bound_and_plans(
    instance: MlbrokerInstance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None,
) -> tuple[Result, Plans]:
    """`bound`, and the jobs' best responses to its prices, which the oracle remembers."""
    oracle = MlbrokerOracle(instance, formulation)
    bounded = _certified(oracle, options, on_progress)
    assert bounded.certificate is not None
    return bounded, oracle.priced_within(bounded.certificate.prices, {})[1]


def _with_answers(bounded: Result, plans: Plans) -> Result:
    """A bound with what the jobs answer to its prices as a schedule."""
    instance = bounded.instance
    assert isinstance(instance, MlbrokerInstance)
    views = [SlotData.at(instance, t) for t in range(1, instance.horizon + 1)]
    answers = _slots_of(instance, views, plans)
    found = _solution(instance, views, answers, bounded.formulation)
    return replace(bounded, method="bound+search", status=Status.FEASIBLE, solution=found)


def _why(deadline: float | None) -> StoppedBy:
    late = deadline is not None and now() > deadline
    return StoppedBy.TIME_LIMIT if late else StoppedBy.CONVERGED


def auto(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Bound and search; small instances also by a tree, then by the integer program.

    The better bound counts. Where the program proves an optimum the tree goes on to certify it.
    """
    assert isinstance(instance, MlbrokerInstance)
    load_kernels()
    started = now()
    size = int(instance.alive.sum()) * len(instance.datacenters)
    limit = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
    within = options.with_time(SHARE_OF_BOUND * limit)
    bounded, plans = _bound_and_plans(instance, formulation, within, on_progress)
    keep(_with_answers(bounded, plans))  # a loaded machine may overrun the limit in the search
    deadline = started + limit

    def seconds_left() -> float:
        return max(0.0, deadline - now())

    found = find_schedule(instance, formulation, deadline, plans)
    known = replace(
        bounded,
        method="bound+search",
        status=Status.FEASIBLE,
        solution=found,
        stopped_by=_why(deadline),
        seconds=now() - started,
        backend=f"{bounded.backend}, shortest paths, relocation",
        details={
            **bounded.details,
            "certified_bound": bounded.bound,
            "why": f"job-slots x centres = {size}, small up to {SMALL_JOB_SLOTS}",
        },
    )
    if within_gap(known.objective, known.bound, options.gap) or size > SMALL_JOB_SLOTS:
        return known
    with catch_interrupt() as interrupted:
        growing = None
        if tree_rows(instance, formulation):
            growing = _growing(known, options.gap, interrupted, on_progress)
            end = now() + SHARE_OF_TREE * limit
            known = _with_tree(growing, lambda: min(end - now(), seconds_left()))
            if known.stopped_by in ENDED:
                return known
        result = _with_program(known, options.with_time(seconds_left()), on_progress)
        if growing is not None and not interrupted.is_set():
            result = certified_by(growing, result, seconds_left)
        return replace(result, seconds=now() - started)


def _with_tree(growing: Growing, seconds_left: Callable[[], float]) -> Result:
    """Try to close the gap by a tree in a short time."""
    known = growing.known
    grown = keep(growing.run(lambda: max(0.0, seconds_left())))
    assert grown.certificate is not None
    details = {**grown.details, "certified_bound": grown.certificate.bound}
    grown = replace(grown, details=details, backend=f"{known.backend}, {grown.backend}")
    if grown.stopped_by in ENDED:
        return replace(grown, method="bound+search+tree")
    return replace(grown, stopped_by=known.stopped_by)


def _with_program(known: Result, options: SolveOptions, on_progress: Progress | None) -> Result:
    """Solve the integer program from what is known, and keep the better of both."""
    try:
        program = solve_milp(
            known.instance, known.formulation, options, on_progress, incumbent=known.solution
        )
    except SolveFailed as error:
        return replace(known, details={**known.details, "program_failed": str(error)})
    bounds = [value for value in (known.bound, program.bound) if value is not None]
    return replace(
        known,
        method="bound+search+milp",
        solution=better(program.solution, known.solution),
        bound=max(bounds, default=None),
        status=program.status,
        stopped_by=program.stopped_by,
        backend=f"{known.backend}, {program.backend}",
        details={**known.details, **{f"program_{k}": v for k, v in program.details.items()}},
    )


def tree(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Prove an optimum of ``tight`` by branch and bound on tiers and presence."""
    assert isinstance(instance, MlbrokerInstance)
    check_has_tree(instance, formulation)
    load_kernels()
    started = now()
    limit = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
    within = options.with_time(SHARE_BEFORE_TREE * limit)
    bounded, plans = _bound_and_plans(instance, formulation, within, None)
    found = find_schedule(instance, formulation, started + 0.5 * limit, plans)
    known = replace(bounded, method="tree", status=Status.FEASIBLE, solution=found)
    if within_gap(known.objective, known.bound, options.gap):
        return known
    with catch_interrupt() as interrupted:
        growing = _growing(known, options.gap, interrupted, on_progress)
        return growing.run(lambda: limit - (now() - started))


def _growing(
    known: Result, gap: float, interrupted: Event, on_progress: Progress | None
) -> Growing:
    """A tree from a certificate's prices, with a search near its nodes."""
    instance, certificate = known.instance, known.certificate
    assert isinstance(instance, MlbrokerInstance)
    assert certificate is not None
    views = [SlotData.at(instance, t) for t in range(1, instance.horizon + 1)]
    near = partial(_near_node, instance, views, known.formulation)
    return Growing(known, certificate.prices, gap, interrupted, on_progress, lambda _: near)


def _near_node(
    instance: MlbrokerInstance,
    views: list[SlotData],
    formulation: str,
    _: Any,
    shares: Sequence[NodePoint],
) -> MlbrokerSolution:
    """The placements with the largest shares in a node's program, relocated."""
    index = {job.name: j for j, job in enumerate(instance.jobs)}
    plan = []
    for t, view in enumerate(views):
        chosen = [shares[0].chosen[index[name], t] for name in view.jobs]
        workers = np.array([one.workers for one in chosen]).reshape(view.data.shape)
        ps = np.array([one.ps for one in chosen], dtype=np.int64)
        plan.append(SlotPlacement(workers, ps, 0.0))
    polished = polish(views, {}, with_launches(views, {}, plan))
    return _solution(instance, views, polished, formulation)


METHODS: dict[str, Method] = {
    "auto": auto,
    "tree": tree,
    "milp": milp,
    "relaxation": relaxation,
    "chord": chord,
    "conditioned": conditioned,
    "bound": bound,
    "search": search,
}

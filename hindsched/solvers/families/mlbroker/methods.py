"""Methods of the mlbroker family.

``milp`` solves (8), ``relaxation`` its linear relaxation (``tight``: the disaggregated LP,
``paper``: P_f), ``tree`` an optimum of ``tight`` proven by branch and bound on tiers and presence
(`nodes`), ``bound`` the Lagrangian bound with shared fees, certified, ``search`` a placement of all
slots, and ``auto`` the bound and a search from what the jobs answer to its prices, where it is
small also the program, whose optimum a tree certifies.

The certified bounds are one formula at different prices: the oracle's best responses of the jobs
plus the tiers that do not earn their fee. A launch is spread evenly over a job's life, which makes
the slots independent; within a slot the fees are shared among the jobs: the equal share
e / sum_j H_j is the chord of the concave price, and a projected subgradient method with Polyak
steps looks for better ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from threading import Event

import numpy as np

from hindsched.arrays import Bools, Floats
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.mlbroker.offline import build_chord, build_offline
from hindsched.models.mlbroker.slot_program import Price
from hindsched.solutions.mlbroker.solution import MlbrokerSolution
from hindsched.solvers.base import Method
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import Progress, Result
from hindsched.solvers.door.work import Clock, catch_interrupt, count_work
from hindsched.solvers.families.mlbroker.oracle import MlbrokerOracle
from hindsched.solvers.families.mlbroker.placements import (
    BrokerPlan,
    Planner,
    kernel_jobs,
    tight_placement,
)
from hindsched.solvers.kernels.mlbroker.geo_placement import SlotJobs, shared_bound
from hindsched.solvers.methods.base import Run, better, relaxation, solve_milp
from hindsched.solvers.tree import method as trees

SMALL_JOB_SLOTS = 60
"""Job-slots times data centres up to which ``auto`` also solves the integer program."""
SHARE_OF_BOUND = 0.6
"""Share of the time after which slots keep equal shares of the fees."""
ITERATIONS = 400
"""Most subgradient steps a slot."""
PATIENCE, SHRINK, LEAST_STEP = 8, 0.7, 1e-4
"""Steps without gain after which they become shorter, by how much, and where they end."""
MOMENTUM = 0.3
"""Weight of the directions before in a step's direction."""


def relaxation_bound(
    instance: MlbrokerInstance, price: Price = "chord", *, time_limit: float | None = None
) -> float:
    """Optimum of P_f, weighted USD: a lower bound on every schedule's realised cost.

    With the chord of the concave price the jobs fall apart into one program each; ``paper`` is the
    relaxed big-M bill, in one program. `time_limit` is in seconds for each program.
    """
    if price == "paper":
        models = [build_offline(instance, "paper", relax=True).model]
    else:
        models = [build_chord(instance, j) for j in range(len(instance.jobs))]
    total = 0.0
    for model in models:
        result = solve_program(model, SolveOptions(time_limit=time_limit))
        if result.bound is None or not result.has_point:
            raise SolveFailed(f"P_f of {instance.name}: {result.status}, {result.stopped_by}")
        total += result.bound
    return total


def lagrangian_certificate(
    instance: MlbrokerInstance, formulation: str = "tight", *, oracle: MlbrokerOracle | None = None,
    iterations: int = ITERATIONS, clock: Clock | None = None,
    on_slot: Callable[[float, int], None] | None = None, held: Bools | None = None,
) -> Certificate:  # fmt: skip
    """Certificate of the best shares found; 0 iterations give the PS-conditioned chord bound.

    `iterations` are the most subgradient steps a slot; once the clock is over, slots keep their
    equal shares. `on_slot` is called with the relaxed bound so far and the slot. Where a job is
    `held`, (J, R), it ran before its first slot, and a launch costs it nothing.
    """
    oracle = oracle or MlbrokerOracle(instance, formulation)
    launches = np.repeat(oracle.launches[:, None], len(instance.datacenters), axis=1)
    launches /= instance.slots_left.max(axis=1)[:, None]  # spread evenly over a job's life
    if held is not None:
        launches[held] = 0.0
    prices = np.zeros(oracle.rows.size)
    arrays = oracle.rows.unpack(prices)
    arrays["deployment"][:] = launches.T[:, :, None] * instance.slots_left
    total = 0.0
    for t, alive in enumerate(instance.alive.T):
        if not alive.any():
            continue
        slot = SlotData.at(instance, t + 1)
        jobs = kernel_jobs(slot, launches[alive])
        if formulation == "paper":  # talk with the PS is free
            jobs = jobs._replace(distance=0.0 * slot.distance)
        count_work()
        late = clock is not None and clock.is_over
        target, steps = np.inf, 1
        if iterations and not late:
            target = tight_placement(slot, launches[alive]).cost
            steps = iterations
        bound, shares = _share_fees(jobs, slot.largest_use, target, steps)
        arrays["discount"][:, :, alive, t] = shares.transpose(1, 2, 0)
        total += bound
        if on_slot is not None:
            on_slot(total, t + 1)
    return certify(oracle, prices)


def _share_fees(
    jobs: SlotJobs, most: Floats, target: float, iterations: int
) -> tuple[float, Floats]:
    """The best bound on a slot that shares of its fees prove, and those shares, (J, R, K).

    `most` is H, (J, K); no bound can pass `target`, the cost of a feasible placement of the slot.
    """
    full = jobs.unit - jobs.discounted
    together = most.sum(axis=0)
    equal = np.divide(jobs.fee, together, out=np.zeros_like(full), where=together > 0)
    shares = best_shares = np.repeat(np.minimum(equal, full)[None], len(most), axis=0)
    size = np.where(most > 0, most, 1.0)[:, None]  # steps are taken in money: lambda H
    direction = np.zeros_like(shares)
    best, step, stale = -np.inf, 1.0, 0
    for _ in range(iterations):
        bound, gradient = shared_bound(jobs, most, shares)
        if best == -np.inf or bound > best + 1e-9 * abs(best):
            best, best_shares, stale = bound, shares, 0
        elif stale + 1 >= PATIENCE:
            step, stale, shares = SHRINK * step, 0, best_shares
            direction = np.zeros_like(shares)
            continue
        else:
            stale += 1
        if target - best <= 1e-9 * abs(target) or step < LEAST_STEP:
            break
        move = gradient / size
        outward = ((shares <= 0) & (move < 0)) | ((shares >= full) & (move > 0))
        direction = (1 - MOMENTUM) * np.where(outward, 0.0, move) + MOMENTUM * direction
        length = float((direction**2).sum())
        if length <= 0:
            break
        far = step * max(target - bound, 1e-6 * abs(target)) / length
        shares = np.clip(shares + far * direction / size, 0.0, full)
    return best, best_shares


def find_schedule(
    instance: MlbrokerInstance, formulation: str, clock: Clock | None = None,
    answers: BrokerPlan | None = None,
) -> MlbrokerSolution:  # fmt: skip
    """The best plan that `Planner` finds, first from what jobs answer to prices."""
    _, plan = Planner(instance, clock=clock).best(answers)
    return MlbrokerSolution(instance, *plan, formulation)


class BrokerRun(Run):
    """A solve of mlbroker: a certified bound, and schedules from what jobs answer to its prices."""

    @property
    def instance(self) -> MlbrokerInstance:
        """What is solved."""
        assert isinstance(self.known.instance, MlbrokerInstance)
        return self.known.instance

    def certify(self, clock: Clock | None, iterations: int = ITERATIONS) -> BrokerPlan:
        """Prove a bound by prices, and return the jobs' best responses to them."""
        oracle = MlbrokerOracle(self.instance, self.known.formulation)

        def report(value: float, slot: int) -> None:
            if self.on_progress is not None:
                self.on_progress(None, None, self.clock.gone, f"slot {slot}: {value:.6g}")

        certificate = lagrangian_certificate(
            self.instance, self.known.formulation, oracle=oracle, iterations=iterations,
            clock=clock, on_slot=report,
        )  # fmt: skip
        backend, details = "fee sharing, pricing oracle", {"iterations": iterations}
        self.known = replace(self.known, backend=backend, details=details)
        self.prove(certificate)
        return Planner(self.instance).answered(oracle.priced(certificate.prices)[1])

    def close(self, share_of_bound: float, share: float) -> None:
        """Bound and search, in shares of the time."""
        answers = self.certify(self.clock.first(share_of_bound * self.clock.seconds))
        instance, formulation = self.instance, self.known.formulation
        self.offer(MlbrokerSolution(instance, *answers, formulation))
        clock = self.clock.first(share * self.clock.seconds - self.clock.gone)
        if not clock.is_over:
            self.offer(find_schedule(instance, formulation, clock, answers))


def milp_mlbroker(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Solve (8) by a mixed-integer solver, begun from a heuristic schedule."""
    assert isinstance(instance, MlbrokerInstance)
    clock, limit = Clock(math.inf), options.time_limit
    scheduled = find_schedule(instance, formulation, None if limit is None else Clock(0.3 * limit))
    begin = better(scheduled, options.start)
    return solve_milp(
        instance, formulation, options.without(clock.gone), on_progress, incumbent=begin
    )


def search_mlbroker(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Find a schedule; no bound."""
    run = BrokerRun(instance, formulation, options, on_progress, Event(), "search")
    clock = None if options.time_limit is None else run.clock
    run.offer(find_schedule(run.instance, formulation, clock))
    return run.result("tier prices")


def bound_mlbroker(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Lagrangian bound with shared fees: certified, without any solver."""
    run = BrokerRun(instance, formulation, options, on_progress, Event(), "bound")
    run.certify(None if options.time_limit is None else run.clock)
    return run.result()


def auto_mlbroker(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Bound and search; small instances also by the integer program."""
    with catch_interrupt() as stop:
        run = BrokerRun(instance, formulation, options, on_progress, stop, "bound+search")
        run.close(SHARE_OF_BOUND, 1.0)
        size = int(run.instance.alive.sum()) * len(run.instance.datacenters)
        why = f"job-slots x centres = {size}, small up to {SMALL_JOB_SLOTS}"
        backend = f"{run.known.backend}, tier prices"
        run.known = run.result(backend, why=why)
        if not run.is_closed and size <= SMALL_JOB_SLOTS and not stop.is_set():
            run.solve_program()
        return run.known


def tree_mlbroker(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Prove an optimum of ``tight`` by branch and bound on tiers and presence."""
    trees.check_has_tree(instance, formulation)
    with catch_interrupt() as stop:
        run = BrokerRun(instance, formulation, options, on_progress, stop, "tree")
        run.close(trees.SHARE_BEFORE_TREE, 0.5)
        return trees.grow(run)


METHODS: dict[str, Method] = {
    "auto": trees.certifying(auto_mlbroker),
    "tree": tree_mlbroker,
    "milp": milp_mlbroker,
    "relaxation": relaxation,
    "bound": bound_mlbroker,
    "search": search_mlbroker,
}

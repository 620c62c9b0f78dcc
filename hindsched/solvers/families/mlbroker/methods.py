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

import math
from dataclasses import replace
from threading import Event

from hindsched.instances.base import Instance
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.solutions.mlbroker.solution import MlbrokerSolution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Progress, Result, Status, StoppedBy
from hindsched.solvers.door.work import Clock, catch_interrupt, is_counted
from hindsched.solvers.families.mlbroker.bound import (
    ITERATIONS,
    lagrangian_certificate,
    relaxation_bound,
)
from hindsched.solvers.families.mlbroker.oracle import MlbrokerOracle
from hindsched.solvers.families.mlbroker.placements import Plan, Planner
from hindsched.solvers.methods.base import Method, Run, relaxation, solve_milp
from hindsched.solvers.tree.method import (
    SHARE_BEFORE_TREE,
    certifying,
    check_has_tree,
    grow,
)

SMALL_JOB_SLOTS = 60
"""Job-slots times data centres up to which ``auto`` also solves the integer program."""
SHARE_OF_BOUND = 0.6
"""Share of the time after which slots keep equal shares of the fees: prices are still certified,
and the schedule that they lead to relocated."""


def find_schedule(
    instance: MlbrokerInstance, formulation: str, clock: Clock | None = None,
    answers: Plan | None = None,
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

    def certify(self, clock: Clock | None, iterations: int = ITERATIONS) -> Plan:
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
        return Planner(self.instance).answered(oracle.priced_within(certificate.prices, {})[1])

    def close(self, share_of_bound: float, share: float) -> None:
        """Bound and search, in shares of the time."""
        answers = self.certify(self.clock.first(share_of_bound * self.clock.seconds))
        instance, formulation = self.instance, self.known.formulation
        self.offer(MlbrokerSolution(instance, *answers, formulation))
        clock = self.clock.first(share * self.clock.seconds - self.clock.gone)
        self.offer(find_schedule(instance, formulation, clock, answers))


def milp(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Solve (8) by a mixed-integer solver, begun from a heuristic schedule."""
    assert isinstance(instance, MlbrokerInstance)
    clock, limit = Clock(math.inf), options.time_limit
    begin = find_schedule(instance, formulation, None if limit is None else Clock(0.3 * limit))
    return solve_milp(
        instance, formulation, options.without(clock.gone), on_progress, incumbent=begin
    )


def search(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Find a schedule; no bound."""
    run = BrokerRun(instance, formulation, options, on_progress, Event(), "search")
    clock = None if options.time_limit is None else run.clock
    run.offer(find_schedule(run.instance, formulation, clock))
    return run.result("chord prices, relocation")


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
    run = BrokerRun(instance, formulation, options, on_progress, Event(), "conditioned")
    run.certify(run.clock, 0)
    return run.result()


def bound(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Lagrangian bound with shared fees: certified, without any solver."""
    run = BrokerRun(instance, formulation, options, on_progress, Event(), "bound")
    run.certify(None if options.time_limit is None else run.clock)
    return run.result()


def auto(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Bound and search; small instances also by the integer program."""
    with catch_interrupt() as stop:
        run = BrokerRun(instance, formulation, options, on_progress, stop, "bound+search")
        run.close(SHARE_OF_BOUND, 1.0)
        size = int(run.instance.alive.sum()) * len(run.instance.datacenters)
        why = f"job-slots x centres = {size}, small up to {SMALL_JOB_SLOTS}"
        backend = f"{run.known.backend}, relocation"
        run.known = run.result(backend, why=why)
        if not run.is_closed and size <= SMALL_JOB_SLOTS and not stop.is_set():
            run.solve_program()
        return run.known


def tree(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Prove an optimum of ``tight`` by branch and bound on tiers and presence."""
    check_has_tree(instance, formulation)
    with catch_interrupt() as stop:
        run = BrokerRun(instance, formulation, options, on_progress, stop, "tree")
        run.close(SHARE_BEFORE_TREE, 0.5)
        return grow(run)


METHODS: dict[str, Method] = {
    "auto": certifying(auto), "tree": tree, "milp": milp, "relaxation": relaxation,
    "chord": chord, "conditioned": conditioned, "bound": bound, "search": search,
}  # fmt: skip

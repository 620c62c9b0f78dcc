"""OASiS (Algorithm 1) and every algorithm of its evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.json_types import JsonObject
from hindsched.online import protocol
from hindsched.online.base import FamilyOnline
from hindsched.online.baselines.baseline import Drf, Fifo
from hindsched.online.baselines.cluster import largest_share
from hindsched.online.cluster_state import OptionalJobsState, this_slot
from hindsched.online.engines.dual_price import DualPrice
from hindsched.online.engines.primal_dual import PrimalDual
from hindsched.online.engines.reoptimise import FEW_HEURISTICS, ROUNDS, Reoptimise
from hindsched.online.oasis.baselines import Dorm, Rrh
from hindsched.online.oasis.dynamics import OasisCluster
from hindsched.online.oasis.prices import (
    POOLS,
    ExponentialPrices,
    PriceBounds,
    log_utilities,
    price_bounds,
)
from hindsched.solutions.base import build_solution
from hindsched.solvers.base import placing_oracle
from hindsched.solvers.bounds.schedule_prices import best_schedules
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.work import now
from hindsched.solvers.families.oasis.methods import rest_of, rows_from, solve_by_ends, solve_rest
from hindsched.solvers.families.oasis.oracle import OasisOracle
from hindsched.solvers.oracles.base import PlacingOracle, Response
from hindsched.solvers.oracles.rows import Rows
from hindsched.solvers.search import NeighbourhoodSearch

if TYPE_CHECKING:
    from hindsched.solvers.families.oasis.slots import SlotEngine

WORK_A_NODE = 10
"""Units of work that a solve may take for each of `nodes`: conflicts and leaves are work too."""
MOST_PLACES = 2_000
"""Servers times slots of the open jobs up to which the program of ends takes about a second."""
Engine = Literal["oracle", "model", "slots"]


class Oasis(PrimalDual):
    """Algorithm 1: exponential prices, one exact best response a job, admit on positive payoff.

    Parameters
    ----------
    engine : {"oracle", "model", "slots"}
        The worker-slot program; subproblem (27) through a solver; or Algorithm 2's recursion with
        the per-slot program (32) through a solver. Their decisions are equal.
    lower_floor : float
        In L, the smallest utility of a job counts as at least this share of its priority. 0 is
        the paper's literal L, which is e^-500 and less for time-critical jobs and makes the
        algorithm greedy.
    upper_scale : float
        Factor on the declared U (the paper's Figure 6 scales U / L).
    least_payoff : float
        A job is admitted if its payoff is above this; 0 is the paper's rule. With the literal L
        prices are so small that a time-critical job passes that earns e^-100 and takes the servers
        from the next; any threshold above the rounding of a utility keeps it out.
    """

    whole_chunks: ClassVar[bool] = False  # Algorithm 2 as printed

    def __init__(
        self, engine: Engine = "oracle", lower_floor: protocol.Share = 0.0,
        upper_scale: protocol.Positive = 1.0, least_payoff: protocol.AtLeastZero = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.engine, self.lower_floor = engine, lower_floor
        self.upper_scale, self.least_payoff = upper_scale, least_payoff

    def start(self, environment: protocol.Environment) -> None:
        """Post the prices of the empty cluster."""
        super().start(environment)
        self._slots: SlotEngine | None = None
        if self.engine == "slots":
            # CVXPY takes long to load
            from hindsched.solvers.families.oasis.slots import SlotEngine

            self._slots = SlotEngine(environment.cluster)

    def price_function(self, environment: protocol.Environment, rows: Rows) -> ExponentialPrices:
        """(22) with the declared bounds, U scaled by the setting."""
        resources = environment.cluster.resources
        declared = {pool: PriceBounds.of(environment.estimates[pool], resources) for pool in POOLS}
        scale = math.log(self.upper_scale)
        return ExponentialPrices(rows, {
            pool: replace(bounds, log_upper=bounds.log_upper + scale)
            for pool, bounds in declared.items()
        })  # fmt: skip

    def estimate_settings(self) -> JsonObject:
        """On which the declared L depends."""
        return {"lower_floor": self.lower_floor}

    def report(self) -> protocol.Report:
        """The ledger; of the engine ``slots`` how often it asked by the order of prices alone."""
        by_order = {"asked_by_order_of_prices": self._slots.ranked} if self._slots else {}
        return {**super().report(), **by_order}

    def respond_by_oracle(self, oracle: PlacingOracle, block: int) -> Response | None:
        """Best schedule of a payoff worth admitting, or None."""
        assert isinstance(oracle, OasisOracle)
        arguments = block, self.posted_prices, self.residual
        if self._slots is not None:
            return self._slots.best_response(oracle, *arguments, self.least_payoff)
        respond = oracle.chunk_best_response if self.whole_chunks else oracle.best_response
        return respond(*arguments, above=self.least_payoff)


class OasisChunk(Oasis):
    """Algorithm 1 with the printed Algorithm 2: whole chunks in each slot.

    Algorithm 2 is the oracle's alone, so there is no engine to choose.

    Parameters
    ----------
    lower_floor, upper_scale, least_payoff
        As in `Oasis`.
    """

    whole_chunks = True

    def __init__(
        self, lower_floor: protocol.Share = 0.0,
        upper_scale: protocol.Positive = 1.0, least_payoff: protocol.AtLeastZero = 0.0,
    ) -> None:  # fmt: skip
        super().__init__("oracle", lower_floor, upper_scale, least_payoff)


class OasisReoptimise(Reoptimise):
    """Solve what is left at each arrival, by the program of ends, and follow its plan.

    Parameters
    ----------
    nodes : int
        What a solve may take, in nodes of branch and bound with the work that goes with them: the
        result does not depend on the machine. A limit reached keeps the best plan found and is
        counted in the report.
    gap : float
        Relative gap at which a solve stops.
    time_limit : float, optional
        Seconds that a step may take; the result then depends on the machine.
    """

    card = protocol.Capabilities(may_give_up=True)

    solver_options: ClassVar[Mapping[str, object]] = FEW_HEURISTICS

    def _plan_again(self, slot: int) -> None:
        """Solve what is left; the start keeps the present plan and adds the new jobs."""
        began, rolling = now(), self._rolling
        rolling.advance(slot)
        known = rolling.instance
        assert isinstance(known, OasisInstance)
        rest = rest_of(known, rolling.commitments())
        self._plan = {name: rows_from(rows, slot) for name, rows in self._plan.items()}
        start = self._extended_plan(rest)
        if start is None:
            start = build_solution(rest, {}, rolling.formulation)
        places = len(known.worker_servers) + len(known.ps_servers)
        slots = sum(known.horizon - job.arrival + 1 for job in rest.jobs)
        bound: float | None
        if slots * places > MOST_PLACES:
            oracle = placing_oracle(rest, rolling.formulation)
            plan = best_schedules(
                oracle, oracle.rows.capacity, oracle.use_of(start), most_rounds=ROUNDS,
                options=self.options,
            )  # fmt: skip
            search = NeighbourhoodSearch(oracle, plan.prices, start=oracle.place(plan.responses))
            until = math.inf if self.time_limit is None else began + self.time_limit
            search.improve(lambda: search.iterations >= self.nodes or now() >= until)
            best, bound = search.solution() or start, plan.bound
        else:
            options = SolveOptions(gap=self.gap, threads=1, time_limit=self.time_limit,
                                   solver_options=dict(self.solver_options))  # fmt: skip
            if self.time_limit is None:
                result = solve_rest(rest, start, options, WORK_A_NODE * self.nodes)
            else:
                result = solve_by_ends(rest, start.formulation, options, incumbent=start)
            best, bound = result.solution or start, result.bound
        self._plan, objective = best.assignments(), best.objective()
        self._count(slot, objective, bound, not within_gap(objective, bound, self.gap))


def declared_estimates(instance: OasisInstance, lower_floor: float = 0.0) -> JsonObject:
    """U and L of each pool, exact, as the paper's experiments declare them: logs.

    On `lower_floor`, the algorithm's setting, L depends.
    """
    bounds = price_bounds(instance, lower_floor).items()
    return {pool: pool_bounds.to_dict(instance.resources) for pool, pool_bounds in bounds}


def theorem(instance: OasisInstance, lower_floor: float = 0.0) -> protocol.Theorem:
    """Theorem 4: OASiS is ``2 alpha``-competitive, with what it assumes.

    The setting is the algorithm's; a floor above 0 leaves the theorem's setting. ``quantities`` are
    U, L, eta and alpha, as natural logs where they underflow.
    """
    if not instance.jobs:
        return protocol.theorem_record("ratio", None, quantities={})
    bounds = price_bounds(instance, lower_floor)
    alpha = max(bound.alpha for bound in bounds.values())
    workers = instance.worker_demand, instance.worker_capacity
    share = largest_share([workers, (instance.ps_demand, instance.ps_capacity)])
    chunk_slots = max(job.minibatches * instance.minibatch_time(job) for job in instance.jobs)
    smallest = float(log_utilities(instance)[1].min())
    positive = math.isfinite(smallest)
    assumed = [
        ("demands much smaller than capacities", share <= 0.05, share),
        ("a chunk takes at most one slot", chunk_slots <= 1, chunk_slots),
        ("U and L are exact", lower_floor == 0, lower_floor),
        ("every utility at the horizon is positive", positive, smallest if positive else None),
    ]
    quantities: JsonObject = {"alpha": alpha}
    for pool, bound in bounds.items():
        logs = bound.to_dict(instance.resources)
        quantities[pool] = {
            "log_upper": logs["log_upper"], "log_eta": logs.get("log_eta"), "alpha": bound.alpha,
            "log_lower": min(logs["log_lower"].values(), default=None),
        }  # fmt: skip
    return protocol.theorem_record("ratio", 2 * alpha, assumed, quantities=quantities)


ONLINE = FamilyOnline(
    algorithms={
        "oasis": Oasis,
        "oasis-chunk": OasisChunk,
        "dual-price": DualPrice,
        "reoptimise": OasisReoptimise,
        "fifo": partial(Fifo, gangs="drawn"),
        "drf": Drf,
        "rrh": Rrh,
        "dorm": Dorm,
    },
    state=OptionalJobsState,
    committed_rows=this_slot,  # workers are elastic
    build_cluster=OasisCluster,
    declared_estimates=declared_estimates,
    theorems={"oasis": theorem},
)

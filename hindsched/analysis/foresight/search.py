"""Policies, one schedule a scenario: simulated ones, and the best ones of an extensive form.

A randomised policy is a mixture of deterministic ones. The best guarantee of a mixture is found by
column generation over policies: the duals of the master program weigh the scenarios, and the best
policy for these weights, an extensive form with another objective, is the next column. For *any*
weights that optimum bounds the guarantee from the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, inf
from typing import Any

import numpy as np
import pyomo.environ as pyo
from scipy.optimize import linprog

from hindsched.analysis.bounds import Bounds
from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance, canonical_json
from hindsched.json_types import JsonObject
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import RUN, Commitments, offline_program
from hindsched.models.futures import ExtensiveProgram, Futures, build_extensive
from hindsched.online.protocol import OnlineAlgorithm
from hindsched.online.registry import build_algorithm, estimates_of
from hindsched.online.simulator import simulate
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.work import now

RUNS = {"workers", "worker", "gpus", "servers"}
"""What a row holds that says what runs; of the others, only parameter servers, no end depends."""
CLOSE = 1e-6  # relative distance of two ends at which a search stops
SMALL_PROGRAM = 12_000
"""Columns up to which blocks keep all slots; beyond, what known policies rule out is cut."""
SMOOTHING = 0.3
"""Of the weights that are tried, the share of those with the best bound so far: the duals of a few
policies alone leave scenarios without weight, and what is found does badly there."""
LEAST_SHARE = 0.02  # of the mean weight: every scenario keeps it where blocks are cut by weights


@dataclass(frozen=True)
class Strategy:
    """A deterministic policy."""

    values: tuple[float, ...]  # in every scenario
    schedules: Any = None  # what it does there

    def expected(self, weights: Sequence[float]) -> float:
        """Weighted sum of the values."""
        return fsum(w * value for w, value in zip(weights, self.values, strict=True))


@dataclass(frozen=True)
class Guarantee:
    """The best share of hindsight (a factor of it, minimising) that holds in every scenario."""

    interval: Bounds
    weights: tuple[float, ...] = ()  # of the scenarios' values, at which the bound was found
    mixture: tuple[tuple[float, Strategy], ...] = ()  # the randomised policy that was found


@dataclass
class PolicySearch:
    """Best policies of an extensive form."""

    model: Model  # with an objective ``expected``
    values: Sequence[Expr]  # of the scenarios
    read: Callable[[], Strategy]  # the policy at the variables' values
    options: SolveOptions
    load: Callable[[Strategy], None] | None = None  # sets the variables to a known policy: a start

    @property
    def maximises(self) -> bool:
        """Whether values are to be large."""
        return bool(self.model.expected.sense == pyo.maximize)

    def best(
        self, weights: Sequence[float], seconds: float, known: Sequence[Strategy] = ()
    ) -> tuple[float | None, Strategy | None]:
        """Bound on the weighted sum, and the best policy found within the time."""
        terms = zip(weights, self.values, strict=True)
        self.model.expected.set_value(pyo.quicksum(w * value for w, value in terms))
        choose = max if self.maximises else min
        first = choose(known, key=lambda policy: policy.expected(weights), default=None)
        return self._solve(seconds, first)

    def least(
        self, optima: Sequence[Bounds], seconds: float, known: Sequence[Strategy] = ()
    ) -> Guarantee:
        """Best guarantee of a deterministic policy."""
        m, up = self.model, self.maximises
        m.share = pyo.Var(bounds=(0, 1) if up else (1, None))
        counted = [s for s, optimum in enumerate(optima) if (optimum.upper or 0.0) > 0]
        scale = [float((optima[s].lower if up else optima[s].upper) or 0.0) for s in counted]

        def row(_: Model, i: int) -> Expr:
            value, right = self.values[counted[i]], scale[i] * m.share
            return value >= right if up else value <= right

        m.at_least = pyo.Constraint(range(len(counted)), rule=row)
        m.expected.set_value(m.share)
        promised, first = best_promise(known, optima, up)
        m.share.set_value(promised)
        bound, policy = self._solve(seconds, first)
        for name in ("at_least", "share"):
            m.del_component(name)
        reached = None if policy is None else share_of(policy, optima, up)
        ends = (reached, bound) if up else (bound, reached)
        mixture = () if policy is None else ((1.0, policy),)
        return Guarantee(clipped(Bounds(*ends), up), (), mixture)

    def _solve(
        self, seconds: float, first: Strategy | None
    ) -> tuple[float | None, Strategy | None]:
        start = self.load is not None and first is not None and first.schedules is not None
        if start and self.load is not None and first is not None:
            self.load(first)
        within = replace(self.options, time_limit=max(0.1, seconds))
        result = solve_program(self.model, within, start=start)
        return result.bound, self.read() if result.has_point else None


def share_of(policy: Strategy, optima: Sequence[Bounds], up: bool) -> float | None:
    """What a policy guarantees: the worst quotient by the optimum; None if that is not known."""
    ends = [optimum.upper if up else optimum.lower for optimum in optima]
    pairs = [(v, end) for v, end in zip(policy.values, ends, strict=True)]
    if any(end is None or (not end and not up and v > 0) for v, end in pairs):
        return None
    quotients = [v / end for v, end in pairs if end] or [1.0]
    return min(quotients) if up else max(quotients)


def best_promise(
    known: Sequence[Strategy], optima: Sequence[Bounds], up: bool
) -> tuple[float | None, Strategy | None]:
    """The best share of hindsight that a known policy guarantees, and the policy."""
    shares = [(share_of(policy, optima, up), policy) for policy in known]
    reached = [(share, policy) for share, policy in shares if share is not None]
    return (max if up else min)(reached, key=lambda pair: pair[0], default=(None, None))


def no_better_than(
    fixed: Bounds, mixed: Bounds, known: Sequence[Strategy], optima: Sequence[Bounds], up: bool
) -> Guarantee:
    """The deterministic guarantee, which no mixture is behind, and the known policy with most."""
    promised, pure = best_promise(known, optima, up)
    mixture = () if pure is None else ((1.0, pure),)
    if up:
        lower = promised or 0.0
        ends = lower, max(lower, min(fixed.upper or 1.0, mixed.upper or 1.0))
    else:
        upper = inf if promised is None else promised
        ends = min(upper, max(fixed.lower or 1.0, mixed.lower or 1.0)), upper
    return Guarantee(Bounds(*ends), (), mixture)


def clipped(interval: Bounds, up: bool) -> Bounds:
    """Nobody is better than hindsight."""
    lower, upper = interval.lower, interval.upper
    if up:
        return Bounds(max(0.0, lower or 0.0), min(1.0, 1.0 if upper is None else upper))
    return Bounds(max(1.0, lower or 1.0), None if upper is None else max(1.0, upper))


def guarantee(
    best: Callable[
        [Sequence[float], float, Sequence[Strategy]], tuple[float | None, Strategy | None]
    ],
    optima: Sequence[Bounds],
    policies: Sequence[Strategy],
    up: bool,
    seconds: float,
    least_share: float = 0.0,
    known: tuple[Sequence[float], float] | None = None,
) -> Guarantee:
    """Best guarantee of a randomised policy, by column generation over deterministic ones.

    `best` is as `PolicySearch.best`; the policies are those to begin with, one at least. Every
    scenario keeps `least_share` of the mean weight; `known` is weights and a bound on their sum.
    """
    ends = [(optimum.lower or 0.0, optimum.upper) for optimum in optima]
    counted = [s for s, (_, upper) in enumerate(ends) if upper is None or upper > 0]
    if not counted:
        return Guarantee(Bounds(1.0, 1.0))
    if any(upper is None or lower <= 0 for lower, upper in (ends[s] for s in counted)):
        return Guarantee(clipped(Bounds(), up))
    far = np.array([float(ends[s][1 if up else 0] or 0.0) for s in counted])
    near = np.array([float(ends[s][0 if up else 1] or 0.0) for s in counted])
    columns, stop = list(policies), now() + seconds
    bound, centre = 1.0, np.full(len(counted), 1 / len(counted))
    best_known, pull = Guarantee(Bounds()), SMOOTHING
    if known is not None:
        scale = float(np.array(known[0])[counted] @ near)
        bound, centre = known[1] / scale, np.array(known[0])[counted] * far
        centre /= centre.sum()
        best_known = Guarantee(Bounds(), tuple(w / scale for w in known[0]))
    while True:
        table = np.array([[p.values[s] for p in columns] for s in counted]) / far[:, None]
        reached, mixture, duals = _mix(table, up)
        support = tuple((float(x), p) for x, p in zip(mixture, columns, strict=True) if x > 1e-9)
        if abs(reached - 1) <= CLOSE:  # nobody is better than hindsight
            return Guarantee(Bounds(reached, 1.0) if up else Bounds(1.0, reached), (), support)
        interval = Bounds(reached, bound) if up else Bounds(bound, reached)
        best_known = replace(best_known, interval=clipped(interval, up), mixture=support)
        seconds = stop - now()
        if abs(bound - reached) <= CLOSE * abs(bound) or seconds <= 0:
            return best_known
        duals = np.maximum((1 - pull) * duals + pull * centre, least_share / len(counted))
        weights = np.zeros(len(optima))
        weights[counted] = duals / far / float((duals / far) @ near)
        new_bound, policy = best(weights.tolist(), seconds, columns)
        if new_bound is not None and (new_bound < bound if up else new_bound > bound):
            bound, centre = new_bound, duals / duals.sum()
            best_known = replace(best_known, weights=tuple(weights.tolist()))
        is_new = policy is not None and all(
            np.abs(np.subtract(policy.values, p.values)).max() > CLOSE for p in columns
        )
        if policy is not None and is_new:
            columns.append(policy)
        elif pull == 0.0:
            interval = Bounds(reached, bound) if up else Bounds(bound, reached)
            return replace(best_known, interval=clipped(interval, up))
        pull = SMOOTHING if is_new else 0.0


def _mix(table: Floats, up: bool) -> tuple[float, Floats, Floats]:
    """The best worst row of a mixture of columns, the mixture, and weights of the rows."""
    rows, columns = table.shape
    sign = 1.0 if up else -1.0
    cost = np.zeros(columns + 1)
    cost[-1] = -sign
    matrix = np.hstack([-sign * table, np.full((rows, 1), sign)])
    total = np.ones((1, columns + 1))
    total[0, -1] = 0
    bounds = [(0, None)] * columns + [(None, None)]
    result = linprog(cost, matrix, np.zeros(rows), total, [1.0], bounds=bounds, method="highs")
    if result.x is None:
        raise SolveFailed(f"no mixture of policies: {result.message}")
    mixture = np.maximum(result.x[:-1], 0)
    mixture /= mixture.sum()
    duals = np.maximum(-result.ineqlin.marginals, 0)
    mixed = table @ mixture  # of the mixture itself, whatever the solver's tolerances
    return float(mixed.min() if up else mixed.max()), mixture, duals / duals.sum()


@dataclass
class FamilySearch:
    """Searches of a family's extensive form, built anew where known policies cut its blocks."""

    futures: Futures
    policies: str
    formulation: str
    optima: list[Bounds]
    options: SolveOptions

    @cached_property
    def is_cut(self) -> bool:
        """Whether the program is so large that known policies must say what of it is looked at."""
        if self.futures.sense == "max" or any(optimum.lower is None for optimum in self.optima):
            return False
        alone = Futures(self.futures.instances[:1], (1.0,))
        size = build_extensive(alone, self.policies, self.formulation).model.nvariables()
        return bool(size * len(self.futures) > SMALL_PROGRAM)

    @cached_property
    def _whole(self) -> PolicySearch:
        return self._searching(build_extensive(self.futures, self.policies, self.formulation))

    def best(
        self, weights: Sequence[float], seconds: float, known: Sequence[Strategy] = ()
    ) -> tuple[float | None, Strategy | None]:
        """As `PolicySearch.best`; beyond the best known policy's sum nothing is looked at."""
        up = self.futures.sense == "max"
        ends = [optimum.upper if up else optimum.lower for optimum in self.optima]
        if known and None not in ends:
            clairvoyant = fsum(w * float(end or 0.0) for w, end in zip(weights, ends, strict=True))
            for policy in known:
                if abs(policy.expected(weights) - clairvoyant) <= CLOSE * abs(clairvoyant):
                    return clairvoyant, policy
        if not self.is_cut:
            return self._whole.best(weights, seconds, known)
        least = [float(optimum.lower or 0.0) for optimum in self.optima]
        top = min((policy.expected(weights) for policy in known), default=inf)
        spare = top - fsum(w * low for w, low in zip(weights, least, strict=True))
        worst = [low + spare / w if w else inf for w, low in zip(weights, least, strict=True)]
        return self._cut(worst).best(weights, seconds, known)

    def least(self, seconds: float, known: Sequence[Strategy]) -> Guarantee:
        """As `PolicySearch.least`."""
        up = self.futures.sense == "max"
        top, policy = best_promise(known, self.optima, up)
        if top is not None and policy is not None and abs(top - 1) <= CLOSE:
            return Guarantee(Bounds(1.0, 1.0), (), ((1.0, policy),))
        if not self.is_cut:
            return self._whole.least(self.optima, seconds, known)
        worst = [(inf if top is None else top) * float(o.upper or inf) for o in self.optima]
        return self._cut(worst).least(self.optima, seconds, known)

    def _cut(self, worst: list[float]) -> PolicySearch:
        if inf in worst:
            raise InputError("policies", self.policies, "must have a known feasible one")
        limits = [value * (1 + 1e-9) + 1e-9 for value in worst]
        program = build_extensive(self.futures, self.policies, self.formulation, worst=limits)
        return self._searching(program)

    def _searching(self, program: ExtensiveProgram) -> PolicySearch:
        def read() -> Strategy:
            schedules = program.schedules()
            return Strategy(tuple(solution.objective() for solution in schedules), schedules)

        def load(policy: Strategy) -> None:
            program.load(policy.schedules)

        return PolicySearch(program.model, program.values, read, self.options, load)


def run_on(
    futures: Futures, algorithm: str, formulation: str | None, seeds: Sequence[int] = (0,)
) -> list[Strategy]:
    """What an algorithm does, by seed; a randomised one with all seeds."""
    family = futures.instances[0].family
    built: OnlineAlgorithm = build_algorithm(family, algorithm, {})
    known = tree_estimates(futures, built)
    strategies = list[Strategy]()
    for seed in seeds if built.randomised else (0,):
        runs = [simulate(instance, algorithm, seed=seed, formulation=formulation, estimates=known)
                for instance in futures.instances]  # fmt: skip
        values = tuple(run.objective for run in runs)
        strategies.append(Strategy(values, [run.solution for run in runs]))
    return strategies


def tree_estimates(futures: Futures, algorithm: OnlineAlgorithm) -> JsonObject:
    """What an algorithm is told in advance, once for the tree: a scenario's own would tell.

    The estimates of `all_futures`.
    """
    return estimates_of(all_futures(futures), algorithm.estimate_settings())


def all_futures(futures: Futures) -> Instance:
    """One instance that has the jobs of all scenarios, each record once."""
    jobs: dict[str, Any] = {}
    for s, instance in enumerate(futures.instances):
        for at, job in enumerate(instance.jobs):
            name = f"{job.name}#{len(jobs)}" if futures.record(s, at) not in jobs else ""
            jobs.setdefault(futures.record(s, at), job.model_copy(update={"name": name}))
    return futures.instances[0].with_fields(name="all futures", jobs=tuple(jobs.values()))


def commit_greedily(
    futures: Futures, formulation: str, options: SolveOptions
) -> list[Solution] | None:
    """Schedule what arrives as well as it can be, lock it, and go on; None where a solve ends.

    Whoever commits may decide the same as it runs, so it is a policy of either class.
    """
    decided: dict[tuple[tuple[int, ...], int], dict[str, Any]] = {}
    schedules = list[Solution]()
    for s, instance in enumerate(futures.instances):
        rows: dict[str, Any] = {}
        revealed = [futures.revealed(s, job) for job in range(len(instance.jobs))]
        for t in sorted(set(revealed)):
            node = futures.members(s, t), t
            jobs = tuple(job for job, at in zip(instance.jobs, revealed, strict=True) if at <= t)
            if node not in decided:
                part = instance.with_fields(jobs=jobs)
                fixed = Commitments(
                    now=t, assignments={name: use for name, use in rows.items() if use},
                    locked=frozenset(name for name, use in rows.items() if use),
                    rejected=frozenset(name for name, use in rows.items() if not use),
                )  # fmt: skip
                try:
                    program = offline_program(part, formulation, commitments=fixed)
                    if not solve_program(program.model, options).has_point:
                        return None
                    solution = program.extract()
                except (InputError, SolveFailed):
                    return None
                if solution is None or solution.violations():
                    return None
                new = solution.assignments()
                decided[node] = {job.name: list(new.get(job.name, ())) for job in jobs}
            rows = decided[node]
        served = {name: use for name, use in rows.items() if use}
        made = build_solution(instance, served, formulation)
        if made.violations():
            return None
        schedules.append(made)
    return schedules


def peeking(futures: Futures, policy: Sequence[Solution], policies: str) -> list[str]:
    """Where a policy's schedules differ though their histories are equal, a line each."""
    lines = list[str]()
    rows = [
        {**schedule.assignments(), **{name: list(rows) for name, rows in schedule.given_up.items()}}
        for schedule in policy
    ]
    for s, instance in enumerate(futures.instances):
        for at, job in enumerate(instance.jobs):
            revealed, rows_here = futures.revealed(s, at), rows[s].get(job.name, ())
            last = max([revealed, *(int(row["to"]) for row in rows_here)])
            for t in range(revealed, last + 1) if policies == RUN else (revealed,):
                other = next((o for o in futures.members(s, t) if o != s), None)
                rows_there = () if other is None else rows[other].get(job.name, ())
                if other is not None and _content_by_slot(
                    rows_here, t, policies
                ) != _content_by_slot(rows_there, t, policies):
                    who = f"{instance.name} and {futures.instances[other].name}"
                    lines.append(f"policy: {job.name} in slot {t} tells {who} apart")
                    break
    return lines


def _content_by_slot(rows: Any, slot: int, policies: str) -> list[str]:
    """What runs in a slot, or of one that commits in all, whatever chunks are called."""
    contents = []
    for row in rows:
        if not RUNS & row.keys():
            continue
        content = {key: value for key, value in row.items() if key not in ("chunk", "from", "to")}
        for t in range(int(row["from"]), int(row["to"]) + 1):
            if policies != RUN or t == slot:
                contents.append(canonical_json({**content, "slot": t}))
    return sorted(contents)

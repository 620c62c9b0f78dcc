"""Certificates of kind ``nonanticipative``: multipliers by a linear program, a tree a scenario.

The scenarios' blocks, linked by rows (N), are a linear program whose duals are the multipliers.
With these, or with none, each scenario is a problem of its own: decisions on completions split it,
and every leaf has the prices of its linear program. The bound is what the kernel makes of them,
whatever the programs' solver says.

Where jobs hold one window a block has a column for every job, window and mode on the merged
servers, as the kernel's own block lists them, and one for staying out where a job may. Another
family's is in its own package here: ``scenario_lp`` of ``scenarios.py``.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance, family_module, has_module
from hindsched.json_types import JsonObject
from hindsched.kernel import nonanticipative
from hindsched.kernel.problem import ScenarioProblem
from hindsched.kernel.trees import NEVER
from hindsched.kernel.windows import WindowCluster, WindowPricing, WindowProblem
from hindsched.models.base import RUN
from hindsched.models.futures import Futures
from hindsched.solutions.base import Solution
from hindsched.solvers.door.work import now

FORMAT, EXPECTED, GUARANTEE = "hindsched-certificate/1", "expected", "guarantee"
MOST_COLUMNS = 400_000
UNIT = 10**6  # multipliers are whole multiples of 1 / UNIT, so that they cancel exactly
MOST_LEAVES, MOST_CHECKED = 300, 800_000
"""Leaves of a scenario's tree, and windows that the kernel may have to look at in all of them."""
Window = tuple[Any, ...]  # a job's position, its first and last slot, and for oasis what of it
Row = tuple[Any, ...]  # name of a row set, then axes with their labels
Column = tuple[int, int, int, float, Mapping[Any, float]]
"""Job, first and last slot, cost, and what is used of each row in each of them."""
Decided = tuple[tuple[int, int, bool], ...]
"""Job, its latest completion or the slot before its earliest one, whether it is the latest."""


def can_certify_futures(instance: Instance, formulation: str) -> bool:
    """Whether the kernel knows certificates of this problem."""
    family = instance.exact.family
    return issubclass(family, ScenarioProblem) and formulation in family.nonanticipative


def certify_futures(
    futures: Futures, policies: str, formulation: str, weights: Sequence[float], last: int,
    seconds: float, schedules: Sequence[Solution] | None = None,
) -> JsonObject | None:  # fmt: skip
    """A certificate of the bound on the weighted sum; None where the blocks are too large.

    With schedules of who sees the future it is about the guarantee of any online algorithm. Behind
    the slot `last` it is supposed that nothing is worthwhile. Multipliers are those of the linear
    program of all scenarios, or none: what is better.
    """
    begun = now()
    weights = [float(f"{max(0.0, weight):.12g}") for weight in weights]
    if schedules is not None:
        worth = math.fsum(w * s.objective() for w, s in zip(weights, schedules, strict=True))
        weights = [float(f"{w / worth:.12g}") for w in weights]
    up = futures.sense == "max"
    problems = [instance.exact.problem(formulation) for instance in futures.instances]
    family, build_lp = futures.instances[0].family, window_lp
    if has_module("analysis.foresight", family, "scenarios"):
        build_lp = family_module("analysis.foresight", family, "scenarios").scenario_lp
    blocks = [build_lp(*each, policies, last) for each in zip(problems, weights, strict=True)]
    columns = sum(len(block.windows) for block in blocks)
    if columns > MOST_COLUMNS:
        return None
    linked = _multipliers(futures, policies, blocks, last, seconds / 2)
    free: list[dict[Window, int]] = [{} for _ in blocks]
    tried = [free] if linked is None else [free, linked]
    checked = sum(block.checked for block in blocks)
    most = max(1, min(MOST_LEAVES, MOST_CHECKED // checked))
    bounded = []
    for left, terms in zip(range(len(tried), 0, -1), tried, strict=True):
        trees = list[list[PricedLeaf]]()
        until = now() + (begun + seconds - now()) / left
        for s, block in enumerate(blocks):
            share = (until - now()) / (len(blocks) - s)
            trees.append(_tree(block, terms[s], most, share))
        bounded.append((math.fsum(leaves[0].bound for leaves in trees), terms, trees))
    _, terms, trees = max(bounded, key=lambda item: item[0])
    scenarios = [
        {
            "instance": instance.name, "instance_sha256": instance.sha256(), "weight": weights[s],
            "own": [{"job": instance.jobs[at].name, "from": first, "to": end,
                     "price": float(Fraction(m, UNIT)), **({"of": of[0]} if of else {})}
                    for (at, first, end, *of), m in sorted(terms[s].items()) if m],
            "schedule": None if schedules is None else schedules[s].to_dict(),
            **_leaf_rows(instance, blocks[s], trees[s], up),
        }
        for s, instance in enumerate(futures.instances)
    ]  # fmt: skip
    data = {
        "format": FORMAT, "family": futures.instances[0].family, "formulation": formulation,
        "kind": "nonanticipative", "policies": policies, "sense": futures.sense,
        "bound": 1e300 if up else -1e300,
        "claim": EXPECTED if schedules is None else GUARANTEE, "scenarios": scenarios,
    }  # fmt: skip
    proven = nonanticipative.prove([instance.exact for instance in futures.instances], data)
    end = float(proven.high if up else proven.low)
    data["bound"] = math.nextafter(end, math.inf if up else -math.inf)
    return data


def _multipliers(
    futures: Futures, policies: str, blocks: Sequence[ScenarioLP], last: int, seconds: float
) -> list[dict[Window, int]] | None:
    """Duals of (N), in units; None if there is no time for them."""
    alike: dict[Any, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    begin = 0
    for s, block in enumerate(blocks):
        for column, (at, first, end, *of) in enumerate(block.windows, begin):
            slot = first if policies == RUN else futures.revealed(s, at)
            members = futures.members(s, slot) if end <= last else (s,)
            if len(members) > 1:
                alike[members, futures.record(s, at), first, end, *of][s].append(column)
        begin += len(block.windows)
    links = [(key, k) for key in alike for k in range(len(key[0]) - 1)]
    cells = [
        (row, column, sign)
        for row, (key, k) in enumerate(links) for sign, s in ((1.0, k), (-1.0, k + 1))
        for column in alike[key][key[0][s]]
    ]  # fmt: skip
    if not cells:
        return None
    rows, columns, signs = zip(*cells, strict=True)
    equal = sp.vstack([
        sp.csr_array((signs, (rows, columns)), (len(links), begin)),
        sp.block_diag([block.equal for block in blocks]),
    ])  # fmt: skip
    right = np.concatenate([np.zeros(len(links)), *(block.right for block in blocks)])
    most = np.concatenate([block.most for block in blocks])
    solve: Any = linprog  # whose types know no sparse matrices
    result = solve(
        np.concatenate([block.cost for block in blocks]),
        sp.vstack([sp.block_diag([block.used for block in blocks]),
                   sp.block_diag([block.inner for block in blocks])]).tocsr(),
        np.concatenate([*(block.room for block in blocks), *(block.limit for block in blocks)]),
        equal.tocsr(), right,
        np.column_stack([np.zeros(begin), most]), method="highs",
        options={"time_limit": max(0.1, seconds)},
    )  # fmt: skip
    if result.status == 1:
        return None
    if result.status:
        raise SolveFailed(f"linear program of {len(futures)} scenarios: {result.message}")
    multipliers: list[dict[Window, int]] = [defaultdict(int) for _ in blocks]
    places = [
        {futures.record(s, at): at for at in reversed(range(len(instance.jobs)))}
        for s, instance in enumerate(futures.instances)
    ]
    for ((members, record, *window), k), dual in zip(links, result.eqlin.marginals, strict=False):
        for sign, s in ((-1, members[k]), (1, members[k + 1])):
            multipliers[s][places[s][record], *window] += sign * round(dual * UNIT)
    return multipliers


def _tree(
    block: ScenarioLP, multipliers: Mapping[Window, int], most: int, seconds: float
) -> list[PricedLeaf]:
    """Leaves of a scenario with its multipliers, the worst first; it alone is split."""
    until, number = now() + seconds, count()
    cost = block.cost + np.array([multipliers.get(window, 0) / UNIT for window in block.windows])
    first = block.leaf(cost, ())
    leaves = [(first.bound, next(number), first)]
    while len(leaves) < most and now() < until:
        worst = leaves[0][2]
        if worst.split is None:
            break
        heapq.heappop(leaves)
        for is_latest in (True, False):
            leaf = block.leaf(cost, (*worst.decisions, (*worst.split, is_latest)))
            heapq.heappush(leaves, (leaf.bound, next(number), leaf))
    return [leaf for *_, leaf in sorted(leaves)]


def _leaf_rows(
    instance: Instance, block: ScenarioLP, leaves: Sequence[PricedLeaf], up: bool
) -> JsonObject:
    """The leaves as a certificate's file has them; one alone is prices."""
    rows = []
    for leaf in leaves:
        decisions = [
            {"job": instance.jobs[job].name, "of": "completion",
             "at_most" if is_latest else "at_least": slot if is_latest else slot + 1}
            for job, slot, is_latest in leaf.decisions
        ]  # fmt: skip
        bound = -leaf.bound if up else leaf.bound
        prices = block.price_rows(leaf.prices)
        rows.append({"decisions": decisions, "bound": bound, "prices": prices})
    if len(rows) == 1:
        return {"kind": "lagrangian", "prices": rows[0]["prices"]}
    return {"kind": "tree", "prices": rows}


@dataclass(frozen=True)
class PricedLeaf:
    """Decisions with prices by row, and the least cost that they prove."""

    decisions: Decided
    prices: Any
    bound: float
    split: tuple[int, int] | None  # None where the program is undecided about no completion


def _window_columns(problem: Any, last: int) -> Iterator[Column]:
    """Every job's windows that begin up to one slot after `last`, as the kernel's block has them.

    Behind `last` slots are free and multipliers are 0, so that no later begin is better.
    """
    if not isinstance(problem, WindowProblem):  # jobs that hold GPUs
        for at, job in enumerate(problem.jobs.values()):
            for begin in range(job.s, max(job.s, last) + 1):
                cost = job.w * problem.seconds * (begin + job.p - job.s)
                use = {("gpus",): float(job.g * problem.seconds)}
                yield at, begin + 1, begin + job.p, float(cost), use
        return
    cluster = problem.cluster
    labels = _labels(cluster)
    for at, job in enumerate(problem.jobs):
        costs: dict[int, float] = {}
        for length, w, p, _, n, units in cluster.modes(job):
            amounts = zip(labels, cluster.workers[w][0], cluster.ps[p][0], strict=True)
            use = {label: float(n * d + units * s) for label, d, s in amounts if n * d + units * s}
            stop = max(job.first, last + 1)
            if cluster.last is not None:
                stop = min(stop, cluster.last - length + 1)
            for start in range(job.first, stop + 1):
                end = start + length - 1
                if end not in costs:
                    costs[end] = float(job.cost(end).low)
                yield at, start, end, costs[end], use


def _row_capacity(problem: Any) -> dict[Any, float]:
    """What the merged servers have, by row."""
    if not isinstance(problem, WindowProblem):
        return {("gpus",): float(problem.room * problem.seconds)}
    sums = map(float, WindowPricing(problem.cluster, [], "cluster").places[""])
    return dict(zip(_labels(problem.cluster), sums, strict=True))


def _labels(cluster: WindowCluster) -> list[Row]:
    return [(name, (axis, label)) for name, (axis, every) in cluster.rows.items()
            for label in every]  # fmt: skip


@dataclass(frozen=True)
class ScenarioLP:
    """A program in columns from 0 to `most`, of which rows of capacity have prices."""

    windows: list[Window]
    cost: Floats  # weighted
    at: Any  # the job whose completion the column decides, or -1
    ends: Any  # the slot of that
    most: Floats
    rows: list[tuple[Row, int]]  # of capacity, by slot; what they have, and columns use
    room: Floats
    used: Any
    equal: Any  # rows without prices, and their right sides
    right: Floats
    inner: Any  # the same, of which these are upper ends
    limit: Floats
    checked: int  # how many windows the kernel looks at for a leaf

    def leaf(self, cost: Floats, decisions: Decided) -> PricedLeaf:
        """Prices under decisions, which may leave too little room, and what all duals prove."""
        allowed, size = np.ones(len(cost), dtype=bool), len(self.rows)
        for job, slot, is_latest in decisions:
            allowed &= (self.at != job) | ((self.ends <= slot) == is_latest)
        most, rows = np.where(allowed, self.most, 0.0), sp.vstack([self.used, self.inner])
        sides = np.concatenate([self.room, self.limit])
        penalty, solve = 10 * (1 + np.abs(cost[allowed]).max()), cast("Any", linprog)
        result = solve(
            np.concatenate([cost, np.full(size, penalty)]),
            sp.hstack([rows, -sp.eye_array(len(sides), size)]), sides,
            sp.hstack([self.equal, sp.csr_array((len(self.right), size))]), self.right,
            np.column_stack([np.zeros(len(cost) + size), [*most, *[np.inf] * size]]),
            method="highs",
        )  # fmt: skip
        if result.status:
            raise SolveFailed(f"linear program of a scenario: {result.message}")
        duals: Any = np.maximum(0.0, -result.ineqlin.marginals)
        others = result.eqlin.marginals
        duals[:size] = [float(f"{dual:.9g}") for dual in duals[:size]]
        paid = np.minimum(0.0, cost + rows.T @ duals - self.equal.T @ others) * most
        off = 1e-9 * (sides @ duals + np.abs(self.right * others).sum() - paid.sum() + 1)
        bound = float(self.right @ others - sides @ duals + paid.sum() - off)
        share = result.x[: len(cost)]
        return PricedLeaf(
            decisions, duals[:size], bound, _undecided(self.at, self.ends, share, cost)
        )

    def price_rows(self, prices: Floats) -> JsonObject:
        """Prices as a certificate's file has them."""
        rows = defaultdict[str, Any](list)
        priced = zip(self.rows, prices.tolist(), strict=True)
        for ((name, *labels), t), price in sorted(priced, key=lambda row: row[0][1]):
            if price:
                rows[name].append({**dict(labels), "from": t, "to": t, "price": price})
        return dict(rows)


def _undecided(at: Any, ends: Any, share: Floats, cost: Floats) -> tuple[int, int] | None:
    """The job whose completion is least decided, and the slot in the middle of it."""
    split, spread = None, 1e-6
    for job in np.unique(at[(at >= 0) & (share > 1e-6) & (share < 1 - 1e-6)]):
        columns = np.flatnonzero((at == job) & (share > 1e-6))
        columns = columns[np.argsort(ends[columns], kind="stable")]
        if ends[columns[0]] == ends[columns[-1]]:
            continue
        mean = share[columns] @ cost[columns]
        wide = float(share[columns] @ np.abs(cost[columns] - mean)) + 1e-5
        if wide > spread:
            below = np.cumsum(share[columns])[ends[columns] < ends[columns[-1]]]
            middle = columns[min(int(np.searchsorted(below, 0.5)), len(below) - 1)]
            split, spread = (int(job), int(ends[middle])), wide
    return split


def window_lp(problem: Any, weight: float, policies: str, last: int) -> ScenarioLP:
    """Windows that begin up to one slot after `last`."""
    listed, capacity = list(_window_columns(problem, last)), _row_capacity(problem)
    side = dict[Any, int]()
    if isinstance(problem, WindowProblem) and not problem.cluster.must_complete:
        listed += [(at, NEVER, NEVER, 0.0, {}) for at in range(len(problem.jobs))]
    cells = [
        (side.setdefault((row, t), len(side)), column, amount)
        for column, (_, first, end, _, use) in enumerate(listed)
        for row, amount in use.items() for t in range(first, min(end, last) + 1)
    ]  # fmt: skip
    rows, columns, amounts = zip(*cells, strict=True) if cells else ((), (), ())
    at, size = np.array([column[0] for column in listed]), len(listed)
    once = sp.csr_array((np.ones(size), (at, np.arange(size))), (at.max() + 1, size))
    return ScenarioLP(
        [column[:3] for column in listed], weight * np.array([column[3] for column in listed]), at,
        np.array([column[2] for column in listed]), np.ones(size), list(side),
        np.array([capacity[row] for row, _ in side]),
        sp.csr_array((amounts, (rows, columns)), (len(side), size)), once,
        np.ones(once.shape[0]), sp.csr_array((0, size)), np.zeros(0), size,
    )  # fmt: skip

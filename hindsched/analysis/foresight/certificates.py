"""Certificates of kind ``nonanticipative``: multipliers by a linear program, a tree a scenario.

The scenarios' blocks (`blocks`), linked by rows (N), are a linear program whose duals are the
multipliers. With these, or with none, each scenario is a problem of its own: decisions on
completions split it, and every leaf has the prices of its linear program. The bound is what the
kernel makes of them, whatever the programs' solver says.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from hindsched.analysis.foresight.blocks import (
    Block,
    Leaf,
    Window,
    window_block,
)
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.kernel import nonanticipative
from hindsched.models.base import RUN
from hindsched.models.futures import Futures
from hindsched.solutions.base import Solution

FORMAT, EXPECTED, GUARANTEE = "hindsched-certificate/1", "expected", "guarantee"
MOST_COLUMNS = 400_000
UNIT = 10**6
"""Multipliers are whole multiples of 1 / UNIT, so that they cancel exactly."""
MOST_LEAVES, MOST_CHECKED = 300, 800_000
"""Leaves of a scenario's tree, and windows that the kernel may have to look at in all of them."""


def can_certify(instance: Instance, formulation: str) -> bool:
    """Whether the kernel knows certificates of this problem."""
    return formulation in getattr(instance.exact.family, "NONANTICIPATIVE", ())


def certify(
    futures: Futures, policies: str, formulation: str, weights: Sequence[float], last: int,
    seconds: float, schedules: Sequence[Solution] | None = None,
    own: Sequence[Mapping[Window, float]] | None = None,
) -> JsonObject | None:  # fmt: skip
    """A certificate of the bound on the weighted sum; None where the blocks are too large.

    With schedules of who sees the future it is about the guarantee of any online algorithm. Behind
    the slot `last` it is supposed that nothing is worthwhile. Multipliers (`own`: by scenario and
    window) are by default those of the linear program of all scenarios, or none: what is better.
    """
    begun = time.monotonic()
    weights = [float(f"{max(0.0, weight):.12g}") for weight in weights]
    if schedules is not None:
        worth = math.fsum(w * own.objective() for w, own in zip(weights, schedules, strict=True))
        weights = [float(f"{w / worth:.12g}") for w in weights]
    up = futures.sense == "max"
    problems = [instance.exact.problem(formulation) for instance in futures.instances]
    own_module = f"{__package__}.{futures.instances[0].family}"
    build = import_module(own_module).block if find_spec(own_module) else None
    blocks = [
        build(problem, policies, w) if build else window_block(problem, last, w)
        for problem, w in zip(problems, weights, strict=True)
    ]
    columns = sum(len(block.windows) for block in blocks)
    if columns > MOST_COLUMNS:
        return None
    if own is not None:
        tried = [_cancelling(futures, policies, own)]
    else:
        linked = _multipliers(futures, policies, blocks, last, seconds / 2)
        tried = [[{} for _ in blocks], *([] if linked is None else [linked])]
    checked = sum(block.checked for block in blocks)
    most = max(1, min(MOST_LEAVES, MOST_CHECKED // checked))
    found = []
    for left, terms in zip(range(len(tried), 0, -1), tried, strict=True):
        trees = list[list[Leaf]]()
        until = time.monotonic() + (begun + seconds - time.monotonic()) / left
        for s, block in enumerate(blocks):
            share = (until - time.monotonic()) / (len(blocks) - s)
            trees.append(_tree(block, terms[s], most, share))
        found.append((math.fsum(leaves[0].bound for leaves in trees), terms, trees))
    _, terms, trees = max(found, key=lambda one: one[0])
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
    futures: Futures, policies: str, blocks: Sequence[Block], last: int, seconds: float
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
    found = solve(
        np.concatenate([block.cost for block in blocks]),
        sp.vstack([sp.block_diag([block.used for block in blocks]),
                   sp.block_diag([block.inner for block in blocks])]).tocsr(),
        np.concatenate([*(block.room for block in blocks), *(block.limit for block in blocks)]),
        equal.tocsr(), right,
        np.column_stack([np.zeros(begin), most]), method="highs",
        options={"time_limit": max(0.1, seconds)},
    )  # fmt: skip
    if found.status == 1:
        return None
    if found.status:
        raise SolveFailed(f"linear program of {len(futures)} scenarios: {found.message}")
    own: list[dict[Window, int]] = [defaultdict(int) for _ in blocks]
    places = [
        {futures.record(s, at): at for at in reversed(range(len(instance.jobs)))}
        for s, instance in enumerate(futures.instances)
    ]
    for ((members, record, *window), k), dual in zip(links, found.eqlin.marginals, strict=False):
        for sign, s in ((-1, members[k]), (1, members[k + 1])):
            own[s][places[s][record], *window] += sign * round(dual * UNIT)
    return own


def _tree(block: Block, own: Mapping[Window, int], most: int, seconds: float) -> list[Leaf]:
    """Leaves of a scenario with own terms, the worst first; it alone is split."""
    until, number = time.monotonic() + seconds, count()
    cost = block.cost + np.array([own.get(window, 0) / UNIT for window in block.windows])
    first = block.leaf(cost, ())
    leaves = [(first.bound, next(number), first)]
    while len(leaves) < most and time.monotonic() < until:
        worst = leaves[0][2]
        if worst.split is None:
            break
        heapq.heappop(leaves)
        for is_latest in (True, False):
            leaf = block.leaf(cost, (*worst.decisions, (*worst.split, is_latest)))
            heapq.heappush(leaves, (leaf.bound, next(number), leaf))
    return [leaf for *_, leaf in sorted(leaves)]


def _leaf_rows(instance: Instance, block: Block, leaves: Sequence[Leaf], up: bool) -> JsonObject:
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


def _cancelling(
    futures: Futures, policies: str, own: Sequence[Mapping[Window, float]]
) -> list[dict[Window, int]]:
    """Multipliers in units, whose sum over every class is exactly 0."""
    found: list[dict[Window, int]] = [{} for _ in own]
    sums: dict[Any, int] = defaultdict(int)
    for s, terms in enumerate(own):
        for (at, first, end), price in terms.items():
            told = futures.revealed(s, at)
            members = futures.members(s, first if policies == RUN else told)
            if first >= told and len(members) > 1:
                found[s][at, first, end] = round(price * UNIT)
                sums[members, futures.record(s, at), first, end] += round(price * UNIT)
    for (members, record, first, end), rest in sums.items():
        s = members[0]
        jobs = range(len(futures.instances[s].jobs))
        window = next(at for at in jobs if futures.record(s, at) == record), first, end
        found[s][window] = found[s].get(window, 0) - rest
    return found

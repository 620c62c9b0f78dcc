"""Certificates of kind ``nonanticipative``: multipliers and prices from one linear program.

The program has a column for every job, window and mode of every scenario on the merged servers, as
the kernel's own block lists them, rows (N) by window, and rows of capacity. Its duals are the
multipliers and the prices; the bound is what the kernel makes of them, whatever the program's
solver says.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.kernel import nonanticipative
from hindsched.kernel.windows import Problem as WindowProblem
from hindsched.models.base import RUN
from hindsched.models.futures import Futures
from hindsched.solutions.base import Solution

FORMAT, EXPECTED, GUARANTEE = "hindsched-certificate/1", "expected", "guarantee"
MOST_COLUMNS = 400_000
UNIT = 10**6
"""Prices are whole multiples of 1 / UNIT, so that they cancel exactly."""
Window = tuple[int, int, int]
"""A job's position, and its first and last slot."""
Column = tuple[int, int, int, float, Mapping[Any, float]]
"""Job, first and last slot, cost, and what is used of each row in each of them."""


def can_certify(instance: Instance, formulation: str) -> bool:
    """Whether the kernel knows certificates of this problem."""
    return formulation in getattr(instance.exact.family, "NONANTICIPATIVE", ())


def certify(
    futures: Futures, policies: str, formulation: str, weights: Sequence[float], last: int,
    seconds: float, schedules: Sequence[Solution] | None = None,
    own: Sequence[Mapping[Window, float]] | None = None,
) -> JsonObject | None:  # fmt: skip
    """A certificate of the bound on the weighted sum, or on the guarantee of any online algorithm.

    Parameters
    ----------
    futures, policies, formulation
        What it is about.
    weights : sequence of float
        Of the scenarios' values.
    last : int
        Last slot of the linear program, behind which it is supposed that nothing is worthwhile.
    seconds : float
        Time limit of the linear program.
    schedules : sequence of Solution, optional
        By who sees the future: with them it is about the guarantee.
    own : sequence of mapping, optional
        Multipliers by scenario and (job's position, first slot, last slot), from elsewhere; by
        default those of the linear program of all scenarios.

    Returns
    -------
    dict or None
        The file's data; None where the program is too large or not solved in time.
    """
    weights = [float(f"{max(0.0, weight):.12g}") for weight in weights]
    if schedules is not None:
        worth = math.fsum(w * own.objective() for w, own in zip(weights, schedules, strict=True))
        weights = [float(f"{w / worth:.12g}") for w in weights]
    given = None if own is None else _cancelling(futures, policies, own)
    found = _duals(futures, policies, formulation, weights, last, seconds, given)
    if found is None:
        return None
    scenarios = [
        {
            "instance": instance.name, "instance_sha256": instance.sha256(), "weight": weights[s],
            "own": found[s][0], "kind": "lagrangian", "prices": found[s][1],
            "schedule": None if schedules is None else schedules[s].to_dict(),
        }
        for s, instance in enumerate(futures.instances)
    ]  # fmt: skip
    up = futures.sense == "max"
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


def _columns(problem: Any, last: int) -> Iterator[Column]:
    """Every job's windows that begin up to one slot after `last`, as the kernel's block has them.

    Behind `last` slots are free and multipliers are 0, so that no later begin is better.
    """
    if not isinstance(problem, WindowProblem):  # jobs that hold GPUs
        for at, job in enumerate(problem.jobs.values()):
            for begin in range(job.s, max(job.s, last) + 1):
                cost = job.w * problem.seconds * (begin + job.p - job.s)
                yield at, begin + 1, begin + job.p, float(cost), {("gpus", ""): float(job.g)}
        return
    cluster = problem.cluster
    labels = [(name, label) for name, (_, known) in cluster.rows.items() for label in known]
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


def _room(problem: Any) -> dict[Any, float]:
    """What the merged servers have, by row."""
    if not isinstance(problem, WindowProblem):
        return {("gpus", ""): float(problem.room)}
    cluster = problem.cluster
    labels = [(name, label) for name, (_, known) in cluster.rows.items() for label in known]
    sums = [float(sum(amounts)) for amounts in zip(*cluster.servers.values(), strict=True)]
    return dict(zip(labels, sums, strict=True))


def _duals(
    futures: Futures, policies: str, formulation: str, weights: Sequence[float], last: int,
    seconds: float, given: Sequence[Mapping[Window, int]] | None = None,
) -> list[tuple[list[JsonObject], JsonObject]] | None:  # fmt: skip
    """Multipliers and prices of every scenario."""
    problems = [instance.exact.problem(formulation) for instance in futures.instances]
    is_gang = not isinstance(problems[0], WindowProblem)
    must = is_gang or problems[0].cluster.must_complete
    cost, rows, columns, entries = list[float](), list[int](), list[int](), list[float]()
    side: dict[Any, int] = {}
    in_window: dict[Any, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for s, problem in enumerate(problems):
        for at, first, end, alone, use in _columns(problem, last):
            column = len(cost)
            if column >= MOST_COLUMNS:
                return None
            cost.append(weights[s] * alone)
            if given is not None:
                cost[-1] += given[s].get((at, first, end), 0) / UNIT
            told = futures.revealed(s, at)
            members = futures.members(s, first if policies == RUN else told)
            if len(members) > 1 and given is None and end <= last:
                window = members, futures.record(s, at), first, end
                in_window[window][s].append(column)
            cells = [((s, "job", at), 1.0)]
            cells += [
                ((s, row, t), n) for row, n in use.items() for t in range(first, min(end, last) + 1)
            ]
            for key, amount in cells:
                rows.append(side.setdefault(key, len(side)))
                columns.append(column)
                entries.append(amount)
    rooms = [_room(problem) for problem in problems]
    right = [1.0 if key[1] == "job" else rooms[key[0]][key[1]] for key in side]
    links = [(key, k) for key in in_window for k in range(len(key[0]) - 1)]
    equal = sp.lil_array((len(links), len(cost)))
    for row, (key, k) in enumerate(links):
        for sign, s in ((1.0, key[0][k]), (-1.0, key[0][k + 1])):
            for column in in_window[key][s]:
                equal[row, column] = sign
    table = sp.csr_array((entries, (rows, columns)), (len(side), len(cost)))
    jobs = np.array([key[1] == "job" for key in side])
    upper = ~jobs if must else np.ones(len(side), dtype=bool)
    both: Any = sp.vstack([equal, table[~upper]])
    solve: Any = linprog  # whose types know no sparse matrices
    found = solve(
        cost, table[upper], np.array(right)[upper], both.tocsr(),
        np.concatenate([np.zeros(len(links)), np.ones(int((~upper).sum()))]),
        method="highs", options={"time_limit": seconds},
    )  # fmt: skip
    if found.status == 1:
        return None
    if found.status:
        raise SolveFailed(f"linear program of {len(futures)} scenarios: {found.message}")
    own: list[dict[Any, int]] = [defaultdict(int) for _ in problems]
    for s, terms in enumerate(given or ()):
        for (at, first, end), price in terms.items():
            own[s][futures.instances[s].jobs[at].name, first, end] = price
    for (key, k), dual in zip(links, found.eqlin.marginals, strict=False):
        _, record, first, end = key
        for sign, s in ((-1, key[0][k]), (1, key[0][k + 1])):
            at = next(
                j for j in range(len(futures.instances[s].jobs)) if futures.record(s, j) == record
            )
            own[s][futures.instances[s].jobs[at].name, first, end] += sign * round(dual * UNIT)
    prices: list[dict[Any, dict[int, int]]] = [defaultdict(dict) for _ in problems]
    kept = [key for key, is_upper in zip(side, upper, strict=True) if is_upper]
    for (s, row, t), dual in zip(kept, found.ineqlin.marginals, strict=True):
        if row != "job" and (price := round(max(0.0, -dual) * UNIT)):
            prices[s][row][t] = price
    return [
        (
            [{"job": job, "from": first, "to": end, "price": float(Fraction(m, UNIT))}
             for (job, first, end), m in sorted(own[s].items()) if m],
            _price_rows(problem, prices[s]),
        )
        for s, problem in enumerate(problems)
    ]  # fmt: skip


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


def _price_rows(problem: Any, prices: Mapping[Any, Mapping[int, int]]) -> JsonObject:
    """Prices as a certificate's file has them."""
    found: dict[str, Any] = defaultdict(list)
    for (name, label), by_slot in sorted(prices.items()):
        axis = {} if not label else {problem.cluster.rows[name][0]: label}
        for t, price in sorted(by_slot.items()):
            found[name].append({**axis, "from": t, "to": t, "price": float(Fraction(price, UNIT))})
    if isinstance(problem, WindowProblem):
        return dict(found)
    scale = Fraction(problem.seconds)  # there a price is that of a GPU-second
    for row in found["gpus"]:
        row["price"] = float(Fraction(row["price"]) / scale)
    return dict(found)

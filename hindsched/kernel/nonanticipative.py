"""Certificates about who cannot see the future: kind ``nonanticipative``.

Scenarios are instances of one cluster that differ in their jobs. In slot t those with the same
ordered list of job records revealed by then cannot be told apart, so an online policy begins in
them the same jobs in the same windows (class ``run``), or decides alike on all of a job that
arrives (``commit``). Multipliers m on "job j runs in the window a..b" that add up to 0 over every
such class change no policy's weighted sum of values; without the classes every scenario is then an
offline problem of its own with own terms, whose best responses at prices bound it. What is proven:

    sum_s w_s value_s(policy)  <=  sum_s [ w_s worth of the prices + sum_j best response(j) ]

(maximising; minimising >=), for every policy, randomised ones too. Where scenarios come with
schedules of values v_s, the bound over sum_s w_s v_s bounds the share of hindsight (the factor of
it, minimising) that any online algorithm can promise: v_s is on the safe side of the optimum.

Replacing a mode by one that no other beats (see `windows`) follows from what begins, so policies
may be taken to use those modes alone. Jobs run in one piece, and completion times count.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from . import gang, reading, windows
from .exact import Data, Interval, exactly, total
from .reading import require

KEYS = {"format", "family", "formulation", "kind", "policies", "sense", "bound", "claim",
        "scenarios"}  # fmt: skip
FORMULATIONS = {"batchsched": ("modes", "literal"), "gang": ("non-preemptive",),
                "astraea": ("optional,modes", "optional,literal")}  # fmt: skip
LATER = {"astraea": 1}
"""Slots between a job's arrival and the step in which it is told."""
Own = dict[tuple[int, int], Any]
"""Multipliers of a job by window."""


def prove(instances: Sequence[Any], data: Data) -> Interval:
    """What a certificate proves of the instances, in the order of its scenarios.

    Raises
    ------
    Refused
        If the multipliers do not cancel, a file is of another scenario, or more is claimed.
    """
    data = reading.exact_numbers(data)
    require(set(data) == KEYS, f"keys must be {sorted(KEYS)}")
    require(data["kind"] == "nonanticipative", "kind: must be nonanticipative")
    require(data["policies"] in ("run", "commit"), "policies: must be run or commit")
    require(data["claim"] in ("expected", "guarantee"), "claim: must be expected or guarantee")
    scenarios, first = data["scenarios"], instances[0].data
    family, formulation = data["family"], data["formulation"]
    require(formulation in FORMULATIONS.get(family, ()), "formulation: has no such certificates")
    require(len(scenarios) == len(instances), "scenarios: must be one an instance")
    for n, (instance, row) in enumerate(zip(instances, scenarios, strict=True)):
        keys = {"instance", "instance_sha256", "weight", "own", "prices", "schedule"}
        require(set(row) == keys, f"scenarios[{n}]: keys must be {sorted(keys)}")
        require(instance.data["family"] == family, f"scenarios[{n}]: is of another family")
        require(_cluster(instance.data) == _cluster(first), f"scenarios[{n}]: another cluster")
        require(row["instance"] == instance.data["name"], f"scenarios[{n}]: another instance")
        require(reading.number(row["weight"], f"scenarios[{n}].weight") >= 0, "weight")
    own = [_own_terms(row["own"], f"scenarios[{n}].own") for n, row in enumerate(scenarios)]
    _check_cancel([instance.data for instance in instances], own, data["policies"], family)
    sense = instances[0].family.SENSE
    require(data["sense"] == sense, f"sense: must be {sense}")
    parts, hindsight = list[Interval](), list[Interval]()
    bound = _gang if family == "gang" else _windows
    for instance, row, terms in zip(instances, scenarios, own, strict=True):
        problem = instance.problem(formulation)
        parts.append(bound(problem, row["prices"], row["weight"], terms))
        if data["claim"] == "guarantee":
            verdict = problem.check(row["schedule"])
            require(verdict.feasible, f"{row['instance']}: its schedule is infeasible")
            hindsight.append(verdict.value.times(row["weight"]))
    proven = total(parts)
    if data["claim"] == "expected":
        weighed = sum(row["weight"] for row in scenarios)
        require(abs(weighed - 1) <= Fraction(1, 10**9), "weights: must have the sum 1")
    else:
        scale = total(hindsight)
        require(scale.low > 0, "schedules: must be worth something")
        near = abs(scale.low - 1) <= Fraction(1, 10**6)
        require(near, "weights: with the schedules' values they must have the sum 1")
        ends = [end / by for end in (proven.low, proven.high) for by in (scale.low, scale.high)]
        proven = Interval(min(ends), max(ends))
    reading.check_stated(data["bound"], proven, sense, "bound")
    return proven


def check_hashes(data: Data, hashes: Sequence[str]) -> None:
    """Refuse files that are not those of the certificate's scenarios."""
    for n, (row, found) in enumerate(zip(data["scenarios"], hashes, strict=True)):
        require(row["instance_sha256"] == found, f"scenarios[{n}]: is of another instance")


def _cluster(data: Data) -> Any:
    return {key: data[key] for key in data if key not in ("jobs", "name", "provenance")}


def _own_terms(rows: Any, here: str) -> dict[str, Own]:
    """Multipliers by job and window."""
    found: dict[str, Own] = defaultdict(dict)
    for row in rows:
        require(set(row) == {"job", "from", "to", "price"}, f"{here}: job, from, to, price")
        window = reading.span(row, here)
        reading.within("cells", window[1], here)
        require(type(row["price"]) in (int, Fraction), f"{here}: price must be a number")
        require(window not in found[row["job"]], f"{here}: a window stands twice")
        found[row["job"]][window] = row["price"]
    return found


def _check_cancel(
    instances: Sequence[Data], own: Sequence[dict[str, Own]], policies: str, family: str
) -> None:
    """Over every class, multipliers on one window of one job add up to 0."""
    histories = []
    for data in instances:
        seconds = Fraction(data["slot_seconds"])
        arrivals = [
            int(job["submit"] / seconds) + 1 if family == "gang"
            else job["arrival"] + LATER.get(family, 0) for job in data["jobs"]
        ]  # fmt: skip
        records = [json.dumps(job, sort_keys=True, default=str) for job in data["jobs"]]
        histories.append(list(zip(arrivals, records, strict=True)))
    sums: dict[Any, Any] = defaultdict(int)
    for data, history, terms in zip(instances, histories, own, strict=True):
        told = {job["name"]: at for job, at in zip(data["jobs"], history, strict=True)}
        for name, windows_ in terms.items():
            require(name in told, f"own: {name} is no job of {data['name']}")
            arrival, record = told[name]
            for (first, last), price in windows_.items():
                require(first >= arrival, f"own: {name} has not arrived in slot {first}")
                slot = first if policies == "run" else arrival
                reading.spend(len(history))
                known = tuple(job for at, job in history if at <= slot)
                sums[known, record, first, last] += price
    require(not any(sums.values()), "own: multipliers must add up to 0 over every class")


def _windows(problem: windows.Problem, prices: Any, weight: Any, own: dict[str, Own]) -> Interval:
    """Bound of a window family's scenario at prices of its merged servers, with own terms."""
    cluster = problem.cluster
    worth, _ = windows._Rows(cluster, problem.jobs, "cluster").price(prices)
    every = enumerate(problem.jobs)
    return total([worth, *(_window(problem, at, prices, weight, own.get(job.name, {}))
                           for at, job in every)])  # fmt: skip


def _window(
    problem: windows.Problem, position: int, prices: Any, weight: Any, own: Own
) -> Interval:
    """Best response in one window: all starts up to the last with a price or an own term."""
    cluster, job, sign = problem.cluster, problem.jobs[position], problem.cluster.sign
    labels = [(n, label) for n, (_, known) in cluster.rows.items() for label in known]
    last = max((row["to"] for rows in prices.values() for row in rows), default=0)
    paid = {label: [0] * (last + 1) for label in labels}
    for name, rows in prices.items():
        axis = cluster.rows[name][0]
        for row in rows:
            for t in range(row["from"], row["to"] + 1):
                paid[name, row[axis]][t] += row["price"]
    for series in paid.values():
        for t in range(1, last + 1):
            series[t] += series[t - 1]
    best = None if cluster.must_complete else exactly(0)
    far = max([last, *(window[0] for window in own)]) + 1
    for length, w, p, _, n, units in cluster.modes(job):
        amounts = zip(labels, cluster.workers[w][0], cluster.ps[p][0], strict=True)
        use = [(label, n * d + units * s) for label, d, s in amounts]
        stop = max(job.first, far)
        if cluster.last is not None:
            stop = min(stop, cluster.last - length + 1)
        for start in range(job.first, stop + 1):
            reading.spend(20 + 5 * len(use))
            i, j = min(start - 1, last), min(start + length - 1, last)
            pay = sum(amount * (paid[label][j] - paid[label][i]) for label, amount in use)
            pay += own.get((start, start + length - 1), 0)
            found = job.cost(start + length - 1).times(weight) + exactly(pay)
            if best is None or found.low < best.low:
                best = found if best is None else Interval(found.low, min(best.high, found.high))
            elif found.high < best.high:
                best = Interval(best.low, found.high)
    require(best is not None, f"job {job.name}: has no window")
    assert best is not None
    return best.times(sign)


def _gang(problem: gang.Problem, prices: Any, weight: Any, own: dict[str, Own]) -> Interval:
    """Bound of a scenario of jobs in one piece: at begins where something changes, and own ones."""
    ((cuts, levels),) = gang.price_steps(prices, {"": problem.room}, Fraction(problem.seconds))
    paid = gang.Steps(cuts, levels)
    parts = [exactly(-problem.room * paid.sums[-1])]
    for name, job in problem.jobs.items():
        terms, best = own.get(name, {}), None
        require(all(b - a + 1 == job.p for a, b in terms), f"own: {name} takes {job.p} slots")
        far = max([cuts[-1], *(first for first, _ in terms), job.s]) + 1
        for begin in range(job.s, far + 1):  # the time before the first slot that it holds
            reading.spend(20)
            pay = job.g * (paid.paid(begin + job.p) - paid.paid(begin))
            cost = weight * job.w * problem.seconds * (begin + job.p - job.s) + pay
            cost += terms.get((begin + 1, begin + job.p), 0)
            best = cost if best is None else min(best, cost)
        parts.append(exactly(best if best is not None else 0))
    return total(parts)

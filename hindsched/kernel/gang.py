"""gang (min): jobs that hold g GPUs for p slots; the numbers are those of ``docs/gang.md``.

Formulations are a kind (``non-preemptive``, ``preemptive``, ``elastic``) and what is minimised: sum
of w (C - submit), the makespan, or the weight of missed deadlines. Prices stand on GPU-seconds over
spans of slots, rows of one pool, which servers only restrict; behind them time is free, without
end. No price helps a makespan: its bound follows from the instance.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from math import lcm
from typing import Any

from . import reading, trees
from .exact import Interval, ceiling, exactly
from .reading import Checked, Progress, Violation, note, require, whole

SENSE = "min"
GOALS = ("completion", "makespan", "deadlines")
FORMULATIONS = {
    f"{kind},{goal}".removesuffix(",completion"): (kind, goal)
    for kind in ("non-preemptive", "preemptive", "elastic") for goal in GOALS
}  # fmt: skip
FAR, ENDLESS = 10**12, 10**24


class Job:
    """A job in slots: submitted at s, due by `due` (None: never), p slots on g GPUs."""

    def __init__(self, data: Mapping[str, Any], seconds: Any, room: int) -> None:
        self.name, here = data["name"], f"job {data['name']}"
        times = [Fraction(data[key]) / seconds for key in ("submit", "duration")]
        require(all(t.denominator == 1 for t in times), f"{here}: times must be whole slots")
        self.s, self.p = map(int, times)
        self.g = whole(data["gpus"], 1, here)
        self.most = min(room, whole(data.get("most_gpus", room), self.g, here))
        self.w, due = data.get("weight", 1), data.get("deadline")
        self.due = None if due is None else int(due / Fraction(seconds))
        require(min(self.p, self.w) > 0, f"{here}: duration and weight must be above 0")
        require(self.g <= room, f"{here}: asks for more than {room} GPUs")


def problem(instance: Mapping[str, Any]) -> tuple[dict[str, int], int, list[Job]]:
    """GPUs by server (none: one pool), GPUs in all, and the jobs."""
    reading.natural(instance, frozenset({"provenance"}), "instance")
    listed = instance.get("servers") or ()
    known = reading.names(listed, "servers")
    sizes = {name: whole(s["gpus"], 1, name) for name, s in zip(known, listed, strict=True)}
    require((instance.get("gpus") is None) == bool(sizes), "instance: must give gpus or servers")
    room = sum(sizes.values()) or whole(instance["gpus"], 1, "gpus")
    placement = instance.get("placement", "pool")
    require(placement == "pool" or (sizes and placement == "consolidated"), "placement: unknown")
    reading.names(instance["jobs"], "jobs")
    return sizes, room, [Job(job, instance["slot_seconds"], room) for job in instance["jobs"]]


def check(instance: Mapping[str, Any], solution: Mapping[str, Any]) -> Checked:
    """(1)-(7), and the objective. What holds its GPUs for longer than it must is not refused."""
    sizes, room, jobs = problem(instance)
    kind, goal = FORMULATIONS[solution["formulation"]]
    seconds, consolidated = instance["slot_seconds"], instance.get("placement") == "consolidated"
    broken, costs, ends = list[Violation](), Fraction(), [0]
    used: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    given = reading.jobs_of(solution, [job.name for job in jobs])
    for job in jobs:
        here, rows = f"job {job.name}", list[tuple[int, int, dict[str, int], int]]()
        for row in given[job.name]["assignments"]:
            key = "servers" if consolidated or (sizes and "servers" in row) else "gpus"
            require(set(row) == {"from", "to", key}, f"{here}: keys must be from, to and {key}")
            slots, at = reading.span(row, FAR, here), dict[str, int]()
            if key == "servers":
                at = reading.counts(row[key], sizes, here)
                require(all(n > 0 for n in at.values()), f"{here}: negative GPUs")
            held = whole(sum(at.values()) if at else row.get("gpus"), 1, here)
            rows.append((slots.start, slots.stop, at, held))
            for place, n in {"": held, **at}.items():
                used[place][slots.start] += n
                used[place][slots.stop] -= n
            excess = held - job.most if kind == "elastic" else abs(held - job.g)
            note(broken, "(3)", f"{here}, slot {slots.start}", excess)
            note(broken, "(2)", f"{here}, slot {slots.start}", job.s + 1 - slots.start)
            if consolidated:
                partial = sum(n < sizes[place] for place, n in at.items())
                spread = (len(at) if held <= max(sizes.values()) else max(partial, 1)) - 1
                note(broken, "(6)", f"{here}, slot {slots.start}", spread)
        rows.sort(key=lambda row: row[:2])
        for (_, stop, before, _), (start, _, after, _) in pairwise(rows):
            note(broken, "(7)", f"{here}, slot {start}", stop - start)
            if kind == "non-preemptive":
                note(broken, "(4)", f"{here}, slot {start}", start - stop or before != after)
        units = kind == "elastic"
        done = sum((stop - start) * (held if units else 1) for start, stop, _, held in rows)
        missing = job.p * (job.g if units else 1) - done
        note(broken, "(1)", here, missing)
        end = max(stop for _, stop, *_ in rows) - 1 if missing <= 0 else None
        require(given[job.name].get("completion") == end, f"{here}: completes at {end}")
        if end is not None:
            ends.append(end)
            late = job.due is not None and end > job.due
            costs += job.w * (late if goal == "deadlines" else (end - job.s) * seconds)
    for place, steps in used.items():
        level = 0
        for slot in sorted(steps):
            level += steps[slot]
            where = f"server {place}" if place else "cluster"
            note(broken, "(5)", f"{where}, from slot {slot}", level - sizes.get(place, room))
    return Checked(exactly(max(ends) * seconds if goal == "makespan" else costs), broken)


def bound(instance: Mapping[str, Any], certificate: Mapping[str, Any], tell: Progress) -> Interval:
    """Sum of best responses - GPUs x integral of the prices; for a makespan, see there."""
    (_, room, jobs), seconds = problem(instance), Fraction(instance["slot_seconds"])
    kind, goal = FORMULATIONS[certificate["formulation"]]
    require(certificate["kind"] != "tree", "kind: gang has no trees")
    trees.layout(certificate, ("intervals",))
    rows = certificate["prices"]["gpus"]
    require(set(certificate["prices"]) == {"gpus"}, "prices: unknown row sets")
    require(goal != "makespan" or not rows, "prices: a makespan has none")
    if goal == "makespan":
        return exactly(makespan(jobs, room, kind) * seconds)
    cuts, levels = [0], list[Any]()
    for position, row in enumerate(rows):
        here = f"prices.gpus[{position}]"
        require(set(row) == {"from", "to", "price"}, f"{here}: keys must be from, to, price")
        slots, price = reading.span(row, FAR, here), reading.number(row["price"], here)
        require(slots.start > cuts[-1], f"{here}: must follow slot {cuts[-1]}")
        if slots.start > cuts[-1] + 1:
            cuts.append(slots.start - 1)
            levels.append(0)
        cuts.append(slots.stop - 1)
        levels.append(price * seconds)
    scale = lcm(*(x.denominator for job in jobs for x in (job.w, job.w * seconds)))
    scale = lcm(scale, *(price.denominator for price in levels))
    levels = [int(price * scale) for price in levels]
    sums = [0, *accumulate(n * (b - a) for n, (a, b) in zip(levels, pairwise(cuts), strict=True))]
    found = -room * sums[-1]
    for number, job in enumerate(jobs):
        tell(number, len(jobs), "job")
        reading.spend(10 * len(cuts))
        units, most = (job.p * job.g, job.most) if kind == "elastic" else (job.p, 1)
        if goal == "completion":  # behind all prices it pays for time only
            slope, last = int(job.w * seconds * scale), ENDLESS
            best = slope * (max(cuts[-1] - job.s, 0) + ceiling(Fraction(units, most)))
        else:  # it may be late at its weight
            slope, last = 0, ENDLESS if job.due is None else job.due
            best = 0 if job.due is None else int(job.w * scale)
        if kind == "non-preemptive":
            found += one_piece(cuts, levels, sums, job, slope, last, best)
        else:
            gang = 1 if kind == "elastic" else job.g
            found += pausing(cuts, levels, job.s, units, most, gang, slope, last, best)
    return exactly(Fraction(found, scale))


def one_piece(
    cuts: Sequence[int], levels: Sequence[int], sums: Sequence[int], job: Job, slope: int,
    last: int, best: int,
) -> int:  # fmt: skip
    """Min of `best` and, over starts t, slope (t + p - s) + g (price of t..t + p), t + p <= last.

    It is linear between starts where t or t + p is a cut.
    """

    def paid(time: int) -> int:
        k = bisect_right(cuts, time) - 1
        return sums[k] + levels[k] * (time - cuts[k]) if k < len(levels) else sums[-1]

    s, p = job.s, job.p
    begins, ends = bisect_right(cuts, s), bisect_right(cuts, s + p)
    for starts in ((s, last - p), cuts[begins:], [cut - p for cut in cuts[ends:]]):
        for start in starts:
            own = slope * (start + p - s)
            if own >= best or not s <= start <= last - p:
                break
            best = min(best, own + job.g * (paid(start + p) - paid(start)))
    return best


def pausing(
    cuts: Sequence[int], levels: Sequence[int], s: int, units: int, most: int, gang: int,
    slope: int, last: int, best: int,
) -> int:  # fmt: skip
    """Min of `best` and, over ends C <= last, slope (C - s) + the cheapest units in slots s..C.

    A slot has `most` units, each of `gang` GPUs. As C grows, its units replace the dearest ones
    that are held; at first all are held at a price that no answer is worth. While whole slots
    replace units of one price, the value is linear in C.
    """
    never = best + 1
    held, dearest, cost, now = {never: units}, [-never], never * units, s
    for k in range(bisect_right(cuts, s) - 1, len(cuts)):
        level, end = (gang * levels[k], cuts[k + 1]) if k < len(levels) else (0, ENDLESS)
        end = min(end, last)
        while now < end and -dearest[0] > level:
            reading.spend(20)
            if slope * (now + 1 - s) >= best:
                return best
            slots = max(1, min(end - now, held[-dearest[0]] // most))
            left = slots * most
            if level not in held:
                held[level] = 0
                heappush(dearest, -level)
            while left and -dearest[0] > level:
                price = -dearest[0]
                taken = min(held[price], left)
                cost, left = cost - taken * (price - level), left - taken
                held[level] += taken
                held[price] -= taken
                if not held[price]:
                    del held[-heappop(dearest)]
            now += slots
            best = min(best, slope * (now - s) + cost)
        now = max(now, end)
    return best


def makespan(jobs: Sequence[Job], room: int, kind: str) -> int:
    """Last completion at least, in slots.

    From any r on, the jobs submitted at r or later need their work on all GPUs; those of width g or
    more run room // g at a time; and none ends before its submission and shortest duration.
    """
    late = sorted(jobs, key=lambda job: -job.s)
    elastic = kind == "elastic"
    ends = [job.s + (-(-job.p * job.g // job.most) if elastic else job.p) for job in jobs]
    loads = [([(job.s, job.p * job.g) for job in late], room)]
    for width in set() if elastic else {job.g for job in jobs}:
        loads.append(([(job.s, job.p) for job in late if job.g >= width], room // width))
    for listed, rate in loads:
        work = 0
        for s, more in listed:
            work += more
            ends.append(s - (-work // rate))
    return max(ends, default=0)

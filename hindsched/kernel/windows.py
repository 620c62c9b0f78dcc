"""Jobs that run once, in one window, on one placement: what batchsched and astraea share.

A *mode* is a worker type w, a PS type p (None for Ring-AllReduce), q (all on one server), N workers
and the least duration L. Schedules are those of modes that no other one beats at any prices, with
one PS host: every solution becomes one of these, job by job, using no more and ending no later.

- One host: a second server with PSs is not needed, as (2i) and (3i) hold for each by itself.
- N workers lose to fewer that take as long; a PS type to another one that takes no longer, needs
  no more of any resource and has no less bandwidth; q = 0 needs two workers in Ring-AllReduce.

Prices are those of servers, or of all servers merged into one: there no window can hold more than
sum_h floor(c_h / w) workers, or fewer PSs than the best host for a mode needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from math import lcm
from operator import itemgetter, le
from typing import Any, NamedTuple

from .exact import Interval, ceiling, exactly, total
from .reading import (
    Checked,
    Progress,
    Violation,
    counts,
    jobs_of,
    note,
    price_rows,
    require,
    span,
    within,
)
from .trees import NEVER, Limits, cheapest_units, keeps_outside, priced_by, prove

Amounts = tuple[Any, ...]
FINEST = 10**31
ROW_KEYS = {"from", "to", "worker_type", "workers", "ps_type", "ps", "payment"}


class Mode(NamedTuple):
    """A way to run a job; see the module."""

    w: str
    p: str | None
    q: int
    n: int
    length: int


@dataclass(frozen=True)
class Job:
    """What a family says of a job."""

    name: str
    first: int
    chunks: int
    minibatches: int
    time: Callable[[str, Any, int, int], Any]
    """Slots of a mini-batch by (w, p, q, N)."""
    cost: Callable[[int], Interval]
    """Cost of the last slot, which never falls; of a revenue its negative."""


@dataclass(frozen=True)
class Cluster:
    """What a family says of its cluster."""

    servers: Mapping[str, Amounts]
    """Amount of every resource."""
    workers: Mapping[str, tuple[Amounts, Any]]
    """By type: amount of every resource, and bandwidth."""
    ps: Mapping[Any, tuple[Amounts, Any]]
    last: int | None
    """Last slot of a hard horizon."""
    rows: Mapping[str, tuple[str, Sequence[str]]]
    """Row sets, in the order of the resources: axis and its labels."""
    must_complete: bool
    sign: int
    """-1 where costs are revenues' negatives."""
    equations: Mapping[str, str]

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Row set and label of every resource."""
        return [(name, label) for name, (_, labels) in self.rows.items() for label in labels]

    def needed(self, w: str, p: Any, elsewhere: int) -> int:
        """(2i), (3i): PSs of the host for so many workers elsewhere, at least one."""
        return max(1, ceiling(elsewhere * Fraction(self.workers[w][1]) / self.ps[p][1]))

    def modes(self, job: Job) -> Iterator[Mode]:
        """Modes that no other one beats; see the module."""
        for w, (demand, _) in self.workers.items():
            rooms = [fit(capacity, demand) for capacity in self.servers.values()]
            for q, room in ((1, max(rooms)), (0, sum(rooms))):
                every = range(1, min(job.chunks, room) + 1)
                lengths = {p: [max(1, ceiling(Fraction(job.minibatches) * job.time(w, p, q, n) / n))
                               for n in every] for p in self.ps or [None]}  # fmt: skip
                for p, own in lengths.items():
                    better = [lengths[other] for other in self.ps if self._replaces(other, str(p))]
                    least = NEVER
                    for n, length in zip(every, own, strict=True):
                        if length < least and (self.ps or q or n > 1):
                            least = length
                            if all(others[n - 1] > length for others in better):
                                yield Mode(w, p, q, n, length)

    def _replaces(self, other: str, p: str) -> bool:
        """Whether a PS type is never worse than p for the same duration."""
        (less, wide), (demand, bandwidth) = self.ps[other], self.ps[p]
        same = less == demand and list(self.ps).index(other) >= list(self.ps).index(p)
        return not same and wide >= bandwidth and all(map(le, less, demand))


def fit(capacity: Amounts, demand: Amounts) -> int:
    """How many units an empty server holds."""
    return int(min((c // d for c, d in zip(capacity, demand, strict=True) if d), default=NEVER))


def check(cluster: Cluster, jobs: Sequence[Job], solution: Mapping[str, Any]) -> Checked:
    """Check every rule of a window and the capacities, add up the costs."""
    broken, costs, rule = list[Violation](), [], cluster.equations
    used = {
        (h, r): Counter[int]() for h, sizes in cluster.servers.items() for r in range(len(sizes))
    }
    given = jobs_of(solution, [job.name for job in jobs])
    for job in jobs:
        here, done, rows = f"job {job.name}", Fraction(), []
        for row in given[job.name]["assignments"]:
            require(set(row) <= ROW_KEYS, f"{here}: unknown key in a row")
            slots = span(row, NEVER, here)
            w = row.get("worker_type", next(iter(cluster.workers)))
            p = row.get("ps_type", next(iter(cluster.ps or [None])))
            y, z = (counts(row.get(key, {}), cluster.servers, here) for key in ("workers", "ps"))
            n, (demand, sent) = sum(y.values()), cluster.workers[w]
            size, received = cluster.ps[p] if p in cluster.ps else ((0,) * len(demand), 0)
            rows.append((slots.start, slots.stop, w, p, y, z))
            note(broken, rule["arrival"], here, job.first - slots.start)
            note(broken, rule["horizon"], here, slots.stop - 1 - (cluster.last or NEVER))
            note(broken, rule["chunks"], here, n - job.chunks)
            note(broken, rule["no worker"], here, 1 - n)
            note(broken, rule["no PS"], here, bool(cluster.ps) - sum(z.values()))
            note(broken, rule["no PS"], here, sum(z.values()) if not cluster.ps else 0)
            for h in {*y, *z}:
                note(broken, rule["workers"], f"{here}, server {h}", -y.get(h, 0))
                note(broken, rule["ps"], f"{here}, server {h}", -z.get(h, 0))
                missing = (n - y.get(h, 0)) * sent - z.get(h, 0) * received
                note(broken, rule["bandwidth"], f"{here}, server {h}", h in z and missing)
                for r, (e, s) in enumerate(zip(demand, size, strict=True)):
                    amount = y.get(h, 0) * e + z.get(h, 0) * s
                    used[h, r][slots.start] += amount
                    used[h, r][slots.stop] -= amount
            if n > 0:
                done += Fraction(len(slots) * n) / job.time(w, p, int(len({*y, *z}) == 1), n)
        rows.sort(key=lambda row: row[:2])
        for before, after in pairwise(rows):
            note(broken, rule["pause"], here, abs(after[0] - before[1]))
            note(broken, rule["change"], here, int(before[2:] != after[2:]))
        missing = job.minibatches - done
        note(broken, rule["work"], here, missing if rows or cluster.must_complete else 0)
        end = rows[-1][1] - 1 if missing <= 0 else None
        require(given[job.name].get("completion") == end, f"{here}: completes at {end}")
        if end is not None and not broken:
            costs.append(job.cost(end))
    for (h, r), steps in used.items():
        level = 0
        for slot in sorted(steps):
            level += steps[slot]
            excess = level - cluster.servers[h][r]
            note(
                broken,
                rule["capacity"],
                f"server {h}, {cluster.labels[r]}, from slot {slot}",
                excess,
            )
    return Checked(total(costs).times(cluster.sign), broken)


def bound(
    cluster: Cluster, jobs: Sequence[Job], certificate: Mapping[str, Any], progress: Progress
) -> Interval:
    """Bound that a certificate proves on the sum of costs or revenues."""
    rows = _Rows(cluster, jobs, priced_by(certificate, "server"), progress)
    on_server = [("server", cluster.servers)]
    features = {**dict.fromkeys(("completion", "start", "workers", "worker_type", "ps_type"), ()),
                "server_workers": on_server, "server_ps": on_server}  # fmt: skip
    return prove(certificate, rows.bound, features, [job.name for job in jobs], progress)


class _Rows:
    """Rows of the servers, or of all of them merged into one called ''."""

    def __init__(
        self, cluster: Cluster, jobs: Sequence[Job], by_server: bool, progress: Progress
    ) -> None:
        self.cluster, self.jobs, self.progress, self.by_server = cluster, jobs, progress, by_server
        merged = tuple(map(sum, zip(*cluster.servers.values(), strict=True)))
        self.places: Mapping[str, Amounts] = cluster.servers if by_server else {"": merged}
        demands = [d for types in (cluster.workers, cluster.ps) for d, _ in types.values()]
        self.units = FINEST * lcm(*(n.denominator for demand in demands for n in demand))
        self.modes = {job.name: sorted(self._modes(job), key=itemgetter(0)) for job in jobs}

    def _modes(self, job: Job) -> Iterator[tuple[int, Mode, int]]:
        """Modes by duration, with the fewest PSs that any host for them needs, if there is one."""
        cluster = self.cluster
        for mode in cluster.modes(job):
            hosts = [] if cluster.ps else [0]
            for capacity in set(cluster.servers.values()) if cluster.ps else ():
                room = fit(capacity, cluster.workers[mode.w][0])
                units = cluster.needed(mode.w, mode.p, mode.n - min(mode.n - 1 + mode.q, room))
                if (room >= mode.n or not mode.q) and units <= fit(capacity, cluster.ps[mode.p][0]):
                    hosts.append(units)
            if hosts:
                yield mode.length, mode, min(hosts)

    def bound(self, prices: Any, limits: Mapping[str, Limits]) -> Interval | None:
        """Sum of best responses - p b; None if a job's limits leave it no schedule."""
        prices = {name: [_by_slot(row) for row in rows] for name, rows in prices.items()}
        last = max((row["to"] for rows in prices.values() for row in rows), default=0)
        within("cells", last * len(self.places), "slots x servers")
        tables = {}
        for name, (axis, labels) in self.cluster.rows.items():
            axes = [(axis, labels), *([("server", self.places)] if self.by_server else [])]
            for (label, *server), series in price_rows(prices, name, axes, last).items():
                tables[(*server, "")[0], self.cluster.labels.index((name, label))] = series
        require(not prices, f"prices: unknown row sets {list(prices)[:3]}")
        scale = lcm(*(p.denominator for series in tables.values() for p in series))
        idle = [self.places[place][r] * sum(series) for (place, r), series in tables.items()]
        paid = {}
        for role, types in (("w", self.cluster.workers), ("p", self.cluster.ps)):
            for kind, (demand, _) in types.items():
                paid[role, kind] = {
                    place: self._paid(
                        demand, [tables.get((place, r)) for r in range(len(demand))], scale, last
                    )
                    for place in self.places
                }
        values = [exactly(-sum(idle))]
        for done, job in enumerate(self.jobs):
            self.progress(done, len(self.jobs), "job")
            own = limits.get(job.name, {})
            found = self._best_response(job, own, paid, last, scale * self.units)
            if found is None:
                return None
            values.append(found)
        return total(values).times(self.cluster.sign)

    def _paid(self, demand: Amounts, tables: Any, scale: int, last: int) -> list[int]:
        """Price of one unit in slots 1 to t, for every t."""
        sums = [0] * (last + 1)
        for amount, series in zip(demand, tables, strict=True):
            if amount and series:
                unit = int(amount * self.units)
                sums = [a + unit * int(p * scale) for a, p in zip(sums, series, strict=True)]
        return list(accumulate(sums))

    def _best_response(
        self, job: Job, limits: Limits, paid: Any, last: int, scale: int
    ) -> Interval | None:
        """Exact best response, (12) and (9): cheapest mode, start and placement, in integers.

        Slots after the last priced one are free, so no window that starts after the first of them
        is cheaper. A start is pruned when its cost alone is no less than the best so far.
        """
        if any(low > high for low, high in limits.values()):
            return None

        @cache
        def cost(end: int) -> tuple[int, int]:
            found = job.cost(end)
            return int(found.low * scale // 1), ceiling(found.high * scale)

        first_end, last_end = limits.get(("completion",), (0, NEVER))
        first_start, last_start = limits.get(("start",), (0, NEVER))
        last_end = min(last_end, self.cluster.last or last_end)
        best: int | None = None
        most = 0
        if not self.cluster.must_complete and keeps_outside(limits):
            best = 0
        for length, mode, units in self.modes[job.name]:
            if not self._allows(limits, mode):
                continue
            w, z = paid["w", mode.w], paid.get(("p", mode.p), {})
            begin = max(job.first, first_start, first_end - length + 1)
            stop = min(last_start, last_end - length + 1, max(begin, last + 1))
            for start in range(begin, stop + 1):
                low, high = cost(start + length - 1)
                if best is not None and low >= best:
                    break
                i, j = min(start - 1, last), min(start + length - 1, last)
                if not self.by_server:
                    pay = mode.n * (w[""][j] - w[""][i])
                    pay += units * (z[""][j] - z[""][i]) if units else 0
                else:
                    pay = self._placement(
                        mode,
                        limits,
                        {h: (w[h][j] - w[h][i], z[h][j] - z[h][i] if z else 0) for h in w},
                        None if best is None else best - low,
                    )
                if pay is not None and (best is None or low + pay < best):
                    best, most = low + pay, high + pay
        return None if best is None else Interval(Fraction(best, scale), Fraction(most, scale))

    def _allows(self, limits: Limits, mode: Mode) -> bool:
        """Whether a mode's features are within limits; types count from 0."""
        kinds = list(self.cluster.workers).index(mode.w), [*self.cluster.ps, mode.p].index(mode.p)
        for name, value in zip(
            ("workers", "worker_type", "ps_type"), (mode.n, *kinds), strict=True
        ):
            low, high = limits.get((name,), (0, NEVER))
            if not low <= value <= high:
                return False
        return True

    def _placement(
        self, mode: Mode, limits: Limits, prices: Mapping[str, tuple[int, int]], budget: int | None
    ) -> int | None:
        """Cheapest placement of a mode in a window, by its host and the workers g on it."""
        cluster, n = self.cluster, mode.n
        least = n * min(w for w, _ in prices.values()) + min(z for _, z in prices.values())
        if budget is not None and least >= budget:
            return None
        (demand, _), (size, _) = cluster.workers[mode.w], cluster.ps.get(mode.p, (None, 0))
        places, hosts = {}, {}
        for h, capacity in cluster.servers.items():
            low, high = limits.get(("server_workers", h), (0, NEVER))
            places[h] = prices[h][0], low, min(high, fit(capacity, demand))
            hosts[h] = limits.get(("server_ps", h), (0, NEVER))
        never, found = 1 + n * max(w for w, _, _ in places.values()), []
        for h, capacity in cluster.servers.items():
            if any(hosts[other][0] for other in hosts if other != h):
                continue
            others = cheapest_units((p for other, p in places.items() if other != h), n, never)
            for g in [n] if mode.q else range(n):
                units = cluster.needed(mode.w, mode.p, n - g) if cluster.ps else 0
                price, low, high = places[h]
                if (
                    not (low <= g <= high and hosts[h][0] <= units <= hosts[h][1])
                    or others[n - g] == never
                ):
                    continue
                if all(
                    g * e + units * s <= c
                    for e, s, c in zip(demand, size or demand, capacity, strict=True)
                ):
                    found.append(g * price + units * prices[h][1] + others[n - g])
        return min(found, default=None)


def _by_slot(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A bucket "5-8" of slots, whose row sums them up, is a row of each at the same price."""
    if "bucket" not in row:
        return row
    first, _, last = row["bucket"].partition("-")
    return {**{k: v for k, v in row.items() if k != "bucket"}, "from": int(first), "to": int(last)}

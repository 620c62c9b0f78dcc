"""Jobs that run once, in one window, on one placement: what batchsched and astraea share.

A *mode* is a worker type w, a PS type p (None for Ring-AllReduce), q (all on one server), N workers
and the least duration L. Schedules are those of modes that no other one beats at any prices, with
one PS host: every solution becomes one of these, job by job, using no more and ending no later.

- One host: a second server with PSs is not needed, as (2i) and (3i) hold for each by itself.
- N workers lose to fewer that take as long; a PS type to another one that takes no longer, needs
  no more of any resource and has no less bandwidth; a mode needs a host that holds its PSs.
- A server's amount of a resource is rounded down to what every demand for it is a multiple of:
  workers of 2 GPUs use 2 of 3.

Prices are those of servers, or of all servers merged into one: there a window holds N workers and
the fewest PSs with which any host could serve them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise, product
from math import lcm
from operator import itemgetter, le
from typing import Any

from . import reading, trees
from .cheapest import cheapest_units
from .exact import Data, Interval, ceiling, common_step, point, total
from .problem import ScenarioProblem
from .reading import require
from .trees import NEVER, Limits, between
from .verdict import Broken, Verdict, given_up, jobs_of, rows_of

Amounts = tuple[Any, ...]
Ends = tuple[int, int] | None  # an amount in integers, rounded down and up
Cost = Callable[[int], tuple[int, int]]  # of ending in a slot: rounded down and up
MODE = ("start", "workers", "worker_type", "ps_type")
"""What decisions of a tree may limit, beside completions."""
Terms = Mapping[tuple[int, int], Any]  # what a job pays besides for a window, of either sign
FINEST = 10**31  # costs are rounded outward to multiples of 1/FINEST, or finer
Mode = tuple[int, str, Any, int, int, int]
"""A way to run a job: L, w, p, q, N, and the fewest PSs that a host of its needs."""


@dataclass(frozen=True)
class WindowJob:
    """What a family says of a job: slots of a mini-batch by (w, p, q, N), cost by last slot.

    The cost never falls; a revenue's cost is its negative.
    """

    name: str
    first: int
    chunks: int
    minibatches: int
    time: Callable[[str, Any, int, int], Any]
    cost: Callable[[int], Interval]

    def length(self, w: str, p: Any, q: int, n: int) -> int:
        """Least L with L N / time >= mini-batches."""
        time = self.time(w, p, q, n)
        slots = max(1, -(-self.minibatches * time.numerator // (time.denominator * n)))
        within = self.first + slots <= NEVER // 2  # so that windows end before NEVER
        require(within, f"job {self.name}: takes too long to be counted")
        return int(slots)


def counted(job: Data, least: int) -> tuple[str, int, int, int]:
    """Name, first slot, most workers and mini-batches of a job; arrivals count from `least`."""
    keys, here = ("epochs", "chunks", "minibatches"), f"job {job['name']}"
    epochs, chunks, minibatches = (reading.integer(job[key], 1, f"{here}.{key}") for key in keys)
    arrival = reading.integer(job["arrival"], least, f"{here}.arrival")
    reading.check_limit("chunks", chunks, here)
    return job["name"], arrival + 1 - least, chunks, epochs * chunks * minibatches


@dataclass(frozen=True)
class WindowCluster:
    """What a family says of its cluster.

    Amounts of every resource by server; amounts and bandwidth by worker and PS type, which is None
    for Ring-AllReduce; the last slot of a hard horizon; row sets in the order of the resources,
    each with an axis and its labels; -1 where costs are the negatives of revenues; and the numbers
    of its equations.
    """

    servers: Mapping[str, Amounts]
    workers: Mapping[str, tuple[Amounts, Any]]
    ps: Mapping[Any, tuple[Amounts, Any]]
    last: int | None
    rows: Mapping[str, tuple[str, Sequence[str]]]
    must_complete: bool
    sign: int
    equations: Mapping[str, str]
    _fewest: dict[Any, int | None] = field(default_factory=dict)

    def needed(self, w: str, p: Any, elsewhere: int) -> int:
        """(2i), (3i): PSs of a host for so many workers elsewhere, at least one."""
        sent, received = self.workers[w][1], self.ps[p][1]
        return 0 if p is None else int(max(1, -(-elsewhere * sent // received)))

    def crews(self, job: WindowJob) -> Iterator[tuple[str, int, range]]:
        """Types w, q, and how many workers there may be: on a ring of several servers two."""
        for w, (demand, _) in self.workers.items():
            rooms = [fit(capacity, demand) for capacity in self.servers.values()]
            for q, room in ((1, max(rooms)), (0, sum(rooms))):
                every = range(2 if None in self.ps and not q else 1, min(job.chunks, room) + 1)
                reading.spend(100 * len(every) * len(self.ps))
                yield w, q, every

    def modes(self, job: WindowJob) -> Iterator[Mode]:
        """Modes that no other one beats; see the module."""
        for w, q, every in self.crews(job):
            lengths = {p: [job.length(w, p, q, n) for n in every] for p in self.ps}
            for p, durations in lengths.items():
                better = [lengths[other] for other in self.ps if self._replaces(other, p)]
                least = NEVER  # longer than any duration
                for at, (n, length) in enumerate(zip(every, durations, strict=True)):
                    if length < least:
                        least, units = length, self._least_ps(w, p, q, n)
                        if units is not None and all(o[at] > length for o in better):
                            yield length, w, p, q, n, units

    def _least_ps(self, w: str, p: Any, q: int, n: int) -> int | None:
        """Fewest PSs of a host of N workers: of all of them if q, of N - 1 at most otherwise.

        The more workers it holds the fewer PSs they need: the most that leave room for them.
        """
        key = w, p, q, n
        if p is None or key in self._fewest:
            return self._fewest.get(key, 0)
        (demand, _), (size, _), fewest = self.workers[w], self.ps[p], list[int]()
        for capacity in set(self.servers.values()):
            room = fit(capacity, demand)
            for g in range(min(n - 1 + q, room), n - 1 if q else -1, -1):
                units = self.needed(w, p, n - g)
                reading.spend(5)
                if all(
                    g * e + units * s <= c for e, s, c in zip(demand, size, capacity, strict=True)
                ):
                    fewest.append(units)
                    break
        return self._fewest.setdefault(key, min(fewest, default=None))

    def _replaces(self, other: Any, p: Any) -> bool:
        """Whether a PS type is never worse than p for the same duration."""
        (less, wide), (demand, bandwidth) = self.ps[other], self.ps[p]
        order = list(self.ps)
        after = less == demand and order.index(other) >= order.index(p)
        return not after and wide >= bandwidth and all(map(le, less, demand))


def fit(capacity: Amounts, demand: Amounts) -> int:
    """How many units an empty server holds."""
    return int(min((c // d for c, d in zip(capacity, demand, strict=True) if d), default=NEVER))


class WindowProblem(ScenarioProblem):
    """What a family says of an instance: its cluster, jobs, and the keys that a row may have."""

    step: Any = 0

    def __init__(
        self, cluster: WindowCluster, jobs: Sequence[WindowJob], extra: Iterable[str] = ()
    ) -> None:
        self.cluster, self.jobs = cluster, list(jobs)
        self.by_name = {job.name: job for job in jobs}
        self.needed, self.allowed = {"from", "to", "workers"}, {"from", "to", "workers", *extra}
        if None not in cluster.ps:
            self.needed, self.allowed = self.needed | {"ps"}, self.allowed | {"ps", "ps_type"}
            self.needed |= {"ps_type"} if len(cluster.ps) > 1 else set()
        self.needed |= {"worker_type"} if len(cluster.workers) > 1 else set()
        self.allowed |= {"worker_type"}

    def worth(self, ends: Mapping[str, int | None]) -> Interval:
        """Sum of the costs, or revenues, of completions by job."""
        costs = (self.by_name[name].cost(end) for name, end in ends.items() if end is not None)
        return total(costs).times(self.cluster.sign)

    def bound_with(self, part: Data, weight: Any, multipliers: Mapping[str, Terms]) -> Interval:
        """Bound of a weight times the costs or revenues, with own terms; on merged servers."""
        jobs = [replace(job, cost=_weighted_cost(job.cost, weight)) for job in self.jobs]
        features: trees.Features = dict.fromkeys(("completion", *MODE), ())
        price = WindowPricing(self.cluster, jobs, "cluster", multipliers).price
        return trees.certificate_bound(part, price, features, list(self.by_name))

    def listed(self) -> list[WindowJob]:
        """The jobs in order."""
        return self.jobs

    def game(self, policies: str) -> tuple[Any, ...]:
        """Jobs in one window on the servers."""
        ends = self.cluster.last is None or not self.cluster.must_complete  # whatever is begun
        require(policies == "run" and ends, "kind: the problem is no game")
        return "windows", self.cluster

    def bound(self, certificate: Data) -> Interval:
        """Sum over jobs of the cheapest mode, start and placement at prices, less their worth.

        Where there is a `step`, every objective is a whole multiple of it.
        """
        cluster = self.cluster
        layout = trees.layout(certificate, ("cluster", "servers"))
        on_server = [("server", cluster.servers)]
        features = {**dict.fromkeys(("completion", *MODE), ()),
                    "server_workers": on_server, "server_ps": on_server}  # fmt: skip
        price, names = WindowPricing(cluster, self.jobs, layout).price, list(self.by_name)
        return trees.certificate_bound(certificate, price, features, names, self.step)

    def check(self, solution: Data) -> Verdict:
        """Check every rule of a window and the capacities, add up the costs."""
        broken, ends = Broken(), dict[str, int | None]()
        for name, given in given_up(solution, self.by_name).items():
            for first, last, row in rows_of(given, self.needed, self.allowed):
                self._book(broken, (name, first, last), *self._placement(name, row))
        for name, given in jobs_of(solution, self.by_name).items():
            ends[name] = self._check_job(broken, self.by_name[name], given)
        return broken.verdict(self.worth(ends))

    def _check_job(self, broken: Broken, job: WindowJob, given: Data) -> int | None:
        """Note what a job breaks; when it is complete."""
        cluster, rule, name, done = self.cluster, self.cluster.equations, job.name, Fraction()
        runs = list[tuple[int, int, Any, Any]]()
        for first, last, row in rows_of(given, self.needed, self.allowed):
            w, p, y, z = self._placement(name, row)
            at, n, sent, received = (name, first, last), sum(y.values()), *self._bandwidths(w, p)
            late = max(first, (cluster.last or 0) + 1)
            early = min(last, job.first - 1)
            says: tuple[Any, ...] = "runs before it arrives in slot {}", job.first
            broken.note(job.first - first, rule["arrival"], name, first, early, says=says)
            says = "runs after the last slot {}", cluster.last
            broken.note(last - (cluster.last or last), rule["horizon"], name, late, last, says=says)
            says = "uses {} workers, at most {}", n, job.chunks
            broken.note(n - job.chunks, rule["chunks"], *at, says=says)
            says = ("has no parameter server",)
            broken.note(p is not None and not z, rule["no PS"], *at, says=says)
            for h, units in z.items():
                traffic = (n - y.get(h, 0)) * sent, units * received
                says = "is sent {} by workers elsewhere, its parameter servers take {}", *traffic
                broken.note(traffic[0] - traffic[1], rule["bandwidth"], *at, h, says=says)
            self._book(broken, at, w, p, y, z)
            done += Fraction((last - first + 1) * n) / job.time(w, p, int(len({*y, *z}) == 1), n)
            runs.append((first, last, (w, y), (p, z)))
        for before, after in pairwise(runs):
            apart = after[0] - before[1] - 1
            broken.note(-apart, rule["overlap"], name, after[0], says=("runs twice at once",))
            broken.note(apart, rule["pause"], name, after[0], says=("begins again",))
            says = ("changes its workers",)
            broken.note(before[2] != after[2], rule["change"], *at, says=says)
            says = ("changes its parameter servers",)
            broken.note(before[3] != after[3], rule["ps change"], *at, says=says)
        missing, end = job.minibatches - done, max((run[1] for run in runs), default=None)
        is_due, says = bool(runs or cluster.must_complete), ("misses {} minibatches", missing)
        broken.note(is_due and missing, rule["work"], name, says=says)
        if missing > 0 and runs:
            return None
        broken.completion(given, end)
        return end

    def _placement(self, name: str, row: Data) -> tuple[str, Any, dict[str, int], dict[str, int]]:
        """Types, and workers and PSs by server."""
        cluster, here = self.cluster, f"job {name}"
        w = row.get("worker_type", next(iter(cluster.workers)))
        p = row.get("ps_type", next(iter(cluster.ps)))
        require(w in cluster.workers and p in cluster.ps, f"{here}: unknown type")
        held = [reading.counts(row.get(k, {}), cluster.servers, here) for k in ("workers", "ps")]
        y, z = held
        require(y, f"{here}: a row without workers")
        return w, p, y, z

    def _bandwidths(self, w: str, p: Any) -> tuple[Any, Any]:
        return self.cluster.workers[w][1], self.cluster.ps[p][1]

    def _book(
        self, broken: Broken, at: tuple[str, int, int], w: str, p: Any,
        y: Mapping[str, int], z: Mapping[str, int],
    ) -> None:  # fmt: skip
        """Add what a row holds to the servers' loads."""
        cluster, (name, first, last) = self.cluster, at
        labels = [(n, label) for n, (_, known) in cluster.rows.items() for label in known]
        for h in {*y, *z}:
            amounts = zip(
                labels, cluster.servers[h], cluster.workers[w][0], cluster.ps[p][0], strict=True
            )
            for (of, label), room, d, s in amounts:
                if used := y.get(h, 0) * d + z.get(h, 0) * s:
                    load = cluster.equations[of], h, label, room
                    broken.loads[load].append((first, last, used, name))


class WindowPricing:
    """Best responses on servers, or on all of them merged into one called ''; own terms of jobs."""

    def __init__(
        self, cluster: WindowCluster, jobs: Sequence[WindowJob], layout: str,
        multipliers: Mapping[str, Terms] | None = None,
    ) -> None:  # fmt: skip
        self.cluster, self.jobs, self.multipliers = cluster, jobs, multipliers or {}
        self.by_server = layout == "servers"
        self.modes = [sorted(cluster.modes(job), key=itemgetter(0)) for job in jobs]
        self.kinds = {("w", w): demand for w, (demand, _) in cluster.workers.items()}
        self.kinds |= {("p", p): size for p, (size, _) in cluster.ps.items()}
        steps = [common_step(demands) for demands in zip(*self.kinds.values(), strict=True)]
        usable = {
            h: tuple(c - c % step if step else c for c, step in zip(capacity, steps, strict=True))
            for h, capacity in cluster.servers.items()
        }
        merged = tuple(map(sum, zip(*usable.values(), strict=True)))
        self.places: Mapping[str, Amounts] = usable if self.by_server else {"": merged}

    def price(self, prices: Any) -> tuple[Interval, Any]:
        """What rows are worth, and best responses."""
        last = max((row["to"] for rows in prices.values() for row in rows), default=0)
        reading.check_limit("cells", last * len(self.places), "slots x servers")
        sets = {name: [axis, ("server", self.places)][: 1 + self.by_server]
                for name, axis in self.cluster.rows.items()}  # fmt: skip
        labels = [(n, label) for n, (_, known) in self.cluster.rows.items() for label in known]
        tables = {  # by place and position of the resource
            ((*place, "")[0], labels.index((name, label))): series
            for name, table in reading.price_rows(prices, sets, last).items()
            for (label, *place), series in table.items()
        }
        idle = sum(self.places[place][r] * sum(series) for (place, r), series in tables.items())
        units = lcm(*(amount.denominator for demand in self.kinds.values() for amount in demand))
        below = (m.denominator for terms in self.multipliers.values() for m in terms.values())
        scale = reading.to_integers(tables.values(), lcm(FINEST, *below)) * units
        every = self.multipliers.items()
        multipliers = {
            name: {at: int(m * scale) for at, m in terms.items()} for name, terms in every
        }
        reading.spend(last * len(self.places) * len(self.kinds))
        paid = {}  # price of one unit in slots 1 to t, by t
        for (kind, demand), place in product(self.kinds.items(), self.places):
            sums = [0] * (last + 1)
            for r, amount in enumerate(demand):
                unit = int(amount * units)
                if unit and (place, r) in tables:
                    sums = [a + unit * p for a, p in zip(sums, tables[place, r], strict=True)]
            paid[*kind, place] = list(accumulate(sums))
        sign = self.cluster.sign

        def respond(position: int, limits: Limits) -> Interval | None:
            cost = _rounded_cost(job := self.jobs[position], scale)
            ends = self._window(position, limits, paid, last, cost, multipliers.get(job.name, {}))
            return ends and Interval(*(Fraction(end, scale) for end in ends)).times(sign)

        return point(-idle).times(sign), respond

    def _window(
        self, at: int, limits: Limits, paid: Any, last: int, cost: Cost, terms: Mapping[Any, int]
    ) -> Ends:
        """Exact best response, (12) and (9): cheapest mode, start and placement, in integers.

        Slots after the last priced one are free, so no window that starts after the first of them,
        and after all own terms, is cheaper. A start is pruned when its cost alone, less what a term
        may give, is no less than the best so far.
        """
        least, behind = min([0, *terms.values()]), max([last, *(first for first, _ in terms)])
        cluster, job, most = self.cluster, self.jobs[at], 0
        first_end, last_end = limits.get(("completion",), (0, NEVER))
        first_start, last_start = limits.get(("start",), (0, NEVER))
        last_end = min(last_end, cluster.last or last_end)
        outside = not cluster.must_complete and trees.keeps_outside(limits)
        best: int | None = 0 if outside else None
        for mode in self.modes[at]:
            length, w, p, _, n, units = mode
            counts = {"workers": n, "worker_type": list(cluster.workers).index(w),
                   "ps_type": list(cluster.ps).index(p)}  # fmt: skip
            if any(
                not low <= counts.get(of, low) <= high for (of, *_), (low, high) in limits.items()
            ):
                continue
            prefix = {h: (paid["w", w, h], paid["p", p, h]) for h in self.places}
            begin = max(job.first, first_start, first_end - length + 1)
            stop = min(last_start, last_end - length + 1, max(begin, behind + 1))
            for start in range(begin, stop + 1):
                reading.spend(20 + 5 * len(self.places))
                low, high = cost(start + length - 1)
                if best is not None and low + least >= best:
                    break
                i, j = min(start - 1, last), min(start + length - 1, last)
                prices = {h: (y[j] - y[i], z[j] - z[i]) for h, (y, z) in prefix.items()}
                y_least, z_least = (min(kind) for kind in zip(*prices.values(), strict=True))
                pay: Any = n * y_least + units * z_least
                pay += terms.get((start, start + length - 1), 0)
                if self.by_server and (best is None or low + pay < best):
                    pay = self._placement(mode, limits, prices)
                if pay is not None and (best is None or low + pay < best):
                    best, most = low + pay, high + pay
        return None if best is None else (best, most)

    def _placement(self, mode: Mode, limits: Limits, prices: Any) -> int | None:
        """Cheapest placement of a mode in a window: by its host, and the workers g on the host."""
        cluster, (_, w, p, q, n, _), costs = self.cluster, mode, []
        reading.spend(10 * len(self.places) * (n + len(self.places)))
        (demand, _), (size, _) = cluster.workers[w], cluster.ps[p]
        never = 1 + n * max(y for y, _ in prices.values())
        places = {
            h: (prices[h][0], *between(limits, ("server_workers", h), fit(capacity, demand)))
            for h, capacity in cluster.servers.items()
        }
        forced = {h: limits.get(("server_ps", h), (0, NEVER)) for h in places}
        for h, (price, low, high) in places.items():
            if any(least for other, (least, _) in forced.items() if other != h):
                continue
            others = cheapest_units((place for o, place in places.items() if o != h), n, never)
            for g in range(max(low, n if q else 0), min(high, n - 1 + q) + 1):
                units = cluster.needed(w, p, n - g)
                use = (g * e + units * s for e, s in zip(demand, size, strict=True))
                fits = forced[h][0] <= units <= forced[h][1]
                if fits and all(map(le, use, cluster.servers[h])) and others[n - g] < never:
                    costs.append(g * price + units * prices[h][1] + others[n - g])
        return min(costs, default=None)


def _weighted_cost(cost: Callable[[int], Interval], weight: Any) -> Callable[[int], Interval]:
    return lambda end: cost(end).times(weight)


def _rounded_cost(job: WindowJob, scale: int) -> Cost:
    """Cost of a job by last slot, rounded down and up to multiples of 1/scale."""

    @cache
    def cost(end: int) -> tuple[int, int]:
        reading.spend(4000)
        exact = job.cost(end)
        return int(exact.low * scale // 1), ceiling(exact.high * scale)

    return cost

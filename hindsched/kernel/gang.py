"""gang (min): jobs that hold g GPUs for p slots; the numbers are those of the page on gang.

Formulations are a kind (``non-preemptive``, ``preemptive``, ``elastic``) and what is minimised: sum
of w (C - submit), the makespan, or the weight of missed deadlines. Prices stand on GPU-seconds over
spans of slots, rows of one pool (of each kind of GPU, where servers are of several), which servers
only restrict, or of every server; behind them time is free, without end. No price helps a makespan:
its bound follows from the instance.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, chain, pairwise
from math import gcd, lcm
from typing import Any, ClassVar

from . import reading, sequences, trees
from .cheapest import Cheapest
from .exact import Data, Interval, ceiling, common_step, point
from .problem import ScenarioProblem
from .reading import integer, require
from .trees import NEVER, Limits, between
from .verdict import Broken, Verdict, given_up, jobs_of, rows_of

ROW_KEYS = {"from", "to", "gpus", "gpu_kind", "servers"}
FAR, ENDLESS = 10**12, 10**24


class RigidJob:
    """A job in slots: submitted at s, due by `due` (None: never), p slots on g GPUs of a kind."""

    def __init__(self, data: Data, seconds: Any, kinds: Mapping[str, int]) -> None:
        self.name, here = data["name"], f"job {data['name']}"
        times = [Fraction(data[key]) / seconds for key in ("submit", "duration")]
        require(all(t.denominator == 1 for t in times), f"{here}: times must be whole slots")
        self.s, self.p = map(int, times)
        self.g = integer(data["gpus"], 1, here)
        named = data.get("gpu_kinds")
        require(named is None or isinstance(named, list), f"{here}: gpu_kinds must be a list")
        self.kinds = [kind for kind in kinds if named is None or kind in named]
        require(self.kinds, f"{here}: names no kind that a server has")
        room = max(kinds[kind] for kind in self.kinds)
        self.most = min(room, integer(data.get("most_gpus", room), self.g, here))
        self.w, due = data.get("weight", 1), data.get("deadline")
        self.due = None if due is None else int(due / Fraction(seconds))
        require(min(self.p, self.w) > 0, f"{here}: duration and weight must be above 0")
        require(self.g <= room, f"{here}: asks for more than {room} GPUs")


class Problem(ScenarioProblem):
    """(1)-(7) of an instance."""

    sense = "min"
    formulations: ClassVar = {
        f"{kind},{goal}".removesuffix(",completion"): (kind, goal)
        for kind in ("non-preemptive", "preemptive", "elastic")
        for goal in ("completion", "makespan", "deadlines")
    }
    nonanticipative = ("non-preemptive",)

    def __init__(self, instance: Data, formulation: str) -> None:
        reading.natural(instance, frozenset({"provenance"}), "instance")
        listed, self.seconds = instance.get("servers") or (), instance["slot_seconds"]
        known = reading.names(listed, "servers")
        sizes = [
            integer(server["gpus"], 1, name) for name, server in zip(known, listed, strict=True)
        ]
        self.sizes = dict(zip(known, sizes, strict=True))  # none: one pool
        require(
            (instance.get("gpus") is None) == bool(sizes), "instance: must give gpus or servers"
        )
        self.room = sum(sizes) or integer(instance["gpus"], 1, "gpus")
        self.kind_of = {
            name: server.get("gpu_kind") or "" for name, server in zip(known, listed, strict=True)
        }
        self.kinds: dict[str, int] = {} if sizes else {"": self.room}
        for name, kind in self.kind_of.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + self.sizes[name]
        placement = instance.get("placement", "pool")
        self.consolidated = placement == "consolidated"
        known_word = placement == "pool" or (sizes and self.consolidated)
        require(known_word, "placement: unknown")
        names = reading.names(instance["jobs"], "jobs")
        jobs = [RigidJob(job, self.seconds, self.kinds) for job in instance["jobs"]]
        self.jobs = dict(zip(names, jobs, strict=True))
        self.kind, self.goal = self.formulations[formulation]

    def worth(self, ends: Mapping[str, int | None]) -> Interval:
        """What is minimised, of completions by job; one without any is late."""
        done = [(self.jobs[name], end) for name, end in ends.items()]
        if self.goal == "makespan":
            last = max((end for _, end in done if end is not None), default=0)
            return point(last * self.seconds)
        if self.goal == "deadlines":
            due = [(job.w, job.due, end) for job, end in done if job.due is not None]
            late = (w for w, latest, end in due if end is None or end > latest)
            return point(sum(late, Fraction()))
        spans = (job.w * (end - job.s) for job, end in done if end is not None)
        return point(sum(spans) * self.seconds)

    def bound_with(self, part: Data, weight: Any, multipliers: Mapping[str, Any]) -> Interval:
        """Bound of a weight times (1) in one piece, with own terms by window; on one pool."""
        listed = list(self.jobs.values())

        def price(prices: Any) -> tuple[Interval, Any]:
            require(len(self.kinds) == 1, "instance: GPUs of several kinds have no scenarios")
            ((cuts, levels),) = price_steps(prices, "", {"": self.room}, Fraction(self.seconds))
            slopes = [Fraction(weight * job.w * self.seconds) for job in listed]
            every = chain(levels, slopes, *(terms.values() for terms in multipliers.values()))
            scale = lcm(*(number.denominator for number in every))
            paid = Steps(cuts, [int(level * scale) for level in levels])

            def respond(position: int, limits: Limits) -> Interval | None:
                job, slope = listed[position], int(slopes[position] * scale)
                terms = multipliers.get(job.name, {})
                require(all(b - a + 1 == job.p for a, b in terms), f"own: {job.name}: slots")
                first, last = limits.get(("completion",), (0, NEVER))
                first = max(first - job.p, job.s)  # the time before the first slot that it holds
                free = max([first, cuts[-1], *(a for a, _ in terms)])
                starts = range(first, min(free, last - job.p) + 1)
                reading.spend(20 * len(starts))
                costs = (
                    slope * (t + job.p - job.s) + job.g * (paid.paid(t + job.p) - paid.paid(t))
                    + int(terms.get((t + 1, t + job.p), 0) * scale) for t in starts
                )  # fmt: skip
                best = min(costs, default=None)
                return None if best is None else point(Fraction(best, scale))

            return point(Fraction(-self.room * paid.sums[-1], scale)), respond

        return trees.certificate_bound(part, price, {"completion": ()}, list(self.jobs))

    def listed(self) -> list[RigidJob]:
        """The jobs in order."""
        return list(self.jobs.values())

    def game(self, policies: str) -> tuple[Any, ...]:
        """Jobs in one piece on the pool."""
        known = (self.kind, self.goal, policies) == ("non-preemptive", "completion", "run")
        require(known and not self.consolidated, "kind: the problem is no game")
        return "pool", self.room, self.seconds

    def bound(self, certificate: Data) -> Interval:
        """Sum of best responses - GPUs x integral of the prices; for a makespan, see there.

        GPUs of several kinds have prices each; a job takes the cheapest of its kinds.
        Layout ``placements`` prices each server's GPUs, for consolidated jobs in one piece, which
        pay for those that they hold. Only jobs in one piece have trees: on the slot in which they
        complete, `NEVER` for one that may be late, and the GPUs held on a server.
        """
        if certificate["kind"] == "sequences":
            return self._sequences_bound(certificate)
        sizes, jobs = self.sizes, list(self.jobs.values())
        seconds, kind, goal = Fraction(self.seconds), self.kind, self.goal
        tree, in_one_piece = certificate["kind"] == "tree", kind == "non-preemptive"
        require(in_one_piece or not tree, f"kind: {kind} jobs have no trees")
        layout = trees.layout(certificate, ("intervals", "placements"))
        apart = layout == "placements"
        consolidated = in_one_piece and self.consolidated
        require(consolidated or not apart, "layout: only of consolidated jobs in one piece")
        if goal == "makespan":
            empty = not tree and not any(certificate["prices"].values())
            require(empty, "prices: a makespan has none")
            return point(makespan(jobs, self.kinds, kind) * seconds)
        unit = 1 if goal == "deadlines" else seconds
        below = lcm(*(Fraction(job.w * unit).denominator for job in jobs))
        step = common_step(job.w * unit for job in jobs)
        features = {"completion": (), **({"server_gpus": [("server", sizes)]} if apart else {})}
        several = len(self.kinds) > 1
        require(not (several and (tree or apart)), "kind: no such bound of GPUs of several kinds")
        places, axis = self.kinds if several else {"": self.room}, "gpu_kind" if several else ""
        if apart:
            places, axis = sizes, "server"

        def price(prices: Any) -> tuple[Interval, Any]:
            tables = price_steps(prices, axis, places, seconds)
            scale = lcm(below, *(job.w.denominator for job in jobs))
            scale = lcm(scale, *(x.denominator for _, levels in tables for x in levels))
            paid = [
                Steps(cuts, [int(price * scale) for price in levels]) for cuts, levels in tables
            ]
            cuts = sorted({cut for part in paid for cut in part.cuts})
            merged: dict[tuple[str, ...], Steps] = {}
            worth = sum(n * part.sums[-1] for n, part in zip(places.values(), paid, strict=True))

            def respond(position: int, limits: Limits) -> Interval | None:
                job = jobs[position]
                reading.spend(10 * len(places))
                first, last = limits.get(("completion",), (0, NEVER))
                start = max(job.s, first - job.p)
                units, most = (job.p * job.g, job.most) if kind == "elastic" else (job.p, 1)
                slope, last = int(job.w * unit * scale), ENDLESS if last == NEVER else last
                best: int | None = None
                if goal == "completion":  # behind all prices it pays for time only
                    free = max(cuts[-1], start) + ceiling(Fraction(units, most))
                    if free <= last and not limits.keys() - {("completion",)}:
                        best = slope * (free - job.s)
                else:  # it may be late at its weight
                    if last == ENDLESS:
                        best = 0 if job.due is None else slope
                    slope, last = 0, last if job.due is None else min(last, job.due)
                mine = paid
                if several:
                    mine = [part for part, of in zip(paid, places, strict=True) if of in job.kinds]
                if in_one_piece:
                    best = one_piece(
                        cuts, mine, job, slope, start, last, best, sizes if apart else {}, limits
                    )
                else:
                    gang = 1 if kind == "elastic" else job.g
                    key = tuple(job.kinds)
                    least = mine[0] if len(mine) == 1 else merged.get(key)
                    if least is None:
                        reading.spend(len(cuts) * len(mine))
                        least = merged[key] = cheapest_steps(cuts, mine)
                    assert best is not None
                    best = pausing(
                        least.cuts, least.levels, job.s, units, most, gang, slope, last, best
                    )
                return None if best is None else point(Fraction(best, scale))

            return point(Fraction(-worth, scale)), respond

        return trees.certificate_bound(
            certificate, price, features, [job.name for job in jobs], step
        )

    def _sequences_bound(self, certificate: Data) -> Interval:
        """Bound by enumeration of what is stated, rounded up to what an objective can be.

        Prices are a list: ``{"started": k, "gpus": rows}`` holds from when k jobs are begun. GPUs
        of pools are taken together in the largest number that all jobs ask for multiples of.
        """
        known = (self.kind, self.goal) == ("non-preemptive", "completion")
        require(known, "kind: only of completions of jobs in one piece")
        require(certificate.get("layout", "intervals") == "intervals", "layout: unknown")
        jobs, seconds, stages = self.listed(), Fraction(self.seconds), certificate["prices"]
        together = 1 if self.consolidated else gcd(*(job.g for job in jobs))
        widths = [job.g // together for job in jobs]
        servers = sorted((size, self.kind_of[name]) for name, size in self.sizes.items())
        if not self.consolidated:
            pools = [(min(n // together, sum(widths)), kind) for kind, n in self.kinds.items()]
            servers = sorted(pools)
        step = common_step(job.w * seconds for job in jobs)
        least = ceiling(reading.number(certificate["bound"], "bound") / step)
        require(all(set(stage) == {"started", "gpus"} for stage in stages), "prices: unknown keys")
        begins = [integer(stage["started"], 0, "prices") for stage in stages]
        rising = begins == sorted(set(begins)) and begins[:1] == [0] and begins[-1] < len(jobs)
        require(rising, "prices: started must rise from 0")
        axis = "gpu_kind" if len(self.kinds) > 1 else ""
        listed = [
            price_steps(
                {"gpus": stage["gpus"]}, axis, self.kinds if axis else {"": self.room},
                together * seconds / step,
            ) for stage in stages
        ]  # fmt: skip
        scale = lcm(*(x.denominator for tables in listed for _, levels in tables for x in levels))
        by_stage = [
            {
                kind: (cuts, Steps(cuts, [int(level * scale) for level in levels]).paid)
                for kind, (cuts, levels) in zip(self.kinds, tables, strict=True)
            }
            for tables in listed
        ]
        tasks = [
            sequences.RigidTask(job.s, job.p, width, int(job.w * seconds / step) * scale)
            for job, width in zip(jobs, widths, strict=True)
        ]
        priced = [
            prices
            for prices, (first, last) in zip(by_stage, pairwise([*begins, len(jobs)]), strict=True)
            for _ in range(last - first)
        ]
        places = [
            sequences.by_kind(width, servers, job.kinds)
            for job, width in zip(jobs, widths, strict=True)
        ]
        sequences.require_none_below(tasks, servers, places, priced, (least - 1) * scale + 1)
        return point(least * step)

    @classmethod
    def reveal_slot(cls, instance: Data, job: Data) -> int:
        """The slot after its submission."""
        return int(job["submit"] / Fraction(instance["slot_seconds"])) + 1

    def check(self, solution: Data) -> Verdict:
        """Check (1)-(7), and the objective."""
        broken, ends = Broken(), dict[str, int | None]()
        given_up(solution, ())
        for name, given in jobs_of(solution, self.jobs).items():
            ends[name] = self._check_job(broken, self.jobs[name], given)
        return broken.verdict(self.worth(ends))

    def _check_job(self, broken: Broken, job: RigidJob, given: Data) -> int | None:
        """Note what a job breaks; when it is complete."""
        name, here, rows = job.name, f"job {job.name}", list[tuple[int, int, dict[str, int], int]]()
        for first, last, row in rows_of(given, {"from", "to"}, ROW_KEYS):
            several = len(self.kinds) > 1
            free = self.sizes and "servers" in row and not several
            key = "servers" if self.consolidated or free else "gpus"
            keys = {"from", "to", key} | ({"gpu_kind"} if several and key == "gpus" else set())
            require(set(row) == keys, f"{here}: keys must be {', '.join(sorted(keys))}")
            at = reading.counts(row[key], self.sizes, here) if key == "servers" else {}
            held = integer(sum(at.values()) if key == "servers" else row["gpus"], 1, here)
            rows.append((first, last, at, held))
            broken.loads["(5)", "cluster", "GPUs", self.room].append((first, last, held, name))
            for place, n in at.items():
                broken.loads["(5)", place, "GPUs", self.sizes[place]].append((first, last, n, name))
            if several:
                kinds = {self.kind_of[place] for place in at} or {row["gpu_kind"]}
                require(kinds <= set(self.kinds), f"{here}: no server has this gpu_kind")
                says: tuple[Any, ...] = "has GPUs of the kinds {}", ", ".join(sorted(kinds))
                wrong = len(kinds) - 1 + len(kinds - {*job.kinds})
                broken.note(wrong, "(8)", name, first, last, says=says)
                if not at:
                    (on,) = kinds
                    broken.loads["(5)", on, "GPUs", self.kinds[on]].append(
                        (first, last, held, name)
                    )
            excess = held - job.most if self.kind == "elastic" else abs(held - job.g)
            at_most, may = ("at most ", job.most) if self.kind == "elastic" else ("not ", job.g)
            says = "uses {} GPUs, {}{}", held, at_most, may
            broken.note(excess, "(3)", name, first, last, says=says)
            says = "runs before it arrives in slot {}", job.s + 1
            broken.note(job.s + 1 - first, "(2)", name, first, min(last, job.s), says=says)
            if self.consolidated:
                partial = sum(n < self.sizes[place] for place, n in at.items())
                narrow = held <= max(
                    size for place, size in self.sizes.items() if self.kind_of[place] in job.kinds
                )
                says = "stands on {} servers, more than it needs", len(at)
                more = (len(at) if narrow else max(partial, 1)) - 1
                broken.note(more, "(6)", name, first, last, says=says)
        for (_, last, before, _), (first, _, after, _) in pairwise(rows):
            broken.note(last + 1 - first, "(7)", name, first, says=("runs twice at once",))
            if self.kind == "non-preemptive" and last < first:
                moved = first - last - 1 or before != after
                broken.note(moved, "(4)", name, first, says=("is interrupted or moved",))
        units = self.kind == "elastic"
        done = sum((last + 1 - first) * (held if units else 1) for first, last, _, held in rows)
        missing = job.p * (job.g if units else 1) - done
        says = "does {} of its {} units of work", done, done + missing
        broken.note(missing if units else abs(missing), "(1)", name, says=says)
        if missing > 0:
            return None
        end = max(row[1] for row in rows)
        broken.completion(given, end)
        return end


class Steps:
    """Prices of a GPU, ``levels[k]`` in slots ``cuts[k] + 1 .. cuts[k + 1]``; then 0."""

    def __init__(self, cuts: Sequence[int], levels: Sequence[int]) -> None:
        self.cuts, self.levels = cuts, levels
        pieces = zip(levels, pairwise(cuts), strict=True)
        self.sums = [0, *accumulate(n * (b - a) for n, (a, b) in pieces)]

    def paid(self, time: int) -> int:
        """Price of all slots up to a time."""
        k = bisect_right(self.cuts, time) - 1
        rest = self.levels[k] * (time - self.cuts[k]) if k < len(self.levels) else 0
        return self.sums[k] + rest


def cheapest_steps(cuts: Sequence[int], parts: Sequence[Steps]) -> Steps:
    """The least of several prices at each moment; behind the first that ends all is free."""
    last = min(part.cuts[-1] for part in parts)
    kept = [cut for cut in cuts if cut <= last]
    at = [[part.levels[bisect_right(part.cuts, cut) - 1] for part in parts] for cut in kept[:-1]]
    return Steps(kept, [min(levels) for levels in at])


def price_steps(prices: Any, axis: str, places: Mapping[str, int], seconds: Fraction) -> list[Any]:
    """Cuts and levels of every place's prices, which stand in order of time.

    A row names its place under `axis`, a word that is empty where there is one place.
    """
    tables: dict[str, tuple[list[int], list[Any]]] = {place: ([0], []) for place in places}
    require(set(prices) <= {"gpus"}, "prices: unknown row sets")
    keys = {"from", "to", "price"} | ({axis} if axis else set())
    for position, row in enumerate(prices.get("gpus", ())):
        here = f"prices.gpus[{position}]"
        require(set(row) == keys, f"{here}: keys must be {sorted(keys)}")
        place = row[axis] if axis else ""
        require(place in places, f"{here}: unknown {axis}")
        cuts, levels = tables[place]
        (first, last), price = reading.span(row, here), reading.number(row["price"], here)
        require(last <= FAR, f"{here}: slots must be in 1..{FAR}")
        require(first > cuts[-1], f"{here}: must follow slot {cuts[-1]}")
        if first > cuts[-1] + 1:
            cuts.append(first - 1)
            levels.append(0)
        cuts.append(last)
        levels.append(price * seconds)
    return list(tables.values())


def one_piece(
    cuts: Sequence[int], paid: Sequence[Steps], job: RigidJob, slope: int, first: int, last: int,
    best: int | None, places: Mapping[str, int], limits: Limits,
) -> int | None:  # fmt: skip
    """Min of `best` and, over starts t >= first, slope (t + p - s) + price of t..t + p <= last.

    A placement's price is linear between starts where t or t + p is a cut, so the cheapest one's
    is least at one of these. Without servers as `places` it is the cheapest of the prices `paid`.
    """
    s, p = job.s, job.p
    begins, ends = (range(bisect_right(cuts, at), len(cuts)) for at in (first, first + p))
    for starts in ((first, last - p), (cuts[k] for k in begins), (cuts[k] - p for k in ends)):
        for start in starts:
            delay = slope * (start + p - s)
            if (best is not None and delay >= best) or not first <= start <= last - p:
                break
            reading.spend(10 * len(paid))
            price = [part.paid(start + p) - part.paid(start) for part in paid]
            cost: Any = (
                placement_price(job, price, places, limits) if places else job.g * min(price)
            )
            if cost is not None and (best is None or delay + cost < best):
                best = delay + cost
    return best


def placement_price(
    job: RigidJob, price: Sequence[int], places: Mapping[str, int], limits: Limits
) -> int | None:
    """Least price of a consolidated job's GPUs, by (6).

    It holds all on one server, or where none has so many, whole servers and part of one at most.
    """
    narrow = job.g <= max(places.values())
    states: dict[tuple[int, int], int] = {(0, 0): 0}  # GPUs so far, servers held in part
    for (place, size), each in zip(places.items(), price, strict=True):
        low, high = between(limits, ("server_gpus", place), size)
        held = (0, job.g) if narrow else range(min(size, job.g) + 1)
        reading.spend(10 * len(states) * len(held))
        after: dict[tuple[int, int], int] = {}
        for (used, parts), cost in states.items():
            for n in (n for n in held if low <= n <= min(high, job.g - used)):
                key = used + n, parts + (not narrow and 0 < n < size)
                if key[1] < 2 and cost + n * each < after.get(key, cost + n * each + 1):
                    after[key] = cost + n * each
        states = after
    return min((cost for (used, _), cost in states.items() if used == job.g), default=None)


def pausing(
    cuts: Sequence[int], levels: Sequence[int], s: int, units: int, most: int, gang: int,
    slope: int, last: int, best: int,
) -> int:  # fmt: skip
    """Min of `best` and, over ends C <= last, slope (C - s) + the cheapest units in slots s..C.

    A slot has `most` units, each of `gang` GPUs. As C grows, its units replace the dearest ones
    that are held; at first all are held at a price that no answer is worth. While whole slots
    replace units of one price, the value is linear in C.
    """
    held, now = Cheapest(units, best + 1), s
    for k in range(bisect_right(cuts, s) - 1, len(cuts)):
        level, end = (gang * levels[k], cuts[k + 1]) if k < len(levels) else (0, ENDLESS)
        end = min(end, last)
        while now < end and held.dearest > level:
            reading.spend(20)
            if slope * (now + 1 - s) >= best:
                return best
            slots = max(1, min(end - now, held.held[held.dearest] // most))
            held.offer(level, slots * most)
            now += slots
            best = min(best, slope * (now - s) + held.cost)
        now = max(now, end)
    return best


def makespan(jobs: Sequence[RigidJob], kinds: Mapping[str, int], kind: str) -> int:
    """Last completion at least, in slots.

    From any r on, the jobs submitted at r or later need their work on all GPUs; those of width g or
    more run side by side as often as g goes into the GPUs of each kind; and none ends before its
    submission and shortest duration. The same holds of the jobs that name one kind alone.
    """
    late = sorted(jobs, key=lambda job: -job.s)
    elastic = kind == "elastic"
    ends = [job.s + (-(-job.p * job.g // job.most) if elastic else job.p) for job in jobs]
    loads = []
    for some in [list(kinds), *([name] for name in kinds if len(kinds) > 1)]:
        mine, rooms = [job for job in late if {*job.kinds} <= {*some}], [kinds[k] for k in some]
        loads.append(([(job.s, job.p * job.g) for job in mine], sum(rooms)))
        for width in set() if elastic else {job.g for job in mine}:
            wide = [(job.s, job.p) for job in mine if job.g >= width]
            loads.append((wide, sum(room // width for room in rooms)))
    for listed, rate in loads:
        work = 0
        for s, more in listed:
            work += more
            ends.append(s - (-work // rate))
    return max(ends, default=0)

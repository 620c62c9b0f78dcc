"""edgecloud (A_online, JSAC 2022): least total completion time (2) of jobs, edge and cloud.

``no-migration``: a chunk stays on its worker, and in the cloud it is not interrupted; ``literal``:
(2) as printed, where work moves and a chunk number is a lane. Prices stand on (2d), a worker trains
one chunk a slot (a row a worker, a group of a server's workers of a type, a type, a type of a
finite cloud), and on (7b), storage.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from itertools import groupby, pairwise
from math import lcm
from operator import itemgetter
from typing import Any, ClassVar

from . import reading, trees
from .exact import Data, Interval, ceiling, point
from .problem import FamilyProblem
from .reading import integer, require
from .trees import Limits, between
from .verdict import Broken, Stretch, Verdict, given_up, jobs_of, levels, rows_of

AXES = {"worker_capacity": "worker", "group_capacity": "group", "type_capacity": "type",
        "cloud_capacity": "type", "storage": "server"}  # fmt: skip
UNUSED = {"parameter_servers", "cloud_parameter_servers"}
"""Rows whose prices are taken as 0, which is valid: blocks do not pay for PSs."""
PS_KEYS, CLOUD_KEYS = {"ps", "from", "to"}, {"chunk", "server", "from", "to"}
EDGE_KEYS = CLOUD_KEYS | {"worker"}
ROW_KEYS = PS_KEYS | EDGE_KEYS
Value = Callable[[int, int], int | None]
"""``value(a, b)``: least price of a job's work in slots up to b, with storage paid up to slot a."""


def unit_counts(instance: Data, field: str) -> dict[str, Any]:
    """How many workers or PSs of each type a server or the cloud (None: no limit) has."""
    servers, cloud = instance["servers"], instance["cloud"]
    reading.natural(instance, frozenset({"provenance"}), "instance")
    reading.names([*servers, cloud], "servers")
    counts: dict[str, Any] = {server["name"]: Counter(server.get(field, ())) for server in servers}
    return {**counts, cloud["name"]: defaultdict(lambda: None, cloud.get(field) or {})}


def _chunked_jobs(instance: Data) -> dict[str, Any]:
    """Jobs by name; each says how long an upload takes to where its worker type is."""
    servers, cloud = instance["servers"], instance["cloud"]
    for job in instance["jobs"]:
        kind, here = job["worker_type"], f"job {job['name']}"
        needed = {s["name"] for s in servers if kind in s.get("workers", ())}
        needed |= {cloud["name"]} if (cloud.get("workers") or {}).get(kind, 1) else set()
        absent = sorted(needed - set(job["upload_slots"]))
        require(not absent, f"{here}.upload_slots: must name {', '.join(absent)}")
        for key in ("arrival", "chunks", "epochs", "minibatches"):
            integer(job[key], 1, f"{here}.{key}")
    return dict(zip(reading.names(instance["jobs"], "jobs"), instance["jobs"], strict=True))


def chunk_slots(instance: Data, job: Data) -> tuple[int, int]:
    """(1) in whole slots, at least 1: E B / n_j of a chunk for zeta_j = 0 and for zeta_j = 1."""
    steps, alone = job["epochs"] * job["minibatches"], job["minibatch_slots"] + job["update_slots"]
    talk = Fraction(16 * job["gradient_mb"]) / (job["bandwidth_mbps"] * instance["slot_seconds"])
    return max(1, ceiling(steps * (alone + talk))), max(1, ceiling(steps * alone))


class Problem(FamilyProblem):
    """(2) of an instance, and (7) where storage is limited."""

    sense = "min"
    formulations: ClassVar = {"no-migration": "no-migration", "literal": "literal"}

    def __init__(self, instance: Data, formulation: str) -> None:
        self.instance, self.literal = instance, formulation == "literal"
        self.cloud, self.jobs = instance["cloud"]["name"], _chunked_jobs(instance)
        self.workers, self.ps = unit_counts(instance, "workers"), unit_counts(instance, "ps")
        self.servers = {server["name"]: server for server in instance["servers"]}
        self.slots = {name: chunk_slots(instance, job) for name, job in self.jobs.items()}

    def worth(self, ends: Mapping[str, int | None]) -> Interval | None:
        """(2) of completions by job; None if one has none."""
        total = 0
        for name, end in ends.items():
            if end is None:
                return None
            total += end - self.jobs[name]["arrival"] + 1
        return point(total)

    def bound(self, certificate: Data) -> Interval:
        """Sum over jobs of min [time + price of what it uses], less price x capacity, exactly.

        A block is one job of (2) with whole chunks; that cloud workers, PSs and storage are few is
        left out of it, which errs outward. Slots have no last one: behind all prices they are free.
        A tree without migration splits the slot up to which a job pays for time (a job that is done
        before is one that waits), and its chunks on a group or in the cloud.
        """
        instance, cloud, count, ps = self.instance, self.cloud, self.workers, self.ps
        servers, jobs = instance["servers"], instance["jobs"]
        workers = [
            (s["name"], n, k) for s in servers for n, k in enumerate(s.get("workers", ()), 1)
        ]
        sets: dict[str, Mapping[str, Any]] = {
            "worker_capacity": {f"{s}/{n}": 1 for s, n, _ in workers},
            "group_capacity": Counter(f"{s}/{kind}" for s, _, kind in workers),
            "type_capacity": Counter(kind for *_, kind in workers),
            "cloud_capacity": count[cloud],
            "storage": {
                s["name"]: s["storage_gb"] for s in servers if s.get("storage_gb") is not None
            },
        }
        sizes = [job.get("chunk_gb") or 0 for job in jobs]
        literal, tree = self.literal, certificate["kind"] == "tree"
        groups = [("group", sets["group_capacity"])]
        features: trees.Features = {"completion": (), "cloud_chunks": (), "chunks": groups}
        if tree:
            require(not literal, "kind: jobs whose work moves have no trees")
            trees.layout(certificate, ("groups",))
            del sets["worker_capacity"]

        def price(given: Any) -> tuple[Interval, Any]:
            prices = {name: rows for name, rows in given.items() if name not in UNUSED}
            end = max(
                (integer(row["to"], 1, "to") for rows in prices.values() for row in rows), default=0
            )
            most = max((len(sets.get(name, ())) for name in prices), default=0)
            reading.check_limit("cells", end * most, "prices: slots x workers")
            axes = {name: [(AXES[name], labels)] for name, labels in sets.items()}
            tables = reading.price_rows(prices, axes, end)
            every = {(name, label): s for name, t in tables.items() for (label,), s in t.items()}
            total = -sum(
                (sum(s) * sets[name][label] for (name, label), s in every.items()), Fraction()
            )
            scale = reading.to_integers(every.values(), lcm(*(gb.denominator for gb in sizes)))
            spans: dict[tuple[str, str], tuple[Stretch, ...]] = defaultdict(tuple)
            for key, series in every.items():
                runs = [
                    (p, list(slots)) for p, slots in groupby(range(end + 1), series.__getitem__)
                ]
                spans[key] = tuple((slots[0], slots[-1], p) for p, slots in runs if p)
            places = [
                (s, k, f"{s}/{k}", spans["worker_capacity", f"{s}/{n}"]
                 + spans["group_capacity", f"{s}/{k}"] + spans["type_capacity", k])
                for s, n, k in workers
            ]  # fmt: skip

            def respond(position: int, limits: Limits) -> Interval | None:
                job, gb = jobs[position], sizes[position]
                arrival, kind = integer(job["arrival"], 1, "arrival"), job["worker_type"]
                chunks = integer(job["chunks"], 1, "chunks")
                edge, alone = chunk_slots(instance, job)
                ready = {
                    at: arrival + integer(n, 0, "upload") for at, n in job["upload_slots"].items()
                }
                stop = max([end, arrival, *ready.values()]) + chunks * edge
                classes: Counter[Any] = Counter()
                for server, worker_kind, label, slot_prices in places:
                    if worker_kind == kind:
                        kept = tuple(
                            (f, e, int(p * gb)) for f, e, p in spans["storage", server] if gb
                        )
                        bounds = between(limits, ("chunks", label), chunks)
                        apart = label if ("chunks", label) in limits else ""
                        classes[ready[server], slot_prices, kept, bounds, apart] += 1
                size = 100 + 10 * sum(
                    len(slot_prices) + len(kept) for _, slot_prices, kept, *_ in classes
                )
                reading.spend(size + 2 * len(places))
                limit, sky = count[cloud][kind], []
                if limit != 0:
                    sky = padded_levels(spans["cloud_capacity", kind], ready[cloud], stop)
                if literal:
                    air = [(chunks if limit is None else limit, sky)]
                    edges = [
                        (n, padded_levels(at + kept, f, stop))
                        for (f, at, kept, *_), n in classes.items()
                    ]
                    values = [
                        moving_work(edges + air, chunks, edge),
                        moving_work(air, chunks, alone),
                    ]
                else:
                    homes = [
                        (n, padded_levels(at, f, stop), padded_levels(kept, arrival, stop), bounds)
                        for (f, at, kept, bounds, _), n in classes.items()
                    ]
                    used = any(low for *_, (low, _) in homes)
                    clouds = between(limits, ("cloud_chunks",), chunks)
                    values = [whole_chunks(homes, sky, limit, chunks, edge, clouds)]
                    values += [whole_chunks([], sky, limit, chunks, alone, clouds)] * (not used)
                if len(values) > 1 and (not sky or ps[cloud][job["ps_type"]] == 0):
                    values.pop()  # zeta_j = 1 takes a worker and a PS in the cloud
                begin = max(arrival, limits.get(("completion",), (0, 0))[0])
                latest = between(limits, ("completion",), max(stop, begin))[1]
                best = least(values, arrival, begin, latest, scale, size)
                return None if best is None else point(Fraction(best, scale))

            return point(total), respond

        names = [job["name"] for job in jobs]
        return trees.certificate_bound(certificate, price, features, names, step=1)

    def check(self, solution: Data) -> Verdict:
        """Broken constraints, and the total completion time; a job without one counts as begun."""
        broken, ends = Broken(), dict[str, int]()
        given_up(solution, ())
        for name, given in jobs_of(solution, self.jobs).items():
            ends[name] = self._check_job(broken, name, given)
        value = self.worth(ends)
        assert value is not None
        return broken.verdict(value)

    def _check_job(self, broken: Broken, name: str, given: Data) -> int:
        """Note what a job breaks; the last slot in which it runs."""
        job, runs, holds = self.jobs[name], defaultdict[int, list[Any]](list), list[Stretch]()
        arrival, outside = job["arrival"], False
        for first, last, row in rows_of(given, {"from", "to"}, ROW_KEYS):
            at = row.get("ps", row.get("server"))
            keys = PS_KEYS if "ps" in row else CLOUD_KEYS if at == self.cloud else EDGE_KEYS
            require(set(row) == keys, f"job {name}: keys of a row must be {sorted(keys)}")
            require(at in self.workers, f"job {name}: unknown server")
            outside = outside or at != self.cloud
            if "ps" in row:
                holds.append((first, last, 1))
                early = min(last, arrival - 1)
                says: tuple[Any, ...] = "runs before it arrives in slot {}", arrival
                broken.note(arrival - first, "(2i)", name, first, early, at, says=says)
                kind = job["ps_type"]
                load = "(2f)", at, f"PS {kind}", self.ps[at][kind]
                broken.loads[load].append((first, last, 1, name))
            else:
                chunk = integer(row["chunk"], 1, name)
                place = self._run(broken, name, first, last, row)
                runs[chunk].append((first, last, (at, place)))
        flat = sorted(run for spans in runs.values() for run in spans)
        need = self.slots[name][bool(flat) and not outside]
        parts, most = ([flat], need * job["chunks"]) if self.literal else ([*runs.values()], need)
        done = sum(min(most, sum(e - f + 1 for f, e, _ in spans)) for spans in parts)
        says = "does {} of its {} slots of work", done, need * job["chunks"]
        broken.note(need * job["chunks"] - done, "(2b)", name, says=says)
        end = max((last for _, last, _ in flat), default=arrival - 1)
        if done >= need * job["chunks"]:
            broken.completion(given, end)
        many = len(holds) + 1  # a run counts `many`, a PS held 1
        for first, last, h in levels([(f, e, many) for f, e, _ in flat] + holds):
            says = "has {} parameter servers while it runs, not 1", h % many
            broken.note(h >= many and abs(h % many - 1), "(2e)", name, first, last, says=says)
        for chunk, spans in () if self.literal else runs.items():
            here, moves = (name, spans[0][0], spans[-1][1]), len({place for *_, place in spans}) - 1
            says = "moves its chunk {} {} times", chunk, moves
            broken.note(moves, "no migration", *here, "", f"chunk {chunk}", says)
            for before, after in pairwise(spans) if spans[0][2][0] == self.cloud else ():
                apart = after[0] - before[1] - 1
                says = "pauses its chunk {}", chunk
                paused = before[1] + 1, after[0] - 1
                broken.note(apart, "no preemption in the cloud", name, *paused, says=says)
        homes = Counter(at for spans in runs.values() for at in {at for *_, (at, _) in spans})
        for at in homes.keys() - {self.cloud}:
            spans = [(f, e, 1) for f, e, place in flat if self.literal and place[0] == at]
            gb = (job.get("chunk_gb") or 0) * max((h for *_, h in levels(spans)), default=homes[at])
            load = "(7b)", at, "GB", self.servers[at].get("storage_gb")
            broken.loads[load].append((arrival, end, gb, name))
        return end

    def _run(self, broken: Broken, name: str, first: int, last: int, row: Data) -> str:
        """Note what a run of a chunk breaks by itself, and book it; its place on the server."""
        job, chunk, at = self.jobs[name], row["chunk"], row["server"]
        kind, here = job["worker_type"], (name, first, last)
        require(chunk <= job["chunks"], f"job {name}: has no chunk {chunk}")
        place, limit = f"type {kind}", self.workers[at][kind]
        wrong = limit == 0
        if at != self.cloud:
            number, listed = integer(row["worker"], 1, name), self.servers[at].get("workers", ())
            place, limit = f"worker {number}", 1
            wrong = number > len(listed) or listed[number - 1] != kind
        broken.note(wrong, "(2a)", *here, at, says=("needs a worker of type {}", kind))
        broken.loads["(2d)", at, place, limit].append((first, last, 1, name))
        broken.loads["(2c)", "", f"chunk {chunk} of {name}", 1].append((first, last, 1, name))
        ready = job["arrival"] + job["upload_slots"].get(at, 0)
        says = "runs there before its data have arrived, in slot {}", ready
        broken.note(ready - first, "(2i)", name, first, min(last, ready - 1), at, says=says)
        return place


def padded_levels(spans: Iterable[Stretch], first: int, end: int) -> list[Stretch]:
    """Sum of spans over the slots first..end, where all of them end."""
    return levels([(max(f, first), e, h) for f, e, h in spans if e >= first] + [(first, end, 0)])


def charge(parts: Iterable[Stretch], last: int) -> int:
    """Price of all slots up to `last`."""
    return sum((min(e, last) - f + 1) * price for f, e, price in parts if f <= last)


def cheapest(offers: Iterable[tuple[int, int]], need: int) -> int | None:
    """Cost of the `need` cheapest of offers (cost, number); None if there are fewer."""
    cost = 0
    if not need:
        return cost
    for each, count in sorted(offers):
        cost, need = cost + each * min(count, need), need - min(count, need)
        if not need:
            return cost
    return None


def layers(ranked: Iterable[Stretch], last: int, work: int) -> list[tuple[int, int]]:
    """(Cost, number) of a worker's first, second, ... chunk in its cheapest slots up to `last`."""
    costs: list[tuple[int, int]] = []
    cost = filled = 0
    for first, end, price in ranked:
        left = min(end, last) - first + 1
        if filled and left > 0:
            part = min(left, work - filled)
            cost, filled, left = cost + part * price, filled + part, left - part
            if filled == work:
                costs.append((cost, 1))
                cost = filled = 0
        if left > 0:
            costs.append((work * price, left // work))
            cost, filled = left % work * price, left % work
    return costs


def parted(offers: Sequence[tuple[int, int]], low: int, high: int) -> list[list[tuple[int, int]]]:
    """Offers (cost, number) in their order: the first `low`, and the next up to `high`."""
    parts: list[list[tuple[int, int]]] = [[], []]
    for each, count in offers:
        first = min(count, low)
        parts[0].append((each, first))
        parts[1].append((each, min(count, high) - first))
        low, high = low - first, high - min(count, high)
    return parts


def whole_chunks(
    places: list[Any], sky: list[Stretch], air: Any, chunks: int, work: int, clouds: Any
) -> Value:
    """Chunks that stay, on places (workers, prices, storage), or in windows of the cloud's prices.

    By slot b a cloud of `air` workers (None: no limit) ends at most so many whole windows. A place
    has the least and most of its chunks; `clouds` are those of the cloud.

    A worker's n chunks take its n x work cheapest slots, so that later ones cost more and the
    cheapest are an optimum. A window's price is linear between the starts tried here.
    """
    ranked = [(n, sorted(p, key=itemgetter(2)), *more) for n, p, *more in places]
    forced = sum(low for *_, (low, _) in ranked) + clouds[0]
    starts = {start for f, _, _ in sky for start in (f, f - work) if start >= sky[0][0]}
    window = [(s, charge(sky, s + work - 1) - charge(sky, s - 1)) for s in starts]

    def value(a: int, b: int) -> int | None:
        must, offers = list[tuple[int, int]](), list[tuple[int, int]]()
        for n, parts, kept, limits in ranked:
            costs = [(cost + charge(kept, a), count * n) for cost, count in layers(parts, b, work)]
            first, more = parted(costs, *limits)
            must, offers = must + first, offers + more
            if limits[0] > limits[1]:
                return None
        latest, room = b - work + 1, 0
        if sky and latest >= sky[0][0]:
            prices = [price for start, price in window if start <= latest]
            room = chunks if air is None else air * ((b - sky[0][0] + 1) // work)
            price = min(*prices, charge(sky, b) - charge(sky, latest - 1))
            must.append((price, clouds[0]))
            offers.append((price, min(room, clouds[1]) - clouds[0]))
        if forced > chunks or not clouds[0] <= min(room, clouds[1]):
            return None
        base, rest = cheapest(must, forced), cheapest(offers, chunks - forced)
        return None if base is None or rest is None else base + rest

    return value


def moving_work(places: list[Any], chunks: int, work: int) -> Value:
    """(2) as printed: in every slot the cheapest D workers, and of these the cheapest D p units."""
    points = sorted({slot for _, parts in places for f, e, _ in parts for slot in (f, e + 1)})
    offers: list[tuple[int, int, int, int]] = []
    for first, after in pairwise(points):
        room = chunks
        here = [(p, n) for n, parts in places for f, e, p in parts if f <= first <= e]
        for price, n in sorted(here):
            offers.append((price, first, after - 1, min(n, room)))
            room -= min(n, room)
    return lambda _, b: cheapest(
        [(p, n * (min(e, b) - f + 1)) for p, f, e, n in offers if n and f <= b], chunks * work
    )


def least(
    values: Sequence[Value], first: int, begin: int, last: int, scale: int, size: int
) -> int | None:
    """Min over completions c in begin..last of scale x (c - first + 1) + value(c, c), exactly.

    What completes in a..b costs at least as if it completed in a and could use all slots up to b.
    The most promising interval is halved until it is one slot, where that is exact. None if no
    completion is within limits, or no work.
    """
    heap: list[tuple[int, int, int, int]] = []
    spans = [(begin, last, which) for which in range(len(values)) if begin <= last]
    while True:
        for a, b, which in spans:
            reading.spend(size)
            price = values[which](a, b)
            if price is not None:
                heappush(heap, (price + scale * (a - first + 1), a, b, which))
        if not heap:
            return None
        best, a, b, which = heappop(heap)
        if a == b:
            return best
        spans = [(a, (a + b) // 2, which), ((a + b) // 2 + 1, b, which)]

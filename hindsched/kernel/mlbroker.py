"""mlbroker (TPDS): least cost (8) of jobs in data centres whose prices fall with what all rent.

``tight`` is the realised cost; ``paper`` is (8) as printed: v stays 1 for nothing once it is 1, and
only the N nearest workers talk to the PS. Prices lambda stand on ``discount``, w_i <= H_i u (job i
buys units at the lower price only where the fee e is paid; H = n max(N, 1) + m is the most that it
rents in a centre, since a worker beyond N costs and never helps), and mu on ``deployment``, (8h).
"""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import lcm
from typing import Any, ClassVar

from . import reading, trees
from .exact import Data, Interval, ceiling, point
from .problem import FamilyProblem
from .reading import integer, require
from .trees import Limits, between
from .verdict import Broken, Verdict, check_apart, given_up, jobs_of, rows_of

COSTS = ("transfer", "resource", "deployment", "communication")
ROW_KEYS = {"from", "to", "workers", "ps"}
BROKER = "broker"
CASES = 20_000
"""Cases of one job's slot that are looked at; then the least bound of the open ones stands."""
Matrix = Sequence[Sequence[Any]]


class Market:
    """An instance by position: (a, b, e) of (R, K), d (R, R) in C1 and C4, times their weights."""

    def __init__(self, instance: Data) -> None:
        reading.natural(instance, frozenset({"provenance"}), "instance")
        w = [instance.get("cost_weights", {}).get(cost, 1) for cost in COSTS]
        self.centers = reading.names(instance["datacenters"], "datacenters")
        self.kinds, self.launch = instance["resources"], w[2]
        self.R, self.K = range(len(self.centers)), range(len(self.kinds))
        self.tiers: list[list[tuple[Any, Any, Any]]] = [[] for _ in self.R]
        for row, record in zip(self.tiers, instance["datacenters"], strict=True):
            for tier in (record["prices"][kind] for kind in self.kinds):
                a, b = w[1] * tier["unit_usd"], w[1] * tier["discounted_usd"]
                require(b <= a, "discounted_usd must not exceed unit_usd")
                row.append((a, b, (a - b) * tier["threshold"]))
        d = instance["transfer_usd_per_gb"]
        require([*map(len, d)] == [len(d)] * len(self.R), "transfer_usd_per_gb: shape")
        self.send, self.talk = ([[weight * x for x in row] for row in d] for weight in w[::3])

    def job(self, record: Data) -> tuple[Any, ...]:
        """P, B, c, n and m (K,), arcs (None where pinned data would leave), (t, D, N) by slot."""
        P, data = record["capacity_gb"], record["data_gb"]
        pinned = record.get("pinned_datacenters", ())
        require(P > 0 and {*pinned} <= {*self.centers}, f"capacity or pins of {record['name']}")
        arcs = [[self.send[r][q] if r == q or self.centers[r] not in pinned else None
                 for q in self.R] for r in self.R]  # fmt: skip
        n, m = ([record[of].get(kind, 0) for kind in self.kinds] for of in ("worker", "ps"))
        life = range(integer(record["arrival"], 1, "arrival"), record["departure"] + 1)
        shape = [len(self.R)] * len(life)
        require([*map(len, data)] == shape, f"data_gb of {record['name']}: shape")
        needed = [ceiling(Fraction(sum(row)) / P) for row in data]
        slots = list(zip(life, data, needed, strict=True))
        return P, record["exchange_gb"], self.launch * record["deployment_usd"], n, m, arcs, slots


def transport(supply: Sequence[Any], room: Sequence[Any], price: Matrix) -> tuple[Any, Any, Any]:
    """(1): bring supply to rooms at least cost by successive shortest paths, in exact numbers.

    Returns cost (least if all of it finds room), supply that finds no room, and the flow by source.
    A price None is no arc.
    """
    flow: list[dict[int, Any]] = [{} for _ in supply]
    users: list[set[int]] = [set() for _ in room]
    spare, left, sinks = list(room), 0, range(len(room))
    for origin, amount in enumerate(supply):
        while amount:
            reading.spend(10 * len(room))
            length, via, back = list(price[origin]), [origin] * len(room), {}
            queue = [j for j in sinks if users[j] and length[j] is not None]
            while queue:  # ways back along flows; no cycle is negative, so this ends
                j = queue.pop()
                reading.spend(5 * len(users[j]) * len(room))
                for i in users[j]:
                    base = length[j] - price[i][j]
                    for k, x in enumerate(price[i]):
                        if x is not None and (length[k] is None or base + x < length[k]):
                            length[k], via[k], back[i] = base + x, i, j
                            queue += [k] if users[k] else []
            ends = [(length[j], j) for j in sinks if spare[j] and length[j] is not None]
            if not ends:
                left += amount
                break
            forward, backward = [(via[min(ends)[1]], min(ends)[1])], []
            while (i := forward[-1][0]) != origin:
                backward.append((i, back[i]))
                forward.append((via[back[i]], back[i]))
            step = min([amount, spare[forward[0][1]], *(flow[i][j] for i, j in backward)])
            for arcs, change in ((forward, step), (backward, -step)):
                for i, j in arcs:
                    flow[i][j] = flow[i].get(j, 0) + change
                    (users[j].add if flow[i][j] else users[j].discard)(i)
            spare[forward[0][1]] -= step
            amount -= step
    return sum(x * price[i][j] for i, to in enumerate(flow) for j, x in to.items()), left, flow


class Problem(FamilyProblem):
    """(8) of an instance: a job's crew in every slot of its life."""

    sense = "min"
    formulations: ClassVar = {"tight": "tight", "paper": "paper"}

    def __init__(self, instance: Data, formulation: str) -> None:
        self.market, self.paper, jobs = Market(instance), formulation == "paper", instance["jobs"]
        self.horizon = integer(instance["horizon"], 1, "horizon")
        self.jobs = dict(zip(reading.names(jobs, "jobs"), jobs, strict=True))
        self.crews = {name: self.market.job(record) for name, record in self.jobs.items()}
        self.at = {name: r for r, name in enumerate(self.market.centers)}

    def bound(self, certificate: Data) -> Interval:
        """Jobs' least placements at prices, slot by slot, plus the sum of min(0, e - lambda H).

        A unit costs min(a, b + lambda). A job's presence in a centre costs mu(t) - mu(t+1): where
        that is negative it is taken, used or not, else whoever uses the centre pays it; a launch is
        worth c - mu(t) where that is negative. In ``paper`` C4 is left out: surplus workers talk
        for nothing. A tree of ``tight`` splits how many workers a job has in a centre in a slot,
        whether its PS is there, and, as decisions of a job called `BROKER`, whether the fee of a
        tier is paid: then it is, or nobody buys there. H is the most that a leaf leaves.
        """
        market, tight = self.market, not self.paper
        names, crews = [*self.jobs], [*self.crews.values()]
        jobs, R, K, horizon = names, market.R, market.K, self.horizon
        axes = [("datacenter", market.centers), ("job", names)]
        kinds = [axes[0], ("resource", market.kinds)]
        slots = ("slot", range(1, horizon + 1))
        features: dict[str, Sequence[tuple[str, Any]]] = {
            "workers": [axes[0], slots], "ps": [axes[0], slots], "tier": [*kinds, slots]
        }  # fmt: skip
        if certificate["kind"] == "tree":
            require(tight, "kind: only tight has trees")
            require(BROKER not in names, f"kind: no trees where a job is called {BROKER}")

        @lru_cache(1 << 14)  # leaves repeat one another's slots
        def least(j: int, i: int, paid: Any, keep: Any, limits: Any, serve: Any) -> Fraction | None:
            """Least cost of a job's slot where units cost `paid` more at the lower price."""
            P, B, _, n, m, arcs, life = crews[j]
            price = [
                [min(a, b + paid[r][k]) for k, (a, b, _) in enumerate(market.tiers[r])] for r in R
            ]
            unit = [sum(n[k] * price[r][k] for k in K) for r in R]
            ps = [sum(m[k] * price[r][k] for k in K) + keep[r] for r in R]
            worker = [[unit[r] + (B * market.talk[r][p] if tight else 0) for r in R] for p in R]
            ways = [[None if x is None else x * P for x in row] for row in arcs]
            every = [*ps, *keep, *(x for row in worker + ways for x in row if x is not None)]
            share = lcm(P.denominator, *(x.denominator for x in life[i][1]))
            scale = lcm(*(x.denominator for x in every)) << 64

            def up(row: Any) -> list[Any]:
                return [None if x is None else int(x * scale) for x in row]

            data, room = [int(x * share) for x in life[i][1]], int(P * share)
            rows = [up(row) for row in worker], up(ps), [up(row) for row in ways], up(keep)
            cost = placement(data, room, life[i][2], *rows, limits, serve)
            return None if cost is None else Fraction(cost, room * scale)

        def price(prices: Any) -> tuple[Interval, Any]:
            rows = min(len(prices.get("discount", ())), len(jobs) * len(R) * len(K))
            reading.check_limit("cells", horizon * max(rows, len(R)), "prices.discount")
            sets = {"deployment": axes, "discount": [*kinds, axes[1]]}
            mu, shares = reading.price_rows(prices, sets, horizon).values()
            none = [0] * (horizon + 1)
            earned: dict[trees.Feature, Any] = defaultdict(int)

            def respond(position: int, decided: Limits) -> Interval | None:
                total = Fraction()
                if position == len(jobs):  # the broker
                    for tier in {
                        *earned,
                        *(feature for feature in decided if feature[0] == "tier"),
                    }:
                        low, high = between(decided, tier, 1)
                        if low > high:
                            return None
                        r, k = market.centers.index(tier[1]), market.kinds.index(tier[2])
                        worth = market.tiers[r][k][2] - earned[tier]
                        total += worth if low else min(0, worth) if high else 0
                    return point(total)
                name, (_, _, c, n, m, _, life) = names[position], crews[position]
                moved = [mu.get((center, name), none) for center in market.centers]
                paid = [
                    [shares.get((x, y, name), none) for y in market.kinds] for x in market.centers
                ]
                for index, (t, _, needed) in enumerate(life):
                    stays = index + 1 < len(life)
                    keep = [series[t] - (series[t + 1] if stays else 0) for series in moved]
                    at = [
                        between(decided, ("workers", x, t), max(needed, 1)) for x in market.centers
                    ]
                    home = [between(decided, ("ps", x, t), 1) for x in market.centers]
                    must = [low > 0 for low, _ in home]
                    serve = [high > 0 and low >= any(must) for low, high in home]
                    if (
                        any(low > high for low, high in at + home)
                        or not any(serve)
                        or sum(must) > 1
                    ):
                        return None
                    total += sum(min(c - series[t], 0) for series in moved)
                    for r, (low, high) in enumerate(at):
                        used = low > 0 or must[r]
                        total += keep[r] if used else min(keep[r], 0) if high or serve[r] else 0
                        keep[r] = 0 if used else max(keep[r], 0)
                    for r, k in ((r, k) for r in R for k in K if paid[r][k][t]):
                        tier = "tier", market.centers[r], market.kinds[k], t
                        earned[tier] += paid[r][k][t] * (at[r][1] * n[k] + serve[r] * m[k])
                    units = tuple(tuple(series[t] for series in row) for row in paid)
                    cost = least(position, index, units, tuple(keep), tuple(at), tuple(serve))
                    if cost is None:
                        return None
                    total += cost
                return point(total)

            return point(0), respond

        return trees.certificate_bound(certificate, price, features, [*names, BROKER])

    def check(self, solution: Data) -> Verdict:
        """Weighted C1 (1), C2 (3), C3 (5) and C4 (6); data without a worker, slots without a PS."""
        market, broken, value = self.market, Broken(), Fraction()
        used: dict[tuple[int, int, int], Any] = defaultdict(int)
        given_up(solution, ())
        for name, given in jobs_of(solution, self.jobs).items():
            plan = self._plan(broken, name, given)
            value += self._costs(broken, name, plan, used)
            served = all(t in plan for t, *_ in self.crews[name][-1])
            broken.completion(given, self.jobs[name]["departure"] if served else None)
        for (_, r, k), h in used.items():  # (2)
            a, b, e = market.tiers[r][k]
            value += min(a * h, b * h + e)
        return broken.verdict(point(value))

    def _plan(self, broken: Broken, name: str, given: Data) -> dict[int, Any]:
        """Workers by centre and the PS's centre, by slot; rows without slots are one a slot."""
        record, here, plan = self.jobs[name], f"job {name}", dict[int, Any]()
        rows = given["assignments"]
        if all(not row.keys() & {"from", "to"} for row in rows):
            begin = record["arrival"]
            rows = [{"from": t, "to": t, **row} for t, row in enumerate(rows, begin)]
        rows = rows_of({**given, "assignments": rows}, ROW_KEYS, ROW_KEYS)
        check_apart(rows, here)
        for first, last, row in rows:
            require(row["ps"] in self.at, f"{here}: unknown data centre")
            workers = reading.counts(row["workers"], self.at, here)
            y = {self.at[center]: n for center, n in workers.items()}
            early, late = record["arrival"] - first, last - record["departure"]
            says = "runs outside its life, slots {} to {}", record["arrival"], record["departure"]
            broken.note(max(early, late), "within its life", name, first, last, says=says)
            for t in range(max(first, record["arrival"]), min(last, record["departure"]) + 1):
                plan[t] = y, self.at[row["ps"]]
        return plan

    def _costs(self, broken: Broken, name: str, plan: Any, used: dict[Any, Any]) -> Any:
        """C1, C3 and C4 of a job, and what it rents, added to `used`."""
        market, value, before = self.market, Fraction(), set[int]()
        P, B, c, n, m, arcs, life = self.crews[name]
        for t, data, needed in life:
            y, ps = plan.get(t, ({}, None))
            price = [[row[r] for r in y] for row in arcs]
            cost, left = shipped(data, [P * count for count in y.values()], price)
            broken.note(ps is None, "(8f)", name, t, says=("has no parameter server",))
            says: tuple[Any, ...] = "has no workers for {} of its data", left
            broken.note(left, "(8a)-(8b)", name, t, says=says)
            links = needed if self.paper else sum(y.values())
            for talk, r in sorted((market.talk[r][ps], r) for r in y if ps is not None):
                cost += B * talk * min(links, y[r])
                links -= min(links, y[r])
            present = {*y, *([] if ps is None else [ps])}
            for r in present if self.paper else ():
                center, held = market.centers[r], y.get(r, 0) + (r == ps)
                says = "rents {} machines in {}, at most {}", held, center, needed + 1
                broken.note(held - needed - 1, "(8g)", name, t, t, "", center, says)
            value += cost + c * len(present - before)
            before = present | before if self.paper else present
            for r in present:
                for k in market.K:
                    used[t, r, k] += n[k] * y.get(r, 0) + m[k] * (r == ps)
        return value


def shipped(data: Sequence[Any], rooms: Sequence[Any], price: Matrix) -> tuple[Any, Any]:
    """Cost of a slot's transport and what finds no room, counted in integers.

    Amounts are scaled by their common denominator, prices by theirs.
    """
    unit = lcm(*(x.denominator for x in (*data, *rooms)))
    paid = lcm(*(x.denominator for row in price for x in row if x is not None))
    supply, room = ([int(x * unit) for x in row] for row in (data, rooms))
    arcs = [[None if x is None else int(x * paid) for x in row] for row in price]
    cost, left, _ = transport(supply, room, arcs)
    return Fraction(cost, unit * paid), Fraction(left, unit)


def placement(
    data: list[int], room: int, needed: int, worker: Matrix, ps: list[int], arc: Matrix,
    launch: list[int], limits: Sequence[tuple[int, int]], serve: Sequence[bool],
) -> int | None:  # fmt: skip
    """Least cost of a job's slot x `room`, in integers; less where `CASES` cases are not enough.

    That is the min over the PS's place p and whole y of ps[p] + sum of worker[p][r] y_r + launch[r]
    for the other r with y_r > 0 + transport of the data (arc, x room) to rooms `room` y. A case has
    low <= y <= high. Its bound is a transport problem: data, and room that N workers have beside,
    go to rooms that low pays, or to more at the price of a worker and of launch / high. Where y is
    whole and launches are paid, that is exact; else y_r is split, the most promising case first.
    `limits` are the least and most workers, and the PS may `serve`. None if nothing is left.
    """
    R = range(len(data))
    every = [*zip(data, arc, strict=True), (needed * room - sum(data), [0] * len(data))]
    supply, ways = [x for x, _ in every if x], [way for x, way in every if x]
    stays = [arc[r].count(None) == len(data) - 1 for r in R]
    least = [-(-x // room) if stay else 0 for x, stay in zip(data, stays, strict=True)]
    cases: list[Any] = []
    floor = tuple(max(x, low) for x, (low, _) in zip(least, limits, strict=True))
    top = tuple(min(max(needed, x), high) for x, (_, high) in zip(floor, limits, strict=True))
    for p in (p for p in R if serve[p]):
        each = [worker[p][r] + launch[r] // max(1, needed) * (r != p) for r in R]
        sent = [min(x + way[r] for r, x in enumerate(each) if way[r] is not None) for way in ways]
        cost = room * ps[p] + sum(x * price for x, price in zip(supply, sent, strict=True))
        if all(low <= high for low, high in zip(floor, top, strict=True)):
            cases.append((cost, p, p, floor, top, None))
    heapify(cases)
    made = len(data)
    while cases:
        bound, _, p, low, high, solved = heappop(cases)
        reading.spend(10 * len(R) ** 2)
        if solved is None:
            share = [0 if r == p or low[r] else launch[r] // max(1, high[r]) for r in R]
            paid, more = [r for r in R if low[r]], [r for r in R if high[r] > low[r]]
            rooms = [room * low[r] for r in paid] + [room * (high[r] - low[r]) for r in more]
            prices = [(r, 0) for r in paid] + [(r, worker[p][r] + share[r]) for r in more]
            price = [[None if way[r] is None else way[r] + x for r, x in prices] for way in ways]
            cost, left, flow = transport(supply, rooms, price)
            fixed = sum(low[r] * worker[p][r] + launch[r] * (r != p) for r in paid)
            y = [room * x for x in low]
            for column, x in (item for row in flow for item in row.items()):
                y[prices[column][0]] += x * (column >= len(paid))
            if not left:
                case = (max(bound, cost + room * (ps[p] + fixed)), made, p, low, high, (y, share))
                heappush(cases, case)
        else:
            y, share = solved
            unpaid = [
                (launch[r] - share[r] * (y[r] // room), r)
                for r in R if share[r] and 0 < y[r] < room * high[r]
            ]  # fmt: skip
            split = [(min(y[r] % room, -y[r] % room), r) for r in R if y[r] % room] or unpaid
            if not split or made > CASES:
                return int(bound)
            r = max(split)[1]
            k = y[r] // room if y[r] % room else 0
            lower, upper = (*low[:r], k + 1, *low[r + 1 :]), (*high[:r], k, *high[r + 1 :])
            heappush(cases, (bound, made, p, low, upper, None))
            heappush(cases, (bound, made + 1, p, lower, high, None))
        made += 2
    return None

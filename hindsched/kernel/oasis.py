"""oasis (max): elastic workers and parameter servers (PSs); numbers are the paper's equations.

Rows (4) and (5) are priced by server, or by group of identical servers, whose n_g servers hold
n_g floor(c_g / w) workers: spread evenly and averaged over rotations, no bound changes. Places of a
job's units on a group may be priced too (layout ``patterns``): what jobs pay for places, the group
earns back with n_g times the dearest integer packing of one server, y <= sum of its patterns.

Online policies (`nonanticipative`) may be taken to run no worker beyond the work that is left, and
the fewest PSs: dropping others, slot by slot, needs nothing that is told later, frees capacity and
changes no completion. So own terms are on the workers of a slot and on the completion, and a job
answers them and prices with exactly its work, or, where it may be given up, with less.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import lcm
from operator import add, itemgetter
from typing import Any, ClassVar

from . import reading, trees
from .cheapest import cheapest_units
from .exact import Data, Interval, ceiling, point, total, utility
from .problem import ScenarioProblem
from .reading import require
from .trees import NEVER, Limits, between
from .verdict import Broken, Row, Verdict, check_apart, given_up, jobs_of, rows_of

SIGNED = frozenset({"slope", "intercept", "target", "provenance"})
TERMS = ("workers", "completion")
"""What own terms are on: each worker of a slot, and a completion in it."""
SIDES, KEYS = ("worker", "ps"), ("workers", "ps")
EQUATIONS = {"worker": "(4)", "ps": "(5)"}
FINEST = 10**31
Amounts = Data
Series = dict[tuple[Any, ...], list[Any]]  # prices by labels, then by slot


class ElasticJob:
    """What (2)-(7) say of a job alone."""

    def __init__(self, data: Data, instance: Data) -> None:
        self.name, here = data["name"], f"job {data['name']}"
        self.arrival, self.most, epochs, minibatches = (
            reading.integer(data[key], 1, f"{here}.{key}")
            for key in ("arrival", "chunks", "epochs", "minibatches")
        )
        self.demand: dict[str, Amounts] = {side: data[side] for side in SIDES}
        self.b, self.big_b = (data[s].get(instance["bandwidth_resource"], 0) for s in SIDES)
        time = Fraction(data["minibatch_slots"])
        if data["gradient_mb"]:
            time += Fraction(16 * data["gradient_mb"]) / self.b / instance["slot_seconds"]
        self.work = max(1, ceiling(epochs * self.most * minibatches * time))  # (2)
        reading.check_limit("chunks", self.most, here)
        require(self.arrival <= instance["horizon"], f"{here}: arrives after the horizon")
        self.f, self.values = data["utility"], dict[int, Interval]()

    def value(self, slot: int) -> Interval:
        """(1): f(completion - arrival)."""
        if slot not in self.values:
            reading.spend(4000)
            self.values[slot] = utility(self.f, slot - self.arrival)
        return self.values[slot]

    def needed(self, workers: int) -> int:
        """(6): PSs for so many workers, ceil(n b / B)."""
        return ceiling(Fraction(workers * self.b) / self.big_b) if self.b else 0

    def fit(self, side: str, capacity: Amounts) -> int:
        """How many of its workers or PSs an empty server holds, N at most: (30), (31)."""
        room = [capacity.get(r, 0) // d for r, d in self.demand[side].items() if d]
        return int(min([self.most, *room]))


def _elastic_jobs(instance: Data) -> dict[str, ElasticJob]:
    """Jobs by name; refuses an instance without a meaning."""
    reading.natural(instance, SIGNED, "instance")
    width = sum(len(reading.names(instance[f"{side}_servers"], side)) for side in SIDES)
    amount = instance["horizon"] * width * len(instance["resources"])
    reading.check_limit("cells", amount, "horizon x servers x resources")
    parts = [server["capacity"] for side in SIDES for server in instance[f"{side}_servers"]]
    parts += [job[side] for side in SIDES for job in instance["jobs"]]
    require(set().union(*parts) <= set(instance["resources"]), "resources: some are not listed")
    known = reading.names(instance["jobs"], "jobs")
    return {
        name: ElasticJob(job, instance) for name, job in zip(known, instance["jobs"], strict=True)
    }


class Problem(ScenarioProblem):
    """(1)-(13) of an instance."""

    sense = "max"
    formulations: ClassVar = {"standard": "standard"}
    nonanticipative = ("standard",)

    def __init__(self, instance: Data, _: str) -> None:
        self.instance, self.horizon = instance, instance["horizon"]
        self.jobs = _elastic_jobs(instance)
        self.servers = {
            side: {h["name"]: h["capacity"] for h in instance[f"{side}_servers"]} for side in SIDES
        }

    def worth(self, ends: Mapping[str, int | None]) -> Interval:
        """(1) of completions by job."""
        return total(self.jobs[name].value(end) for name, end in ends.items() if end is not None)

    def bound_with(self, part: Data, weight: Any, multipliers: Mapping[str, Any]) -> Interval:
        """Bound of a weight times (1), with own terms; on groups of servers."""
        for name, terms in multipliers.items():
            for first, last, of in terms:
                require(first == last and of in TERMS, f"own: {name}: of {TERMS} in one slot")
        below = lcm(*(m.denominator for terms in multipliers.values() for m in terms.values()))
        own = _Multipliers(weight, multipliers, part["policies"] == "run", below)
        price = OasisPricing(self.instance, False, own).price
        return trees.certificate_bound(part, price, {"completion": ()}, list(self.jobs))

    def listed(self) -> list[ElasticJob]:
        """The jobs in order."""
        return list(self.jobs.values())

    def game(self, policies: str) -> tuple[Any, ...]:
        """Jobs that are decided as they arrive, on one server for workers and one for PSs."""
        alone = policies == "commit" and all(len(known) == 1 for known in self.servers.values())
        require(alone, "kind: the problem is no game")
        return "elastic", self

    def bound(self, certificate: Data) -> Interval:
        """P b + sum of max(0, best response): of prices, or of the leaves of a tree."""
        layout = trees.layout(certificate, ("groups", "servers", "patterns"))
        rows = OasisPricing(self.instance, layout == "servers")
        slots = ("slot", range(1, self.horizon + 1))
        on_worker, on_ps = ((rows.axis, rows.groups[side]) for side in SIDES)
        features = {"completion": (), "slot_workers": (slots,), "workers": (on_worker, slots),
                    "ps": (on_ps, slots)}  # fmt: skip
        return trees.certificate_bound(certificate, rows.price, features, list(rows.jobs))

    def check(self, solution: Data) -> Verdict:
        """Check (2)-(7), (9), (10) and add up (1); counts are whole and not negative."""
        broken, ends = Broken(), dict[str, int | None]()
        for name, given in given_up(solution, self.jobs).items():
            self._rows(broken, name, given)
        for name, given in jobs_of(solution, self.jobs).items():
            job, done, end = self.jobs[name], 0, None
            rows = self._rows(broken, name, given)
            check_apart(rows, f"job {name}")
            for first, last, row in rows:
                y, z = (sum(row.get(key, {}).values()) for key in KEYS)
                at, early = (name, first, last), first < job.arrival
                traffic = y * job.b, z * job.big_b
                before = (name, first, min(last, job.arrival - 1))
                broken.note(
                    last - self.horizon, "horizon", name, max(first, self.horizon + 1), last,
                    says=("runs after the horizon {}", self.horizon),
                )  # fmt: skip
                says: tuple[Any, ...] = "uses {} workers, at most {}", y, job.most
                broken.note(y - job.most, "(3)", *at, says=says)
                says = "sends {} by its workers, its parameter servers take {}", *traffic
                broken.note(traffic[0] - traffic[1], "(6)", *at, says=says)
                says = "has {} parameter servers for {} workers", z, y
                broken.note(z - y, "(7)", *at, says=says)
                says = "has {} before it arrives in slot {}", "workers", job.arrival
                broken.note(early and y, "(9)", *before, says=says)
                says = "has {} before it arrives in slot {}", "parameter servers", job.arrival
                broken.note(early and z, "(10)", *before, says=says)
                done, end = done + y * (last + 1 - first), last if y else end
            says = "does {} of its {} units of work", done, job.work
            broken.note(bool(rows) and job.work - done, "(2)", name, says=says)
            if not rows or done >= job.work:
                broken.completion(given, end)
                ends[name] = end
        return broken.verdict(self.worth(ends))

    def _rows(self, broken: Broken, name: str, given: Data) -> list[Row]:
        """OasisPricing of a job, whose use is booked (4), (5)."""
        rows = rows_of(given, {"from", "to"}, {"from", "to", *KEYS})
        for first, last, row in rows:
            held = 0
            for side, key in zip(SIDES, KEYS, strict=True):
                placed = reading.counts(row.get(key, {}), self.servers[side], f"job {name}")
                for server, n in placed.items():
                    held += n
                    for resource, amount in self.jobs[name].demand[side].items():
                        room = self.servers[side][server].get(resource, 0)
                        load = EQUATIONS[side], server, resource, room
                        broken.loads[load].append((first, last, n * amount, name))
            require(held, f"job {name}: a row of nothing")
            reading.spend(20)
        return rows


@dataclass(frozen=True)
class _Multipliers:
    """What changes a scenario's values: their weight, and own terms of either sign."""

    weight: Any
    terms: Mapping[str, Mapping[tuple[int, int, str], Any]]  # by job; first and last slot
    may_give_up: bool
    below: int  # a denominator of all terms


class OasisPricing:
    """Best responses and rows by server, or by group of equal servers by the first's name."""

    def __init__(
        self, instance: Data, by_server: bool, multipliers: _Multipliers | None = None
    ) -> None:
        self.instance, self.jobs, self.multipliers = instance, _elastic_jobs(instance), multipliers
        self.axis, self.horizon = "server" if by_server else "group", instance["horizon"]
        self.groups: dict[str, dict[str, tuple[int, Amounts]]] = {}
        for side in SIDES:
            alike: dict[Any, list[Any]] = {}
            for server in instance[f"{side}_servers"]:
                sizes = tuple(server["capacity"].get(r, 0) for r in instance["resources"])
                alike.setdefault(server["name"] if by_server else sizes, []).append(server)
            same = alike.values()
            self.groups[side] = {g[0]["name"]: (len(g), g[0]["capacity"]) for g in same}
        for job in self.jobs.values():  # most workers that (6), (7) and the empty cluster allow
            w, p = (sum(n * job.fit(s, c) for n, c in self.groups[s].values()) for s in SIDES)
            while job.most > w or job.needed(job.most) > min(p, job.most):
                job.most -= 1

    def price(self, prices: Any) -> tuple[Interval, Any]:
        """P b, and the jobs' best responses."""
        kinds = {"capacity": ("resource", self.instance["resources"]), "units": ("job", self.jobs)}
        sets = {f"{side}_{of}": [(self.axis, self.groups[side]), axis]
                for side in SIDES for of, axis in kinds.items()}  # fmt: skip
        tables, worth = reading.price_rows(prices, sets, self.horizon), Fraction()
        scale = reading.to_integers(s for table in tables.values() for s in table.values())
        rows, places = ({side: tables[f"{side}_{of}"] for side in SIDES} for of in kinds)
        for side in SIDES:
            for (group, resource), series in rows[side].items():
                number, capacity = self.groups[side][group]
                worth += number * capacity.get(resource, 0) * sum(series)
            worth += self._packings(side, places[side])
        jobs = list(self.jobs.values())
        return point(worth / scale), lambda job, limits: self._best_response(
            jobs[job], rows, places, scale, limits
        )

    def _unit_prices(
        self, job: ElasticJob, side: str, rows: Series, places: Series, factor: int
    ) -> Any:
        """By group: its name, how many of the job's units it holds, their price by slot."""
        for group, (number, capacity) in self.groups[side].items():
            parts = [(d, rows.get((group, r))) for r, d in job.demand[side].items()]
            reading.spend(self.horizon * (1 + len(parts)))
            paid = [0] * (self.horizon + 1)
            for demand, series in [*parts, (1, places.get((group, job.name)))]:
                if series and demand:
                    unit = int(demand * factor)
                    paid = [a + unit * p for a, p in zip(paid, series, strict=True)]
            yield group, number * job.fit(side, capacity), paid

    def _best_response(
        self, job: ElasticJob, rows: Any, places: Any, scale: int, limits: Limits
    ) -> Interval | None:
        """Exact best response (27): F_t(s) = min over n of F_{t-1}(s - n) + c_t(n), in integers.

        Schedules make `work` worker-slots, no more, and run exactly the PSs that (6) needs:
        dropping idle workers and PSs keeps a schedule feasible and no later. The last slot has a
        worker, so that limits on the completion mean it. Pruned are only ends and states that
        cannot beat the best value so far, as f never rises and costs are never negative.
        """
        first, last = limits.get(("completion",), (0, NEVER))
        first, last = max(first, job.arrival), min(last, self.horizon)
        for feature, (low, _) in limits.items():
            if low and feature[0] != "completion":  # something must run in this slot
                first = max(first, feature[-1] if feature[-1] >= job.arrival else NEVER)
        factor = lcm(*(d.denominator for side in SIDES for d in job.demand[side].values()))
        factor *= lcm(*(n.denominator for n in job.f.values() if not isinstance(n, str)))
        factor *= self.multipliers.below if self.multipliers else 1
        factor *= ceiling(Fraction(FINEST, scale * factor))
        scale *= factor
        needs = [job.needed(n) for n in range(job.most + 1)]
        sides = [
            (key, most, list(self._unit_prices(job, side, rows[side], places[side], factor)))
            for key, side, most in zip(("workers", "ps"), SIDES, (job.most, needs[-1]), strict=True)
        ]
        never = 1 + last * sum(most * max(max(p) for _, _, p in side) for _, most, side in sides)
        if self.multipliers:
            return self._signed_response(job, self.multipliers, sides, needs, scale, limits)
        best, low = (0, 0) if trees.keeps_outside(limits) else (None, 0)
        reach, padding = [0], [never] * job.most  # F_t by worker-slots done
        for t in range(job.arrival, last + 1):
            value = job.value(t)
            high = ceiling(value.high * scale)
            if best is not None and high <= best:
                break
            costs = []
            for key, most, side in sides:
                priced = []
                for group, room, paid in side:
                    priced.append((paid[t], *between(limits, (key, group, t), room)))
                costs.append(cheapest_units(priced, most, never))
            least, limit = limits.get(("slot_workers", t), (0, NEVER))
            cost = [w + costs[1][z] if least <= n <= limit else never
                    for n, (w, z) in enumerate(zip(costs[0], needs, strict=True))]  # fmt: skip
            ends = [reach[job.work - n] + cost[n] for n in range(1, min(job.most, job.work) + 1)
                    if job.work - n < len(reach)]  # fmt: skip
            end = min(ends, default=never) if t >= first else never
            if end < never and (best is None or high - end > best):
                best, low = high - end, value.low * scale // 1 - end
            begin = max(0, job.work - job.most * (last - t))  # the others cannot end in time
            stop = min(job.work, len(reach) - 1 + job.most)
            reading.spend(job.most * max(1, stop + 1 - begin) + 20 * len(priced))
            reach = padding + reach + padding
            cost.reverse()
            reach = [never] * min(begin, stop + 1) + [
                min(map(add, cost, reach[s : s + job.most + 1])) for s in range(begin, stop + 1)
            ]
            useless = never if best is None else min(never, high - best)
            while reach and reach[-1] >= useless:
                reach.pop()
            if not reach:
                break
        return None if best is None else Interval(Fraction(low, scale), Fraction(best, scale))

    def _signed_response(
        self, job: ElasticJob, multipliers: _Multipliers, sides: Any, needs: list[int], scale: int,
        limits: Limits,
    ) -> Interval | None:  # fmt: skip
        """Exact best response to prices and own terms, as above but without pruning by value.

        Costs may be negative, so that a job that runs but never completes counts, where it may.
        """
        low, high = limits.get(("completion",), (0, NEVER))
        last, terms = min(high, self.horizon), multipliers.terms.get(job.name, {})
        may_give_up = multipliers.may_give_up and high == NEVER
        size = 1 + job.most * sum(abs(int(m * scale)) for m in terms.values())
        size += self.horizon * sum(most * max(max(p) for *_, p in side) for _, most, side in sides)
        never = 3 * size  # costs are above -size and below size
        worths = list[tuple[int, int]]()  # value less costs, rounded down and up
        reach, padding = [0], [never] * job.most  # least cost by worker-slots, fewer than the work
        for t in range(job.arrival, last + 1):
            pay = int(terms.get((t, t, "workers"), 0) * scale)
            units = [
                cheapest_units([(paid[t], 0, room) for _, room, paid in side], most, never)
                for _, most, side in sides
            ]
            cost = [w + units[1][z] + n * pay for n, (w, z) in
                    enumerate(zip(units[0], needs, strict=True))]  # fmt: skip
            ends = [reach[job.work - n] + cost[n] for n in range(1, min(job.most, job.work) + 1)
                    if job.work - n < len(reach)]  # fmt: skip
            if t >= low and (end := min(ends, default=never)) < size:
                end += int(terms.get((t, t, "completion"), 0) * scale)
                value = job.value(t).times(multipliers.weight)
                worths.append((value.low * scale // 1 - end, ceiling(value.high * scale) - end))
            stop = min(job.work - 1, len(reach) - 1 + job.most)
            late = 0 if may_give_up else max(0, job.work - job.most * (last - t))
            begin = min(late, stop + 1)  # the others cannot end in time
            reading.spend(job.most * (stop + 1 - begin) + 20 * len(self.groups["worker"]))
            reach = padding + reach + padding
            cost.reverse()
            reach = [never] * begin + [
                min(map(add, cost, reach[s : s + job.most + 1])) for s in range(begin, stop + 1)
            ]
        if high == NEVER:
            idle = -min(reach) if may_give_up else 0
            worths.append((idle, idle))
        if not worths:
            return None
        least, most = (max(values) for values in zip(*worths, strict=True))
        return Interval(Fraction(least, scale), Fraction(most, scale))

    def _packings(self, side: str, places: Series) -> int:
        """What groups earn: in every slot n_g times the dearest integer packing of one server."""
        revenue = 0
        for group, (number, capacity) in self.groups[side].items():
            size = [capacity.get(r, 0) for r in self.instance["resources"]]
            packed, known = [], dict[Any, Any]()
            for job in self.jobs.values():
                most = job.needed(job.most) if side == "ps" else job.most
                most = min(most, job.fit(side, capacity))
                if most and (group, job.name) in places:
                    demand = [job.demand[side].get(r, 0) for r in self.instance["resources"]]
                    packed.append((places[group, job.name], most, demand))
            reading.to_integers([size, *(demand for *_, demand in packed)])
            for t in range(1, self.horizon + 1):
                reading.spend(5 * len(packed))
                prices = tuple(series[t] for series, _, _ in packed)
                if prices not in known:  # slots repeat one another
                    units = [(p, *unit) for p, (_, *unit) in zip(prices, packed, strict=True) if p]
                    units.sort(key=itemgetter(0))
                    hopes = [0, *accumulate(price * most for price, most, _ in units)]
                    known[prices] = _dearest(size, units, len(units), hopes)
                revenue += number * known[prices]
        return revenue


def _dearest(left: list[Any], units: list[Any], first: int, hopes: list[Any]) -> Any:
    """Dearest packing of the first units (price, most, demand) into what is left of a server.

    The later, the dearer; `hopes` are what the first units pay, all of them.
    """
    if not first:
        return 0
    reading.spend(60)
    price, room, demand = units[first - 1]
    for c, d in zip(left, demand, strict=True):
        if room * d > c:
            room = c // d
    if first == 1:
        return room * price
    best, hope = 0, hopes[first - 1]
    for n in range(room, -1, -1):
        if n * price + hope <= best:
            break
        rest = [c - n * d for c, d in zip(left, demand, strict=True)]
        best = max(best, n * price + _dearest(rest, units, first - 1, hopes))
    return best

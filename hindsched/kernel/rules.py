"""Rules of the games that families play (`games`): how a job may begin, and what it holds.

gang holds GPUs of a pool; batchsched and astraea a window on servers, in the modes and with the one
PS host that `windows` shows to be enough; oasis, all decided at arrival and with one server for
workers and one for PSs, exactly its work and the fewest PSs, as `oasis` shows.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import lcm
from operator import le
from typing import Any, Protocol

from . import reading
from .exact import Data, ceiling

Held = tuple[tuple[int, tuple[Any, ...]], ...]
"""Last slots in order, each with the amounts of every resource that are held up to it."""
FINEST = 10**31  # payoffs are rounded outward to multiples of 1/FINEST


class Rules(Protocol):
    """What a family says of its game."""

    scale: int  # payoffs are whole multiples of 1 / scale, rounded outward
    commits: bool  # whether all of a job is decided when it is told
    optional: bool  # whether jobs may stay out

    def options(self, slot: int, kind: int, held: Held) -> Iterable[tuple[int, Held]]:
        """Ways to begin a job, or to decide on it: what it pays, and what it holds."""

    def rows(self, slot: int, kind: int, held: Held) -> list[Data]:
        """What a solution says of one of them."""


class GangGame:
    """Jobs in one piece on a pool of GPUs."""

    commits = optional = False

    def __init__(self, room: int, seconds: Any, jobs: Sequence[Any]) -> None:
        self.room, self.jobs = room, jobs
        slopes = [Fraction(job.w * seconds) for job in jobs]
        self.scale = lcm(*(slope.denominator for slope in slopes))
        self.slopes = [int(slope * self.scale) for slope in slopes]

    def options(self, slot: int, kind: int, held: Held) -> Iterator[tuple[int, Held]]:
        """The job begins now, if its GPUs are free."""
        job = self.jobs[kind]
        if job.g + sum(amounts[0] for _, amounts in held) <= self.room:
            end = slot + job.p - 1
            yield self.slopes[kind] * (end - job.s), ((end, (job.g,)),)

    def rows(self, slot: int, kind: int, held: Held) -> list[Data]:
        """What a solution says of a choice."""
        return [{"from": slot, "to": held[0][0], "gpus": self.jobs[kind].g}]


class WindowGame:
    """Jobs that run once, in one window."""

    commits, scale = False, FINEST

    def __init__(self, cluster: Any, jobs: Sequence[Any]) -> None:
        self.cluster, self.jobs = cluster, jobs
        self.optional = not cluster.must_complete
        self.room = tuple(amount for sizes in cluster.servers.values() for amount in sizes)
        self.ways = cache(self._ways)
        self.costs = cache(self._cost)

    def options(self, slot: int, kind: int, held: Held) -> Iterator[tuple[int, Held]]:
        """The job begins now, in a mode, on what is free."""
        used = [sum(amounts) for amounts in zip(*(part for _, part in held), strict=True)]
        free = [c - u for c, u in zip(self.room, used or [0] * len(self.room), strict=True)]
        size, seen = len(self.room) // len(self.cluster.servers), set[Any]()
        before = [tuple(use[at : at + size] for _, use in held)
                  for at in range(0, len(self.room), size)]  # fmt: skip
        for length, use in self.ways(kind):
            end = slot + length - 1
            if end <= (self.cluster.last or end) and all(map(le, use, free)):
                parts = ((self.room[at : at + size], held, use[at : at + size]) for at, held in
                         zip(range(0, len(self.room), size), before, strict=True))  # fmt: skip
                alike = end, tuple(sorted(parts))
                if alike not in seen:  # servers of one size that hold the same are one
                    seen.add(alike)
                    yield self.costs(kind, end), ((end, use),)

    def rows(self, slot: int, kind: int, held: Held) -> list[Data]:
        """What a solution says of a choice."""
        ((end, use),), servers = held, list(self.cluster.servers)
        w, p, crew, host, units = self.ways(kind)[end - slot + 1, use]
        workers = {h: n for h, n in zip(servers, crew, strict=True) if n}
        row = {"from": slot, "to": end, "worker_type": w, "workers": workers}
        return [row if p is None else {**row, "ps": {servers[host]: units}, "ps_type": p}]

    def _cost(self, kind: int, end: int) -> int:
        """What an end pays: a cost rounded down, a revenue up."""
        reading.spend(4000)
        return int(self.jobs[kind].cost(end).low * FINEST // 1) * self.cluster.sign

    def _ways(self, kind: int) -> dict[tuple[int, tuple[Any, ...]], Any]:
        """By duration and use: types, workers by server, the PSs' host and how many."""
        modes = list(self.cluster.modes(self.jobs[kind]))
        return {(mode[0], use): how for mode in modes for use, how in self._places(mode)}

    def _places(self, mode: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
        _, w, p, q, n, _ = mode
        (demand, _), (size, _) = self.cluster.workers[w], self.cluster.ps[p]
        servers = list(self.cluster.servers.values())
        pairs = [[c // d for c, d in zip(capacity, demand, strict=True) if d]
                 for capacity in servers]  # fmt: skip
        rooms = [range(int(min([n, *most])) + 1) for most in pairs]
        for held in product(*rooms):
            reading.spend(20)
            if sum(held) != n:
                continue
            for host, mine in enumerate(held):
                if q != (mine == n):
                    continue
                units = self.cluster.needed(w, p, n - mine)
                use = tuple(y * e + units * s * (h == host) for h, y in enumerate(held)
                            for e, s in zip(demand, size, strict=True))  # fmt: skip
                if all(map(le, use, self.room)):
                    yield use, (w, p, held, host, units)


class OasisGame:
    """Jobs that are decided when they arrive, on one server for workers and one for PSs."""

    commits = optional = True
    scale = FINEST

    def __init__(self, problem: Any, jobs: Sequence[Any]) -> None:
        self.jobs, self.horizon = jobs, problem.horizon
        resources = problem.instance["resources"]
        sides = (next(iter(problem.servers[side].items())) for side in ("worker", "ps"))
        self.names, rooms = zip(*sides, strict=True)
        self.room = tuple(room.get(r, 0) for room in rooms for r in resources)
        self.needs = [
            [tuple(n * job.demand["worker"].get(r, 0) for r in resources)
             + tuple(job.needed(n) * job.demand["ps"].get(r, 0) for r in resources)
             for n in range(min(job.most, job.work) + 1) if job.needed(n) <= n] for job in jobs
        ]  # fmt: skip

    def rows(self, slot: int, kind: int, held: Held) -> list[Data]:
        """What a solution says of a choice."""
        counts = ((t, self.needs[kind].index(use)) for t, use in held)
        (worker, ps), needed = self.names, self.jobs[kind].needed
        return [{"from": t, "to": t, "workers": {worker: n}, "ps": {ps: needed(n)}}
                for t, n in counts]  # fmt: skip

    def options(self, slot: int, kind: int, held: Held) -> Iterator[tuple[int, Held]]:
        """The job stays out, or has workers in slots, exactly as many as its work."""
        yield 0, ()
        job, needs, used = self.jobs[kind], self.needs[kind], dict(held)
        most, last = [], self.horizon
        for t in range(slot, last + 1):
            free = [c - u for c, u in zip(self.room, used.get(t, (0,) * len(self.room)),
                                          strict=True)]  # fmt: skip
            fits = [all(map(le, need, free)) for need in needs]
            most.append(fits.index(False) - 1 if False in fits else len(needs) - 1)

        def spread(at: int, left: int) -> Iterator[Held]:
            """Workers from a slot on; the last slot has one at least."""
            if not left:
                yield ()
            elif sum(most[at:]) >= left:
                for n in range(min(most[at], left) + 1):
                    mine: Held = ((slot + at, needs[n]),) if n else ()
                    reading.spend(50)
                    for rest in spread(at + 1, left - n):
                        yield mine + rest

        for rows in spread(0, job.work):
            yield ceiling(job.value(rows[-1][0]).high * FINEST), rows


GAMES: dict[str, Any] = {"pool": GangGame, "windows": WindowGame, "elastic": OasisGame}

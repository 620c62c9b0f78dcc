"""Exact optimum of tiny gang instances, slot by slot over every decision that is possible.

Shares nothing with the package: it reads an instance file's JSON data. A state says what is left of
every job and, for one in one piece that runs, where it stands; in each slot every combination of
GPUs, on every combination of servers, is tried.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

Place = tuple[int, ...]


def optimum(file: dict[str, Any], kind: str, goal: str = "completion") -> Fraction:
    """Least cost of all schedules of a kind: weighted slots, slots, or weight of late jobs."""
    jobs = file["jobs"]
    seconds = exact(file.get("slot_seconds", 1))
    release = [slots(job["submit"], seconds) for job in jobs]
    length = [slots(job["duration"], seconds) for job in jobs]
    weights = [exact(job.get("weight", 1)) for job in jobs]
    below = math.lcm(*(one.denominator for one in weights))
    weight = [int(one * below) for one in weights]
    due = [
        None if job.get("deadline") is None else exact(job["deadline"]) / seconds for job in jobs
    ]
    work = (
        length if kind != "elastic" else [p * j["gpus"] for p, j in zip(length, jobs, strict=True)]
    )
    servers = [server["gpus"] for server in file.get("servers") or [{"gpus": file["gpus"]}]]
    rooms = tuple(servers) if file.get("placement") == "consolidated" else (sum(servers),)
    options = [places(job, kind, rooms, sum(servers)) for job in jobs]

    start = tuple((left, None) for left in work)
    states: dict[Any, int] = {start: 0}
    best: int | float = math.inf
    last = max(release) + sum(length)
    for t in range(1, last + 1):
        after: dict[Any, int] = {}
        for state, cost in states.items():
            for held in decisions(state, t, release, options, rooms, kind):
                new, more = [], 0
                for j, ((left, where), place) in enumerate(zip(state, held, strict=True)):
                    done = 0 if place is None else sum(place) if kind == "elastic" else 1
                    now = max(0, left - done)
                    if left and release[j] < t and goal == "completion":
                        more += weight[j]
                    if (
                        left
                        and not now
                        and goal == "deadlines"
                        and due[j] is not None
                        and t > due[j]
                    ):
                        more += weight[j]
                    goes_on = now > 0 and kind == "non-preemptive" and (place or where)
                    new.append((now, (place or where) if goes_on else None))
                key, total = tuple(new), cost + more
                if all(left == 0 for left, _ in new):
                    best = min(best, t if goal == "makespan" else total)
                elif total < after.get(key, math.inf):
                    after[key] = total
        states = after
    assert best < math.inf
    unit = 1 if goal == "makespan" else below
    return Fraction(int(best), unit) * (1 if goal == "deadlines" else seconds)


def decisions(
    state: Any, t: int, release: list[int], options: list[list[Place]], rooms: Place, kind: str
) -> Any:
    """All ways to hold GPUs in a slot: per job its GPUs by server, or None."""

    def extend(j: int, free: Place, chosen: list[Place | None]) -> Any:
        if j == len(state):
            yield list(chosen)
            return
        left, where = state[j]
        if left == 0 or release[j] >= t:
            tries: list[Place | None] = [None]
        elif kind == "non-preemptive" and where is not None:
            tries = [where]  # what has begun goes on where it stands
        else:
            tries = [None, *options[j]]
        for place in tries:
            if place is None:
                yield from extend(j + 1, free, [*chosen, None])
            elif all(n <= room for n, room in zip(place, free, strict=True)):
                rest = tuple(room - n for n, room in zip(place, free, strict=True))
                yield from extend(j + 1, rest, [*chosen, place])

    yield from extend(0, rooms, [])


def places(job: dict[str, Any], kind: str, rooms: Place, total: int) -> list[Place]:
    """GPUs by server that a job may hold in a slot."""
    widths = {job["gpus"]}
    if kind == "elastic":
        widths = set(range(1, min(job.get("most_gpus") or total, total) + 1))
    found = []
    for place in itertools.product(*(range(room + 1) for room in rooms)):
        if sum(place) not in widths:
            continue
        used = [(n, room) for n, room in zip(place, rooms, strict=True) if n]
        if sum(place) <= max(rooms):
            allowed = len(used) == 1
        else:
            allowed = sum(n < room for n, room in used) <= 1
        if allowed:
            found.append(place)
    return found


def exact(number: Any) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def slots(time: Any, seconds: Fraction) -> int:
    count = exact(time) / seconds
    assert count.denominator == 1
    return int(count)


def least_alone(file: dict[str, Any], kind: str) -> Fraction:
    """Cost of every job as if it were alone: below the optimum iff GPUs are short."""
    seconds = exact(file.get("slot_seconds", 1))
    total = file.get("gpus") or sum(server["gpus"] for server in file["servers"])
    cost = Fraction(0)
    for job in file["jobs"]:
        length = slots(job["duration"], seconds)
        if kind == "elastic":
            most = min(job.get("most_gpus") or total, total)
            length = -(-length * job["gpus"] // most)
        cost += exact(job.get("weight", 1)) * length
    return cost * seconds

"""Every online policy on a tiny tree of futures, by decision trees in plain Python.

A policy's values are a vector, one a scenario. In each slot the scenarios whose histories are equal
share one decision; what each of them may still reach is put together from the next slots. Vectors
that others beat everywhere are left out. Shares nothing with the package: a family says what jobs
may do in a slot, by names, where one name is one record.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

History = Sequence[tuple[int, str]]
"""Slots in which jobs are told, and the jobs, in order."""
State = tuple[tuple[str, Any], ...]
"""Of each known job what has been decided; None at first."""
Step = Callable[[dict[str, Any], int], Iterable[tuple[dict[str, Any], float]]]
"""``step(state, slot)``: every decision of a slot, as the next state and what is earned or paid."""


def values(histories: Sequence[History], step: Step, last: int, up: bool) -> list[Any]:
    """Value vectors of all policies that no other one beats."""

    @cache
    def reached(members: tuple[int, ...], state: State, t: int) -> list[tuple[float, ...]]:
        if t > last:
            return [(0.0,) * len(members)]
        groups: dict[tuple[str, ...], list[int]] = {}
        for s in members:
            groups.setdefault(tuple(job for at, job in histories[s] if at <= t), []).append(s)
        parts = []
        for known, group in groups.items():
            before, vectors = dict(state), set()
            for after, worth in step({job: before.get(job) for job in known}, t):
                rests = reached(tuple(group), tuple(sorted(after.items(), key=repr)), t + 1)
                vectors |= {tuple(round(worth + rest, 9) for rest in each) for each in rests}
            parts.append(unbeaten(vectors, up))
        order = [s for group in groups.values() for s in group]
        place = [order.index(s) for s in members]
        joined = (list(itertools.chain(*each)) for each in itertools.product(*parts))
        return [tuple(each[at] for at in place) for each in joined]

    return unbeaten(set(reached(tuple(range(len(histories))), (), 1)), up)


def unbeaten(vectors: set[Any], up: bool) -> list[Any]:
    """Vectors that no other one equals or beats in all places."""
    kept: list[Any] = []
    for vector in sorted(vectors, reverse=up):
        if not any(
            all(b >= a if up else b <= a for a, b in zip(vector, other, strict=True))
            for other in kept
        ):
            kept.append(vector)
    return kept


def windows(
    ways: dict[str, list[tuple[int, tuple[float, ...]]]], rooms: tuple[float, ...],
    cost: Callable[[str, int], float], last: int, policies: str, optional: bool,
) -> Step:  # fmt: skip
    """Jobs that run once, in one window: lengths and uses of each, and its worth by last slot."""

    def fits(runs: Iterable[Any], slots: Iterable[int]) -> bool:
        held = [run for run in runs if run]
        return all(
            sum(use[r] for first, end, use in held if first <= t <= end) <= room + 1e-9
            for t in slots for r, room in enumerate(rooms)
        )  # fmt: skip

    def step(state: dict[str, Any], t: int) -> Any:
        waiting = [job for job, run in state.items() if run is None]
        begins = range(t, last + 1) if policies == "commit" else (t,)
        idle = [None] if policies == "run" else [()] if optional else []
        choices = [
            [*idle, *((begin, begin + length - 1, use) for begin in begins
                      for length, use in ways[job] if begin + length - 1 <= last)]
            for job in waiting
        ]  # fmt: skip
        for chosen in itertools.product(*choices):
            new = dict(zip(waiting, chosen, strict=True))
            after = state | new
            if fits(after.values(), begins):
                worth = sum(cost(job, run[1]) for job, run in new.items() if run)
                if t == last and not optional and not all(after.values()):
                    continue
                yield after, worth

    return step


def elastic(
    work: dict[str, int], most: dict[str, int], room: int,
    utility: Callable[[str, int], float], last: int, policies: str,
) -> Step:  # fmt: skip
    """Jobs of oasis on one server: workers by slot, of any number; a policy may give one up."""

    def plans(job: str, t: int) -> Any:
        yield ()
        for counts in itertools.product(range(most[job] + 1), repeat=last - t + 1):
            if counts[-1] and sum(counts[:-1]) < work[job] <= sum(counts):
                yield (0,) * (t - 1) + counts
        for end in range(t, last):
            for counts in itertools.product(range(most[job] + 1), repeat=end - t + 1):
                if counts[-1] and sum(counts[:-1]) < work[job] <= sum(counts):
                    yield (0,) * (t - 1) + counts + (0,) * (last - end)

    def commit(state: dict[str, Any], t: int) -> Any:
        new = [job for job, plan in state.items() if plan is None]
        for chosen in itertools.product(*(list(plans(job, t)) for job in new)):
            after = state | dict(zip(new, chosen, strict=True))
            if all(sum(plan[s] for plan in after.values() if plan) <= room for s in range(last)):
                ends = ((job, max(s for s, n in enumerate(plan, 1) if n))
                        for job, plan in zip(new, chosen, strict=True) if plan)  # fmt: skip
                yield after, sum(utility(job, end) for job, end in ends)

    def run(state: dict[str, Any], t: int) -> Any:
        left = {job: work[job] if n is None else n for job, n in state.items()}
        for counts in itertools.product(*(range(min(most[j], n) + 1) for j, n in left.items())):
            if sum(counts) <= room:
                after = {job: n - c for (job, n), c in zip(left.items(), counts, strict=True)}
                done = [job for job, n in after.items() if not n and left[job]]
                yield after, sum(utility(job, t) for job in done)

    return commit if policies == "commit" else run


def preemptive(
    edge: dict[str, tuple[int, int]], cloud: dict[str, tuple[int, int]], arrival: dict[str, int],
    last: int, policies: str,
) -> Step:  # fmt: skip
    """Jobs of one chunk of edgecloud, one worker at the edge: uploads and slots, there and here.

    Where a chunk goes is decided when its job arrives; at the edge it may pause.
    """

    def slots_of(job: str) -> Any:
        upload, length = edge[job]
        first = arrival[job] + upload
        return itertools.combinations(range(first, last + 1), length)

    def cost(job: str, end: int) -> float:
        return end - arrival[job] + 1

    def in_cloud(job: str) -> float:
        return cost(job, arrival[job] + sum(cloud[job]) - 1)

    def commit(state: dict[str, Any], t: int) -> Any:
        new = [job for job, slots in state.items() if slots is None]
        choices = [[("cloud",), *slots_of(job)] for job in new]
        for chosen in itertools.product(*choices):
            after = state | dict(zip(new, chosen, strict=True))
            used = [s for slots in after.values() for s in slots if s != "cloud"]
            if len(used) == len(set(used)):
                yield (
                    after,
                    sum(
                        in_cloud(job) if slots == ("cloud",) else cost(job, max(slots))
                        for job, slots in zip(new, chosen, strict=True)
                    ),
                )

    def run(state: dict[str, Any], t: int) -> Any:
        new = [job for job, left in state.items() if left is None]
        for homes in itertools.product((True, False), repeat=len(new)):
            left = state | {
                job: 0 if away else edge[job][1] for job, away in zip(new, homes, strict=True)
            }
            paid = sum(in_cloud(job) for job, away in zip(new, homes, strict=True) if away)
            ready = [job for job, n in left.items() if n and arrival[job] + edge[job][0] <= t]
            for job in (None, *ready):
                after = left if job is None else left | {job: left[job] - 1}
                if t == last and any(after.values()):
                    continue
                done = job is not None and not after[job]
                yield after, paid + (cost(job, t) if done else 0)

    return commit if policies == "commit" else run


def renting(slots: Any, jobs: dict[str, Any], policies: str) -> Step:
    """Jobs of mlbroker: in each slot of its life any choice of `mlbroker.Slots`, launches paid."""
    choices = {(name, t): slots.choices(job, t) for name, job in jobs.items()
               for t in range(job["arrival"], job["departure"] + 1)}  # fmt: skip

    def step(state: dict[str, Any], t: int) -> Any:
        live = [name for name in state if jobs[name]["departure"] >= t]
        options = []
        for name in live:
            before, planned = state[name] or (frozenset(), None)
            here = range(len(choices[name, t]))
            later = range(t + 1, jobs[name]["departure"] + 1)
            if policies == "run":
                plans: Any = [(c, ()) for c in here]
            elif planned is None:
                rest = itertools.product(*(range(len(choices[name, s])) for s in later))
                plans = [(c, tuple(r)) for r in rest for c in here]
            else:
                plans = [(planned[0], planned[1:])]
            options.append([(name, before, *plan) for plan in plans])
        for combination in itertools.product(*options):
            after, worth, units = dict(state), 0.0, 0.0
            for name, before, choice, rest in combination:
                alone, rented, places = choices[name, t][choice]
                fresh = slots.weights["deployment"] * len(places - before)
                worth += alone + fresh * jobs[name]["deployment_usd"]
                units = units + rented
                after[name] = places, rest if policies == "commit" else None
            yield after, worth + (slots.bill(units) if combination else 0.0)

    return step

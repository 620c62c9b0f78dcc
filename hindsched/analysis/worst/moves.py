"""Structured changes of a candidate: what people do by hand when they look for a bad instance.

Ties matter, so that many moves make numbers equal: arrivals that coincide with each other or with
the end of a job that begins at once, sizes that are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hindsched.instances.search.fields import Field
from hindsched.instances.search.space import JOBS, SearchSpace, copied
from hindsched.json_types import Draft

Random = np.random.Generator
Move = Callable[[SearchSpace, Draft, Draft, Random], None]
"""``move(space, data, other, random)`` changes `data`; `other` is another member to copy from."""
FACTORS = (0.5, 2.0, 1 / 3, 3.0, 0.1, 10.0, 1.5)
MOST_MOVES = 3


def neighbour(space: SearchSpace, data: Draft, other: Draft, random: Random) -> tuple[Draft, str]:
    """A changed copy of a candidate, within the space, and the names of the moves that made it."""
    names = []
    made = copied(data)
    for _ in range(1 + int(random.geometric(0.6) - 1) % MOST_MOVES):
        name = str(random.choice(list(MOVES)))
        MOVES[name](space, made, other, random)
        names.append(name)
    return space.normal(made), "+".join(names)


def few_kinds(space: SearchSpace, data: Draft, random: Random) -> Draft:
    """The candidate with copies of one to four of its jobs in place of all; times stay."""
    made = copied(data)
    kinds = copied(made[JOBS][: 1 + int(random.integers(4))])
    for job in made[JOBS]:
        kind = _pick(random, kinds)
        for item in _fields(space):
            if item.role != "time":
                for place, model in zip(item.places(job), item.places(kind), strict=False):
                    item.write(place, item.read(model))
    return space.normal(made)


def _pick(random: Random, items: Any) -> Any:
    return items[int(random.integers(len(items)))]


def _fields(space: SearchSpace, *roles: str) -> list[Field]:
    """Fields of a job that vary, of these roles (or of all)."""
    return [
        item for item in space.job_fields if not item.is_fixed and (not roles or item.role in roles)
    ]


def _places(item: Field, holder: object, random: Random) -> Any:
    """One place of a field, or None."""
    places = list(item.places(holder))
    return _pick(random, places) if places else None


def _number(space: SearchSpace, data: Draft, random: Random) -> tuple[Field, Any] | None:
    """A field of a job that is a number and varies, and one of its places; None without one."""
    chosen = [item for item in _fields(space) if not item.choices]
    if not chosen:
        return None
    item = _pick(random, chosen)
    place = _places(item, _pick(random, data[JOBS]), random)
    return None if place is None else (item, place)


def _step(item: Field, random: Random) -> float:
    """One grain of a field or one, up or down."""
    step: float = _pick(random, (1.0, 1.0 / item.grain)) * _pick(random, (-1, 1))
    return step


def shift_arrival(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Move a job in time, by a little or by much."""
    for item in _fields(space, "time"):
        job = _pick(random, data[JOBS])
        for place in item.places(job):
            far = max(1.0, (item.high - item.low) / 2)
            step = _pick(random, (1.0, 2.0, random.uniform(0, far))) * _pick(random, (-1, 1))
            item.write(place, item.read(place) + step)


def scale(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Multiply a number of one job, or of all."""
    chosen = [item for item in _fields(space, "size", "value", "amount") if not item.choices]
    if not chosen:
        return
    item, factor = _pick(random, chosen), _pick(random, FACTORS)
    jobs = data[JOBS] if random.random() < 0.2 else [_pick(random, data[JOBS])]
    for job in jobs:
        for place in item.places(job):
            item.write(place, item.read(place) * factor)


def nudge(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Change a number of a job by one grain, or by one."""
    found = _number(space, data, random)
    if found is not None:
        item, place = found
        item.write(place, item.read(place) + _step(item, random))


def redraw(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Draw a field of a job anew."""
    chosen = _fields(space)
    if chosen:
        item = _pick(random, chosen)
        for place in item.places(_pick(random, data[JOBS])):
            item.write(place, item.draw(random))


def duplicate_job(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Put a copy of a job behind it, or last."""
    index = int(random.integers(len(data[JOBS])))
    at = index if random.random() < 0.5 else len(data[JOBS])
    data[JOBS].insert(at, copied(data[JOBS][index]))


def drop_job(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Take a job out."""
    if len(data[JOBS]) > space.jobs[0]:
        del data[JOBS][int(random.integers(len(data[JOBS])))]


def reorder(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Put a job elsewhere in the list, whose order breaks ties."""
    job = data[JOBS].pop(int(random.integers(len(data[JOBS]))))
    data[JOBS].insert(int(random.integers(len(data[JOBS]) + 1)), job)


def sort_jobs(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Put all jobs in the order of one of their numbers, rising or falling."""
    chosen = [item for item in _fields(space) if not item.choices]
    if chosen:
        item, falls = _pick(random, chosen), random.random() < 0.5
        data[JOBS].sort(key=lambda job: sum(map(item.read, item.places(job))), reverse=falls)


def copy_gadget(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Copy some neighbouring jobs of this or another member behind the last, later in time."""
    source = _pick(random, (data, other))[JOBS]
    first = int(random.integers(len(source)))
    jobs = copied(source[first : first + 1 + int(random.integers(len(source)))])
    room = space.jobs[1] - len(data[JOBS])
    if room <= 0:  # in place of as many others
        at = int(random.integers(len(data[JOBS])))
        del data[JOBS][at : at + len(jobs)]
    for item in _fields(space, "time"):
        step = _pick(random, (0.0, 1.0, random.uniform(0, item.high - item.low)))
        for place in (place for job in jobs for place in item.places(job)):
            item.write(place, item.read(place) + step)
    data[JOBS].extend(jobs)


def merge_times(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Let a job arrive when another does, or when another's work would be done."""
    times, sizes = _fields(space, "time"), _fields(space, "size")
    if not times or len(data[JOBS]) < 2:
        return
    item = times[0]
    job, model = (data[JOBS][index] for index in random.permutation(len(data[JOBS]))[:2])
    here, there = _places(item, job, random), _places(item, model, random)
    if here is None or there is None:
        return
    size = _places(_pick(random, sizes), model, random) if sizes else None
    late = size[0][size[1]] if size is not None and random.random() < 0.5 else 0
    item.write(here, item.read(there) + late)


def make_equal(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Give a job, all jobs, or all but one the number of another."""
    chosen = _fields(space)
    if not chosen:
        return
    item = _pick(random, chosen)
    place = _places(item, _pick(random, data[JOBS]), random)
    if place is None:
        return
    value = item.read(place)
    jobs, draw = data[JOBS], random.random()
    if draw < 0.6:
        jobs = [_pick(random, jobs)]
    elif draw < 0.8:
        spared = int(random.integers(len(jobs)))
        jobs = [job for index, job in enumerate(jobs) if index != spared]
    for at in (at for job in jobs for at in item.places(job)):
        item.write(at, value)


def make_block_equal(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Give neighbouring jobs, from the first, to the last or between, the number of one of them."""
    chosen = _fields(space)
    if not chosen or len(data[JOBS]) < 2:
        return
    item = _pick(random, chosen)
    first, last = sorted(int(end) for end in random.integers(len(data[JOBS]), size=2))
    kind = random.random()
    first, last = (0 if kind < 0.3 else first), (len(data[JOBS]) if kind > 0.7 else last + 1)
    place = _places(item, _pick(random, data[JOBS][first:last]), random)
    if place is not None:
        value = item.read(place)
        for at in (at for job in data[JOBS][first:last] for at in item.places(job)):
            item.write(at, value)


def change_equals(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Nudge or scale a number in all jobs that share it: a kind of job stays one."""
    found = _number(space, data, random)
    if found is None:
        return
    item, place = found
    old = item.read(place)
    new = old + _step(item, random)
    if random.random() < 0.3:
        new = old * _pick(random, FACTORS)
    for at in (at for job in data[JOBS] for at in item.places(job)):
        if item.read(at) == old:
            item.write(at, new)


def transfer(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Take from one job's number what another's gains: the sum stays."""
    chosen = [item for item in _fields(space) if not item.choices]
    if not chosen or len(data[JOBS]) < 2:
        return
    item = _pick(random, chosen)
    giver, taker = (data[JOBS][index] for index in random.permutation(len(data[JOBS]))[:2])
    here, there = _places(item, giver, random), _places(item, taker, random)
    if here is None or there is None:
        return
    most = min(item.read(here) - item.low, item.high - item.read(there))
    step = min(_pick(random, (1.0, 1.0 / item.grain, random.uniform(0, max(most, 0)))), most)
    item.write(here, item.read(here) - step)
    item.write(there, item.read(there) + step)


def few_levels(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Let a number have few values: the nearest of those that some of the jobs have."""
    chosen = [item for item in _fields(space) if not item.choices]
    if not chosen:
        return
    item = _pick(random, chosen)
    places = [place for job in data[JOBS] for place in item.places(job)]
    if not places:
        return
    kinds = 1 + int(random.integers(4))
    levels = [item.read(_pick(random, places)) for _ in range(kinds)]
    for place in places:
        value = item.read(place)
        item.write(place, min(levels, key=lambda level: (abs(level - value), level)))


def change_cluster(space: SearchSpace, data: Draft, other: Draft, random: Random) -> None:
    """Change a number outside the jobs, or add or drop a server."""
    lists = [key for key, (low, high) in space.lists.items() if low < high]
    if lists and random.random() < 0.3:
        key = _pick(random, lists)
        low, high = space.lists[key]
        step = int(_pick(random, (-1, 1)))
        space.resize(data, key, min(max(len(data[key]) + step, low), high))
        return
    chosen = [item for item in space.cluster_fields if not item.is_fixed]
    if not chosen:
        return
    item = _pick(random, chosen)
    place = _places(item, data, random)
    if place is None:
        return
    if item.choices or random.random() < 0.5:
        item.write(place, item.draw(random))
    else:
        item.write(
            place,
            item.read(place) + _pick(random, (-1, 1)) * _pick(random, (1.0, 1.0 / item.grain)),
        )


MOVES: dict[str, Move] = {
    "shift arrival": shift_arrival,
    "scale": scale,
    "nudge": nudge,
    "redraw": redraw,
    "duplicate job": duplicate_job,
    "drop job": drop_job,
    "reorder": reorder,
    "sort jobs": sort_jobs,
    "copy gadget": copy_gadget,
    "merge times": merge_times,
    "make equal": make_equal,
    "make block equal": make_block_equal,
    "change equals": change_equals,
    "transfer": transfer,
    "few levels": few_levels,
    "change cluster": change_cluster,
}

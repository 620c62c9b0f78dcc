"""The kernel's dearest packings against all packings there are."""

import itertools
import random
from fractions import Fraction

import pytest

from hindsched.kernel import oasis

SERVERS = 3


def rows(capacity, jobs, horizon):
    """Rows of one group of servers; jobs are (most, demand)."""
    found = object.__new__(oasis._Rows)
    found.instance, found.horizon = {"resources": list(capacity)}, horizon
    found.groups = {"worker": {"group": (SERVERS, capacity)}}
    found.jobs = {}
    for number, (most, demand) in enumerate(jobs):
        job = object.__new__(oasis.Job)
        job.name, job.most, job.demand = f"job-{number}", most, {"worker": demand}
        found.jobs[job.name] = job
    return found


def dearest(capacity, jobs, prices):
    """What the dearest packing earns."""
    counts = itertools.product(*(range(most + 1) for most, _ in jobs))
    return max(
        sum(n * price for n, price in zip(own, prices, strict=True))
        for own in counts
        if all(
            sum(n * demand[r] for n, (_, demand) in zip(own, jobs, strict=True)) <= room
            for r, room in capacity.items()
        )
    )


@pytest.mark.parametrize("seed", range(300))
def test_groups_earn_their_dearest_packings(seed):
    draw = random.Random(seed)
    names = [f"r{number}" for number in range(draw.randint(0, 3))]

    def amount():
        part = Fraction(draw.randint(1, 30), draw.choice((1, 2, 7)))
        return draw.choice((0, part, draw.randint(1, 9)))

    capacity = {r: draw.choice((4 * amount(), 10**40)) for r in names}
    jobs = [(draw.randint(0, 4), {r: amount() for r in names}) for _ in range(draw.randint(0, 4))]
    horizon = 5
    series = [
        [0, *(draw.choice((0, 3, draw.randint(1, 9), 10**50)) for _ in range(horizon))]
        for _ in jobs
    ]
    places = {("group", f"job-{number}"): own for number, own in enumerate(series)}
    expected = sum(
        SERVERS * dearest(capacity, jobs, [own[slot] for own in series])
        for slot in range(1, horizon + 1)
    )
    assert rows(capacity, jobs, horizon)._packings("worker", places) == expected

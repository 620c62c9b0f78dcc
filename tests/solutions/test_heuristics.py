"""Schedules that `hindsched.solutions` makes itself: feasible, what they say, and found if any."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.instances.decimals import loosened
from hindsched.models.batchsched.list_schedule import place_mode, wspt_schedule
from hindsched.models.windows.sets import Mode
from hindsched.solutions.base import Commitments
from hindsched.solutions.edgecloud.list_schedule import list_schedule, read_past
from hindsched.solutions.edgecloud.runs import Runs, place_parameter_servers
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from tests.strategies.batchsched import known_b
from tests.strategies.batchsched import tiny_instances as tiny_batchsched
from tests.strategies.edgecloud import instance, job, tiny_instances


@given(tiny_instances(max_chunks=3))
def test_a_list_schedule_is_feasible_and_ends_when_it_says(tiny):
    ends, rows = list_schedule(tiny, read_past(tiny, None))
    runs = Runs.of(rows)
    solution = EdgecloudSolution(tiny, runs, place_parameter_servers(tiny, runs))
    assert solution.violations() == []
    for j, record in enumerate(tiny.jobs):
        assert ends[j] == solution.completion(record.name)


RAN = {"chunk": 1, "server": "a", "worker": 1, "from": 1, "to": 2}
HELD = {"ps": "a", "from": 1, "to": 2}


@pytest.mark.parametrize(
    ("home", "cloud", "ends"),
    [("a", None, [3, 6]), ("cloud", 1, [3, 6]), ("cloud", None, [3, 5])],
)
def test_a_list_schedule_goes_on_around_what_has_begun(home, cloud, ends):
    """One slot of j1's three is left in slot 3; where its worker is the only one, j2 waits."""
    servers = [{"name": "a", "workers": ["t1"], "ps": ["p", "p"]}]
    uploads = {"a": 0, "cloud": 0} if home == "cloud" else {"a": 0, "cloud": 50}
    far = {**uploads, "a": 50} if home == "cloud" else uploads
    more = {} if cloud is None else {"workers": {"t1": cloud}}
    tiny = instance(servers, [job(n, 1, 1, 3, 3, far) for n in ("j1", "j2")], more)
    ran = {key: RAN[key] for key in RAN if home == "a" or key != "worker"} | {"server": home}
    held = HELD | {"ps": home}
    past = read_past(tiny, Commitments(now=3, assignments={"j1": (ran, held)}))
    assert list_schedule(tiny, past)[0] == dict(enumerate(ends))


@given(st.data())
def test_parameter_servers_are_found_wherever_there_are_enough(data):
    """In each slot: in the cloud for jobs that are wholly there, anywhere for the others."""
    counts = [data.draw(st.integers(least, 2)) for least in (1, 0)]
    in_cloud = data.draw(st.sampled_from([None, 0, 1, 2]))
    servers = [
        {"name": f"s{s}", "workers": ["t1"] * 4, "ps": ["p"] * n} for s, n in enumerate(counts)
    ]
    jobs = [job(f"j{j}", 1, 2, 2, 1, {"s0": 0, "s1": 0, "cloud": 0}) for j in range(4)]
    tiny = instance(servers, jobs, {} if in_cloud is None else {"ps": {"p": in_cloud}})
    cloud, rows = len(tiny.worker_list), []
    for j, chunk in product(range(4), (1, 2)):
        first = data.draw(st.integers(1, 5))
        home = data.draw(st.sampled_from([j, cloud]))
        rows.append((j, chunk, home, first, first + data.draw(st.integers(0, 3))))
    edge = {j for j, _, home, *_ in rows if home != cloud}
    holds = place_parameter_servers(tiny, Runs.of(rows))
    for slot in range(1, 10):
        running = {j for j, _, _, first, last in rows if first <= slot <= last}
        table = zip(holds.job, holds.place, holds.first, holds.last, strict=True)
        held = [(j, place) for j, place, first, last in table if first <= slot <= last]
        most = [*counts, 9 if in_cloud is None else in_cloud]
        assert len(dict(held)) == len(held)
        assert set(dict(held)) <= running
        assert all([p for _, p in held].count(s) <= n for s, n in enumerate(most))
        together = running - edge
        assert all(place == 2 for j, place in held if j in together)
        if len(together) <= most[2] and len(running) <= sum(most):
            assert set(dict(held)) == running


@given(tiny_batchsched())
def test_a_plan_is_feasible(tiny):
    assert wspt_schedule(tiny, Commitments()).violations() == []


@pytest.mark.parametrize("architecture", [PARAMETER_SERVER, RING_ALLREDUCE])
def test_a_mode_is_placed_beside_its_host(architecture):
    """Two workers at one server, none left for the other; three need both servers."""
    tiny = known_b(architecture)
    free = loosened(tiny.server_capacity, tiny.server_capacity)
    row = place_mode(tiny, free, Mode(0, 0, 1, 2, 3), 4)
    assert row is not None
    assert (row.first, row.last, sorted(row.workers), row.num_workers) == (4, 6, [0, 2], 2)
    assert (row.ps > 0).tolist() == ((row.workers > 0).tolist() if tiny.has_ps else [False] * 2)
    assert place_mode(tiny, np.zeros_like(free), Mode(0, 0, 1, 2, 3), 4) is None

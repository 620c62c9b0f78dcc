"""Schedules that `hindsched.solutions` makes itself: feasible, what they say, and found if any."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.instances.decimals import exactly, loosened
from hindsched.models.batchsched.plan import place_mode, plan_rest
from hindsched.solutions.commitments import Commitments
from hindsched.solutions.edgecloud.list_schedule import GreedySchedule
from hindsched.solutions.edgecloud.past import read_past
from hindsched.solutions.edgecloud.ps import place_parameter_servers
from hindsched.solutions.edgecloud.runs import ChunkRun, Runs
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from tests.strategies.batchsched import instance as batchsched_instance
from tests.strategies.batchsched import known_b
from tests.strategies.batchsched import tiny_instances as tiny_batchsched
from tests.strategies.edgecloud import instance, job, tiny_instances


@given(tiny_instances(storage=True, max_chunks=3), st.randoms(use_true_random=False))
def test_a_list_schedule_is_feasible_and_ends_when_it_says(tiny, draws):
    schedule = GreedySchedule(tiny, read_past(tiny, None))
    if schedule.completion is None:
        return
    runs = Runs.of(schedule.rows)
    solution = EdgecloudSolution(tiny, runs, place_parameter_servers(tiny, runs))
    assert solution.violations() == []
    for j, one in enumerate(tiny.jobs):
        assert schedule.completion[j] == solution.completion(one.name)


def test_a_list_schedule_begins_at_once_and_breaks_ties_for_the_cloud():
    servers = [{"name": "a", "workers": ["t1"], "ps": ["p"]}]
    quick = instance(servers, [job("j", 1, 1, 1, 1, {"a": 0, "cloud": 9})])
    schedule = GreedySchedule(quick, read_past(quick, None))
    assert schedule.completion == {0: 1}
    assert [tuple(row) for row in schedule.rows] == [(0, 1, 0, 1, 1)]
    tie = instance(servers, [job("j", 1, 1, 2, 2, {"a": 1, "cloud": 1})])
    [row] = GreedySchedule(tie, read_past(tie, None)).rows
    assert row.place == len(tie.worker_list)


def test_a_list_schedule_waits_for_workers_of_a_finite_cloud():
    """Two chunks of two slots on one cloud worker: 2-3 and 4-5; the next job's follow at once."""
    servers = [{"name": "a", "workers": ["t2"], "ps": ["p"]}]
    upload = {"a": 0, "cloud": 1}
    busy = instance(
        servers,
        [job("j", 1, 2, 2, 2, upload), job("k", 2, 1, 3, 3, upload)],
        cloud={"workers": {"t1": 1}},
    )
    schedule = GreedySchedule(busy, read_past(busy, None))
    assert schedule.completion == {0: 5, 1: 8}
    rows = sorted((row.job, row.first, row.last) for row in schedule.rows)
    assert rows == [(0, 2, 3), (0, 4, 5), (1, 6, 8)]


def listed_by_hand(tiny, past):
    """The list schedule in plain loops: job by job, each chunk where it ends first."""
    workers, cloud = tiny.worker_list, len(tiny.worker_list)
    free = {w: max([past.now, *(t + 1 for t in past.busy.get(w, ()))]) for w in range(cloud)}
    clouds, ends, stored = {}, {}, []
    for kind, count in (tiny.cloud.workers or {}).items():
        taken = [last for j, _, last in past.cloud_busy if tiny.jobs[j].worker_type == kind]
        clouds[kind] = [max([past.now, *(last + 1 for last in taken)])] * count
    for j, chunk in {(r.job, r.chunk) for r in past.rows if r.job not in past.open_jobs}:
        own = [r for r in past.rows if r.job == j]
        place = next(r.place for r in own if r.chunk == chunk)
        if place < cloud:
            stored.append((workers[place][0], max(r.last for r in own), j))
    for (j, _), (place, done) in past.started.items():
        left = max(0, int(tiny.edge_slots[j]) - done)
        if place < cloud:
            free[place] += left
            end = free[place] - 1 if left else past.now - 1
        else:
            end = past.now + left - 1
            if (kind := tiny.jobs[j].worker_type) in clouds:
                first = clouds[kind].index(min(clouds[kind]))
                clouds[kind][first] = max(clouds[kind][first], past.now + left)
        ends[j] = max(ends.get(j, 0), end)
    found = {}
    for j in sorted(past.open_jobs, key=lambda j: (tiny.arrivals[j], j)):
        one, edge = tiny.jobs[j], int(tiny.edge_slots[j])
        held = Counter()
        for s, last, i in stored:
            held[s] += exactly(float(tiny.chunk_gb[i])) * (last >= tiny.arrivals[j])
        for (i, _), (place, _) in past.started.items():
            if place < cloud:
                held[workers[place][0]] += exactly(float(tiny.chunk_gb[i]))
        chunks = [c for c in range(1, one.chunks + 1) if (j, c) not in past.started]
        at, planned = dict(free), []
        for chunk in chunks:
            open_ = [
                (max(at[w], int(tiny.arrivals[j] + tiny.upload[j, s]), past.now) + edge - 1, w)
                for s, group in tiny.places(one) for w in group
                if held[s] + exactly(float(tiny.chunk_gb[j])) <= tiny.storage_gb[s]
            ]  # fmt: skip
            if not open_:
                break
            end, w = min(open_)
            at[w] = end + 1
            held[workers[w][0]] += exactly(float(tiny.chunk_gb[j]))
            planned.append(ChunkRun(j, chunk, w, end - edge + 1, end))
        beside = None
        if tiny.cloud_workers(one.worker_type) != 0:
            ready = max(past.now, int(tiny.arrivals[j] + tiny.cloud_upload[j]))
            alone = j not in past.on_edge and tiny.cloud_ps(one.ps_type) is None
            slots = int((tiny.cloud_slots if alone else tiny.edge_slots)[j])
            lanes, beside = list(clouds.get(one.worker_type, [1] * len(chunks))), []
            for chunk in chunks:
                lane = lanes.index(min(lanes))
                first = max(ready, lanes[lane])
                lanes[lane] = first + slots
                beside.append(ChunkRun(j, chunk, cloud, first, first + slots - 1))
        before = ends.get(j, 0)
        at_edge = max([before, *(r.last for r in planned)])
        if beside is not None and (
            len(planned) < len(chunks) or max([0, *(r.last for r in beside)]) <= at_edge
        ):
            planned = beside
            if one.worker_type in clouds:
                clouds[one.worker_type] = lanes
        elif len(planned) < len(chunks):
            return None, None
        else:
            free = at
            last = max([before, *(r.last for r in planned)])
            stored += [(workers[r.place][0], last, j) for r in planned]
        ends[j] = max([before, *(r.last for r in planned)])
        found[j] = ends[j], planned
    return {j: max(end, 1) for j, (end, _) in found.items()}, [
        row for _, rows in found.values() for row in rows
    ]


@given(tiny_instances(storage=True, finite_ps=True, max_chunks=3), st.integers(1, 9), st.data())
def test_a_list_schedule_is_what_plain_loops_make_of_any_past(tiny, now, data):
    """The past is the first part of an earlier list schedule; some jobs are planned for good."""
    earlier = GreedySchedule(tiny, read_past(tiny, None))
    if earlier.completion is None:
        return
    runs = Runs.of(earlier.rows)
    rows = EdgecloudSolution(tiny, runs, place_parameter_servers(tiny, runs)).assignments()
    locked = frozenset(data.draw(st.sets(st.sampled_from([one.name for one in tiny.jobs]))))
    history = {
        name: tuple({**row, "to": min(row["to"], now - 1)} for row in own if row["from"] < now)
        for name, own in rows.items()
    }
    given_ = {name: tuple(rows[name]) if name in locked else history[name] for name in rows}
    past = read_past(tiny, Commitments(now=now, assignments=given_, locked=locked))
    schedule = GreedySchedule(tiny, past)
    completion, expected = listed_by_hand(tiny, past)
    assert schedule.completion == completion
    if completion is not None:
        assert sorted(schedule.rows) == sorted(expected)


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
    schedule = GreedySchedule(tiny, past)
    assert schedule.completion == dict(enumerate(ends))


def test_a_list_schedule_waits_for_what_is_planned_for_good():
    servers = [{"name": "a", "workers": ["t1"], "ps": ["p"]}]
    uploads = {"a": 50, "cloud": 0}
    tiny = instance(servers, [job(n, 1, 1, 4, 3, uploads) for n in ("j1", "j2")],
                    {"workers": {"t1": 1}})  # fmt: skip
    rows = ({"chunk": 1, "server": "cloud", "from": 1, "to": 4}, {"ps": "a", "from": 1, "to": 4})
    past = read_past(tiny, Commitments(now=3, assignments={"j1": rows}, locked=frozenset({"j1"})))
    [row] = GreedySchedule(tiny, past).rows
    assert (row.job, row.first) == (1, 5)


def test_a_list_schedule_stores_nothing_where_locked_jobs_have_filled_a_server():
    """j1's chunk fills the server until slot 4: j2, there at 4, has no room, and at 5 it has."""
    servers = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p", "p"], "storage_gb": 1}]
    rows = ({"chunk": 1, "server": "a", "worker": 1, "from": 1, "to": 4}, HELD | {"to": 4})
    past = Commitments(now=3, assignments={"j1": rows}, locked=frozenset({"j1"}))
    for arrival, completion in ((4, None), (5, {1: 7})):
        jobs = [
            job(name, begin, 1, length, length, {"a": 0, "cloud": 9}, chunk_gb=1)
            for name, begin, length in (("j1", 1, 4), ("j2", arrival, 3))
        ]
        tiny = instance(servers, jobs, {"workers": {"t1": 0}})
        assert GreedySchedule(tiny, read_past(tiny, past)).completion == completion


def test_only_what_ran_on_an_edge_binds_a_job_to_it():
    servers = [{"name": "a", "workers": ["t1"], "ps": ["p"]}]
    tiny = instance(servers, [job(n, 1, 1, 3, 3, {"a": 0, "cloud": 0}) for n in ("j1", "j2")])
    cloud = ({"chunk": 1, "server": "cloud", "from": 1, "to": 2},)
    past = read_past(tiny, Commitments(now=3, assignments={"j1": (RAN,), "j2": cloud}))
    assert past.on_edge == {0}


def test_runs_are_sorted_by_job_chunk_and_slot_and_joined():
    rows = [(1, 1, 0, 5, 6), (0, 2, 1, 3, 4), (0, 1, 0, 9, 9), (0, 2, 1, 1, 2), (1, 1, 0, 1, 1)]
    runs = Runs.of(rows)
    table = np.column_stack([runs.job, runs.chunk, runs.place, runs.first, runs.last])
    assert table.tolist() == [
        [0, 1, 0, 9, 9], [0, 2, 1, 1, 4], [1, 1, 0, 1, 1], [1, 1, 0, 5, 6],
    ]  # fmt: skip


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
    assert plan_rest(tiny, Commitments()).violations() == []


@pytest.mark.parametrize("architecture", [PARAMETER_SERVER, RING_ALLREDUCE])
def test_a_mode_is_placed_beside_its_host(architecture):
    """Two workers at one server, none left for the other; three need both servers."""
    tiny = known_b(architecture)
    free = loosened(tiny.server_capacity, tiny.server_capacity)
    row = place_mode(tiny, free, (0, 0, 1, 2, 3), 4)
    assert row is not None
    assert (row.first, row.last, sorted(row.workers), row.num_workers) == (4, 6, [0, 2], 2)
    assert (row.ps > 0).tolist() == ((row.workers > 0).tolist() if tiny.has_ps else [False] * 2)
    assert place_mode(tiny, np.zeros_like(free), (0, 0, 1, 2, 3), 4) is None


def test_workers_of_a_mode_go_where_most_of_them_fit():
    """Four ring workers of a GPU each on 1, 3 and 2 free GPUs: three on the second server."""
    ring = {"architecture": RING_ALLREDUCE, "servers": [(1, 9), (3, 9), (2, 9)]}
    one = {"arrival": 1, "weight": 1, "epochs": 1, "chunks": 4, "minibatches": 1,
           "gradient_mb": 1, "minibatch_slots": [1], "reduce_slots": 0}  # fmt: skip
    tiny = batchsched_instance(worker_types=[(1, 1)], ps_types=[], jobs=[one], **ring)
    free = loosened(tiny.server_capacity, tiny.server_capacity.max(axis=0))
    row = place_mode(tiny, free, (0, 0, 0, 4, 1), 1)
    assert row.workers.tolist() == [0, 3, 1]

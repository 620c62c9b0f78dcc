"""srtf, tiresias-l and all-cloud: one schedule worked by hand and one law each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from hindsched.errors import InputError
from hindsched.online.registry import build_algorithm
from hindsched.online.simulator import simulate
from tests.strategies.edgecloud import instance, job, tiny_instances

PAIR = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p", "p"]}]
UP = {"a": 0, "cloud": 50}

AS_DRAWN = {"gangs": "drawn", "cloud": False}
"""Gangs as requested, which do not leave for the cloud."""


def gang_jobs():
    """Two workers: a gang of 2 with 8 slots of work, then gangs of 1 and 2 that are shorter."""
    return [
        job("long", 1, 2, 4, 4, UP, requested_workers=2),
        job("short", 2, 1, 2, 2, UP, requested_workers=1),
        job("pair", 3, 2, 1, 1, UP, requested_workers=2),
    ]


def spans(result, name):
    rows = [row for row in result.solution.assignments()[name] if "chunk" in row]
    return sorted({(row["from"], row["to"]) for row in rows})


def test_srtf_by_hand():
    """long runs in 1; short (2 left) beats long (3 left) in 2; pair (1 left) ties short in 3 and
    waits, because short came first; long resumes last."""
    result = simulate(instance(PAIR, gang_jobs()), "srtf", settings=AS_DRAWN)
    assert spans(result, "short") == [(2, 3)]
    assert spans(result, "pair") == [(4, 4)]
    assert spans(result, "long") == [(1, 1), (5, 7)]
    assert result.objective == 7 + 2 + 2
    assert not result.in_feasible_set


def test_tiresias_l_by_hand():
    """Limit 2 worker-slots: long falls to the second queue after slot 1, short after slot 3."""
    result = simulate(
        instance(PAIR, gang_jobs()), "tiresias-l", settings={"limits": [2 / 3600], **AS_DRAWN}
    )
    assert spans(result, "long") == [(1, 1), (5, 7)]
    assert spans(result, "short") == [(2, 3)]
    assert spans(result, "pair") == [(4, 4)]


def test_all_cloud_by_hand():
    tiny = instance(PAIR, [job("j", 3, 4, 5, 2, {"a": 0, "cloud": 6})])
    result = simulate(tiny, "all-cloud")
    assert spans(result, "j") == [(9, 10)]
    assert result.objective == 8


@given(tiny_instances(clouds=(None,)))
def test_all_cloud_takes_upload_plus_work(tiny):
    """Its law: every job takes exactly its upload to the cloud and p(zeta = 1)."""
    times = simulate(tiny, "all-cloud").solution.job_completion_times
    assert np.array_equal(times, tiny.cloud_upload + tiny.cloud_slots)


@given(tiny_instances(max_jobs=5, max_chunks=3, clouds=(None,)))
def test_gangs_are_all_or_nothing(tiny):
    """In every slot a job of the edge runs on its whole gang or on nothing."""
    for name in ("srtf", "tiresias-l"):
        result = simulate(tiny, name, settings=AS_DRAWN)
        assert result.violations == []
        runs = result.solution.runs
        for j, one in enumerate(tiny.jobs):
            mine = (runs.job == j) & (runs.place < len(tiny.worker_list))
            count = np.zeros(200, dtype=int)
            for first, last in zip(runs.first[mine], runs.last[mine], strict=True):
                count[first : last + 1] += 1
            size = min(one.chunks, len(tiny.workers_by_type.get(one.worker_type, ())))
            assert set(count.tolist()) <= {0, size}


@given(tiny_instances(max_jobs=5, clouds=(None,), same_upload=True))
def test_srtf_serves_the_shortest_first(tiny):
    """On one worker: whenever a job runs, no uploaded job has less left."""
    alone = instance(
        [{"name": "s1", "workers": ["t1"], "ps": ["p"]}],
        [
            {**one.model_dump(exclude_none=True), "worker_type": "t1",
             "upload_slots": {"s1": one.upload_slots["s1"], "cloud": 9}}
            for one in tiny.jobs
        ],
    )  # fmt: skip
    runs = simulate(alone, "srtf", settings=AS_DRAWN).solution.runs
    left = (alone.chunks * alone.edge_slots).astype(int)
    ready = alone.arrivals + alone.upload[:, 0]
    owner = {}
    for j, first, last in zip(runs.job, runs.first, runs.last, strict=True):
        owner |= dict.fromkeys(range(first, last + 1), j)
    for slot in sorted(owner):
        waiting = [left[j] for j in range(len(left)) if ready[j] <= slot and left[j]]
        assert left[owner[slot]] <= min(waiting)
        left[owner[slot]] -= 1


def test_settings_are_checked():
    with pytest.raises(InputError):
        build_algorithm("edgecloud", "tiresias-l", {"limits": [5.0, 2.0]})
    with pytest.raises(InputError, match="promotion"):
        build_algorithm("edgecloud", "tiresias-l", {"promotion": -1.0})
    with pytest.raises(InputError, match="first_horizon"):
        build_algorithm("edgecloud", "batchsche", {"first_horizon": 0})
    closed = instance(PAIR, [job("j", 1, 1, 1, 1, UP)], {"workers": {"t1": 0}})
    with pytest.raises(InputError, match="workers of type t1"):
        simulate(closed, "all-cloud")


def test_batchsche_by_hand():
    """Batches end in slots 2 and 4; the first is planned on slots 3-4, the second on 5-8."""
    jobs = [
        job("early", 1, 1, 2, 2, UP),
        job("late", 3, 4, 2, 2, UP, requested_workers=2),
        job("same", 3, 1, 3, 3, UP),
    ]
    result = simulate(instance(PAIR, jobs), "batchsche")
    assert spans(result, "early") == [(3, 4)]
    assert spans(result, "late") == [(5, 6), (7, 8)]
    # No worker is left in slots 5-8, so that the next sub-round takes it.
    assert spans(result, "same") == [(9, 11)]
    assert result.in_feasible_set


@given(tiny_instances(max_jobs=5, max_chunks=3))
def test_batchsche_never_preempts(tiny):
    """Its law: every chunk runs in one piece, after the batch in which its job was planned."""
    result = simulate(tiny, "batchsche")
    assert result.violations == []
    assert result.solution.preemptions.sum() == 0
    starts = {name: rows[0]["from"] for name, rows in result.solution.assignments().items()}
    for interval in result.report["intervals"]:
        assert interval["first_slot"] > interval["horizon"]
    assert all(starts[one.name] > one.arrival for one in tiny.jobs)


def test_gangs_are_as_wide_as_they_can_be_unless_drawn():
    """Four chunks, three workers, two requested: widths 3, 2 and 2."""
    three = [{"name": "a", "workers": ["t1"] * 3, "ps": ["p"]}]
    tiny = instance(three, [job("j", 1, 4, 3, 2, {"a": 0, "cloud": 60}, requested_workers=2)])
    for gangs, width in (("ideal", 3), ("half", 2), ("drawn", 2)):
        runs = simulate(tiny, "srtf", settings={"gangs": gangs}).solution.runs
        assert len(set(runs.place.tolist())) == width


def test_batchsche_chooses_how_many_workers():
    """Alone and with time to spare it takes all workers at once: elastic, whatever is requested."""
    three = [{"name": "a", "workers": ["t1"] * 3, "ps": ["p"]}]
    tiny = instance(three, [job("j", 1, 3, 3, 2, {"a": 0, "cloud": 60}, requested_workers=1)])
    result = simulate(tiny, "batchsche")
    assert len(set(result.solution.runs.place.tolist())) == 3

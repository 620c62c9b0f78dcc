"""Rows per slot: what is used, what it costs where prices are posted, and which jobs run."""

import numpy as np
import pytest

import hindsched as hs
from hindsched.analysis.spans import Span, job_spans, spans_of
from hindsched.analysis.tasks import slot_rows
from hindsched.instances.gang.instance import GangInstance, gang_data


def rows_of(family, algorithm, **settings):
    run = hs.simulate(hs.generate(family), algorithm, settings=settings)
    return run, slot_rows(run.solution, run.price_path)


def test_posted_prices_are_means_over_the_servers_by_capacity():
    run, rows = rows_of("oasis", "oasis")
    instance = run.instance
    capacity = np.concatenate([instance.worker_capacity, instance.ps_capacity])
    prices = np.concatenate([run.prices["worker_capacity"], run.prices["ps_capacity"]])
    assert {row["slot"] for row in rows} == set(range(1, instance.horizon + 1))
    for row in rows:
        resource = instance.resources.index(row["resource"])
        here = prices[:, resource, row["slot"] - 1]
        mean = np.average(here, weights=capacity[:, resource])
        assert row["price"] == pytest.approx(mean, rel=1e-12)


def test_prices_of_batches_stand_in_the_slots_of_their_rounds():
    theta = {"worker": 5.0, "ps": 7.0}
    run, rows = rows_of("astraea", "astraea", theta_workers=5.0, theta_ps=7.0)
    total = {
        "worker": run.instance.worker_count.sum(),
        "ps": run.instance.ps_count.sum(),
    }
    assert rows
    for row in rows:
        kind = row["resource"]
        assert row["price"] == pytest.approx(theta[kind] ** (row["used"] / total[kind]) - 1)


def test_use_and_running_jobs_are_those_of_the_schedule():
    run, rows = rows_of("batchsched", "fifo")
    assert {row["price"] for row in rows} == {None}
    for row in rows:
        use = [
            other["used"]
            for other in run.solution.usage_rows()
            if (other["slot"], other["resource"]) == (row["slot"], row["resource"])
        ]
        assert row["used"] == pytest.approx(sum(use))
    work = sum(
        span["to"] - span["from"] + 1
        for spans in run.solution.assignments().values()
        for span in spans
    )
    per_slot = {row["slot"]: row["active_jobs"] for row in rows}
    assert sum(per_slot.values()) == work


def test_a_schedule_of_ten_million_slots_has_spans_and_no_rows_by_slot():
    rows = [{"name": "a", "submit": 0, "duration": 10**7, "gpus": 2}]
    rows.append({"name": "b", "submit": 5, "duration": 10, "gpus": 1})
    instance = GangInstance.parse(gang_data("long", rows, gpus=4))
    solution = hs.simulate(instance, "easy").solution
    assert slot_rows(solution) == []
    assert job_spans(solution) == {"a": [Span(1, 10**7, 2.0)], "b": [Span(6, 15, 1.0)]}


def test_spans_join_what_runs_on_with_as_many_workers():
    runs = [(3, 5, 1.0), (1, 2, 1.0), (6, 9, 2.0), (8, 9, 1.0), (12, 12, 1.0), (20, 20, 0.0)]
    whole = dict.fromkeys(range(1, 21), 0.0)
    for first, last, workers in runs:
        for slot in range(first, last + 1):
            whole[slot] += workers
    spans = spans_of(runs)
    laid_out = {slot: s.workers for s in spans for slot in range(s.first, s.last + 1)}
    assert laid_out == {slot: workers for slot, workers in whole.items() if workers}
    assert [(s.first, s.last) for s in spans] == [(1, 5), (6, 7), (8, 9), (12, 12)]

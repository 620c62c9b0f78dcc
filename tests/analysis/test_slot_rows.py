"""Rows per slot: what is used, what it costs where prices are posted, and which jobs run."""

import numpy as np
import pytest

import hindsched as hs
from hindsched.analysis.tasks import slot_rows


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


@pytest.mark.parametrize("family", ["batchsched", "edgecloud"])
def test_a_price_is_posted_where_a_batch_algorithm_places_jobs(family):
    _, rows = rows_of(family, {"edgecloud": "batchsche"}.get(family, family))
    assert any(row["price"] for row in rows)
    assert all(row["price"] is None or row["price"] >= 0 for row in rows)


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

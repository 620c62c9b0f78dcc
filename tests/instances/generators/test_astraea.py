"""Astraea's generator and its instances from traces."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from hindsched.errors import InputError
from hindsched.instances.astraea.trace import NO_NODES, PHILLY_NODES
from hindsched.instances.generators.registry import from_trace, generate, suite
from hindsched.instances.traces.table import build_table, load_capacities, load_trace
from hindsched.online.simulator import simulate

TRACES = Path(os.environ.get("HINDSCHED_TRACES", "absent"))


def trace(tmp_path, rows, trace_format="philly"):
    """A table of (virtual cluster, submission, duration, GPUs)."""
    source = tmp_path / "trace.csv"
    source.write_text("made up\n")
    raw = pd.DataFrame(rows, columns=["part", "submit_seconds", "duration_seconds", "gpus"])
    raw["job"] = [f"row-{i}" for i in range(len(raw))]
    return build_table(trace_format, source, raw)


def test_paper_ranges():
    instance = generate("astraea", "paper", 7)
    assert (len(instance.servers), len(instance.tenants), len(instance.jobs)) == (100, 14, 100)
    assert {int(n) for n in instance.worker_count.ravel()} == {2, 8}
    assert (instance.ps_count == 1).all()
    assert 100 <= instance.worker_bandwidth[0] <= 5120
    assert 5000 <= instance.ps_bandwidth[0] <= 20_000
    assert (instance.worker_quota > 0).all()
    for job in instance.jobs:
        assert 50 <= job.epochs <= 100
        assert 20 <= job.chunks <= 50
        assert 10 <= job.minibatches <= 50
        assert 0.0001 <= job.minibatch_slots <= 0.005  # a tenth of the printed range
        assert 10 <= job.update_slots * 3.6e6 <= 100
        assert 30 <= job.gradient_mb <= 575
        assert -2 <= job.utility.slope <= -0.1
        assert 100 <= job.utility.intercept <= 1000
    printed = generate("astraea", "paper", 7, minibatch_scale=1.0)
    assert printed.jobs[0].minibatch_slots == pytest.approx(10 * instance.jobs[0].minibatch_slots)


def test_settings_change_what_they_name_and_nothing_else():
    one = generate("astraea", "small", 3)
    power = generate("astraea", "small", 3, utility="power")
    assert [job.chunks for job in one.jobs] == [job.chunks for job in power.jobs]
    assert {job.utility.kind for job in power.jobs} == {"power"}
    more = generate("astraea", "small", 3, jobs=9)
    assert more.servers == one.servers
    typed = generate("astraea", "small", 3, worker_types=2, ps_types=3)
    assert typed.worker_types == ("w1", "w2")
    assert typed.ps_types == ("p1", "p2", "p3")
    assert generate("astraea", "small", 3).sha256() == one.sha256()


def test_suite_is_small_and_varied():
    instances = suite("astraea", "small")
    assert 4 <= len(instances) <= 8
    assert len({instance.name for instance in instances}) == len(instances)
    assert any(len(instance.worker_types) == 2 for instance in instances)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"jobs": 0}, "set.jobs"),
        ({"utility": "sigmoid"}, "set.utility"),
        ({"minibatch_scale": 0}, "set.minibatch_scale"),
        ({"arrival_span": 99}, "set.arrival_span"),
        ({"gpus": 3}, "set.gpus"),
        ({"slope": 3}, "set.slope"),
        ({"slope": [-1]}, "set.slope"),
        ({"slope": [-0.1, -2]}, "set.slope"),
        ({"slope": [1, 2]}, "set.slope"),
        ({"intercept": "[nan, 1]"}, "set.intercept"),
        ({"workers_per_server": 3}, "set.workers_per_server"),
        ({"workers_per_server": []}, "set.workers_per_server"),
        ({"workers_per_server": [-1]}, "set.workers_per_server"),
        ({"ps_per_server": 1.5}, "set.ps_per_server"),
        ({"ps_mbps": [5, 1]}, "set.ps_mbps"),
        ({"ps_mbps": "foo"}, "set.ps_mbps"),
        ({"minibatch_scale": "nan"}, "set.minibatch_scale"),
        ({"exponent": [-1, 1]}, "set.exponent"),
        ({"power_scale": [0, 0]}, "set.power_scale"),
        ({"chunks": 5}, "set.chunks"),
        ({"epochs": [1.5, 2]}, "set.epochs"),
    ],
)
def test_bad_settings(settings, where):
    with pytest.raises(InputError) as caught:
        generate("astraea", "small", 0, **settings)
    assert where in str(caught.value)


def test_virtual_clusters_are_tenants_and_unknown_ones_are_counted(tmp_path):
    rows = [
        ("ed69ec", 0, 7200, 2),
        ("795a4c", 10, 3600, 1),
        ("103959", 5000, 1800, 8),
        ("795a4c", 6000, 3600, 1),
        ("ed69ec", 8000, 900, 1),
        ("51b7ef", 9000, 900, 1),
    ]
    table = trace(tmp_path, rows)
    instance = from_trace("astraea", table, jobs=3, elasticity=2)
    assert {tenant.name for tenant in instance.tenants} == set(PHILLY_NODES)
    assert instance.worker_count.sum() == 8 * sum(PHILLY_NODES.values())
    assert instance.provenance["rejected"] == {NO_NODES: 2}
    assert [(j.tenant, j.arrival, j.chunks, j.requested_workers) for j in instance.jobs] == [
        ("ed69ec", 0, 4, 2),
        ("103959", 1, 16, 8),
        ("ed69ec", 2, 2, 1),
    ]
    for job, (duration, gpus) in zip(instance.jobs, [(7200, 2), (1800, 8), (900, 1)], strict=True):
        work = job.total_minibatches * job.minibatch_slots
        assert work == pytest.approx(duration * gpus / 3600)
    given = from_trace("astraea", table, jobs=4, nodes={"795a4c": 3})
    assert given.provenance["rejected"] == {NO_NODES: 0}
    assert given.jobs[1].tenant == "795a4c"


def test_capacity_tables(tmp_path):
    rows = [("vcA", 0, 3600, 1), ("vcB", 100, 3600, 2), ("vcC", 200, 3600, 1)]
    helios = trace(tmp_path, rows, "helios")
    unknown = from_trace("astraea", helios, jobs=3, servers=4)
    assert [tenant.worker_quota for tenant in unknown.tenants] == [8, 16, 8]
    with pytest.raises(InputError, match="at least 3, one a tenant"):
        from_trace("astraea", helios, jobs=3, servers=2)
    with pytest.raises(InputError, match="must not be given with nodes"):
        from_trace("astraea", helios, jobs=3, servers=4, nodes={"vcA": 1})
    daily = tmp_path / "gpus.csv"
    daily.write_text("date,vcA,vcB,vcC,total\n2020-04-01,8,12,0,20\n2020-04-02,8,16,8,32\n")
    first = from_trace("astraea", helios, jobs=2, capacity=str(daily))
    assert dict(zip(first.tenant_index, first.worker_quota[:, 0], strict=True)) == {
        "vcA": 8,
        "vcB": 12,
    }
    assert [server.workers for server in first.servers] == [8, 8, 4]
    second = from_trace("astraea", helios, jobs=3, capacity=str(daily), date="2020-04-02")
    assert second.worker_quota[:, 0].tolist() == [8, 16, 8]
    with pytest.raises(InputError, match="date"):
        from_trace("astraea", helios, jobs=2, capacity=str(daily), date="1999-01-01")
    nodes = tmp_path / "vc.csv"
    nodes.write_text("vc,node num\nvcA,1\nvcB,2\n")
    third = from_trace("astraea", helios, jobs=2, capacity=str(nodes), node_scale=0.5)
    assert third.worker_quota[:, 0].tolist() == [8, 8]


def test_bad_trace_settings(tmp_path):
    table = trace(tmp_path, [("ed69ec", 0, 7200, 2)])
    for settings, where in (
        ({"jobs": 2}, "jobs"),
        ({"jobs": 1, "elasticity": 0}, "set.elasticity"),
        ({"jobs": 1, "node_scale": 0}, "set.node_scale"),
        ({"jobs": 1, "nodes": {"x": 0}}, "set.nodes.x"),
        ({"jobs": 1, "nodes": "foo"}, "set.nodes"),
        ({"jobs": 1, "node_scale": "nan"}, "set.node_scale"),
        ({"jobs": 1, "slot_seconds": "nan"}, "set.slot_seconds"),
        ({"jobs": 1, "start": -1}, "set.start"),
        ({"jobs": 1, "start": "nan"}, "set.start"),
        ({"jobs": 1, "capacity": 3}, "set.capacity"),
        ({"jobs": 1, "date": "2020-01-01"}, "set.date"),
        ({"jobs": 1, "utility": "sigmoid"}, "set.utility"),
    ):
        with pytest.raises(InputError) as caught:
            from_trace("astraea", table, **settings)
        assert where in str(caught.value)


@pytest.mark.skipif(not TRACES.is_dir(), reason="HINDSCHED_TRACES names no folder of real traces")
def test_a_hundred_jobs_of_the_real_philly_trace():
    assert load_capacities(TRACES / "philly/philly_vc.csv", None, 1) == PHILLY_NODES
    table = load_trace(TRACES / "philly/philly.csv.gz", "philly")
    unknown = set(table.parts()) - set(PHILLY_NODES)
    assert {name[:6] for name in unknown} == {"795a4c", "51b7ef", "925e2b", "23dbec"}
    first = float(table.rows.loc[table.rows["part"].isin(unknown), "submit_seconds"].min())
    beside = from_trace("astraea", table, jobs=100, start=first)
    assert beside.provenance["rejected"][NO_NODES] >= 1
    instance = from_trace("astraea", table, jobs=100, start=30 * 86400, node_scale=0.2)
    assert len(instance.jobs) == 100
    result = simulate(instance, "astraea", settings={"guard": True})
    assert result.violations == []
    assert result.objective > 0

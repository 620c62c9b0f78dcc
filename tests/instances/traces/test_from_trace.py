"""What each family makes of the rows of a trace, by hand."""

from pathlib import Path

import pandas as pd
import pytest

import hindsched as hs
from hindsched.cli.app import run
from hindsched.errors import InputError
from hindsched.instances.astraea.generator import NO_NODES, PHILLY_NODES
from hindsched.instances.base import FAMILIES
from hindsched.instances.traces.table import LOADERS, build_table
from hindsched.instances.traces.times import SECOND

WEEK = 7 * 86400


def micro(*seconds):
    return [second * SECOND for second in seconds]


def table_of(trace_format, **columns):
    """Six jobs as that format gives them: two parts, a user, a job of many weeks."""
    raw = {
        "job": [f"app_{number}" for number in range(6)],
        "part": ["p", "q"] * 3 if trace_format != "philly" else ["6214e9", "7f04ca"] * 3,
        "submit": micro(0, 600, 4000, 9000, 9000, 20000),
        "duration": micro(3600, 600, 7200, 20 * WEEK, 1800, 60),
        "gpus": [1, 8, 2, 8, 4, 1],
        "user": ["u1", "", "u2", "u1", "u2", "u1"],
    }
    return build_table(trace_format, Path("trace.csv"), pd.DataFrame({**raw, **columns}))


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "mlbroker"])
@pytest.mark.parametrize("trace_format", LOADERS)
def test_every_format_becomes_an_instance_of_every_family(family, trace_format):
    made = hs.from_trace(family, table_of(trace_format), jobs=6)
    kept = made.provenance["trace_rows"]
    assert list(kept) == [f"app_{number}" for number in range(6)]
    assert [row.get("user") for row in kept.values()] == ["u1", None, "u2", "u1", "u2", "u1"]
    assert kept["app_3"]["duration_seconds"] == 20 * WEEK
    assert hs.read(made.to_dict()) == made
    assert made.provenance["trace_format"] == trace_format
    for jobs in (0, 7):
        with pytest.raises(InputError, match="jobs"):
            hs.from_trace(family, table_of(trace_format), jobs=jobs)


def test_oasis_takes_values_and_work():
    table = build_table("made-up", Path("jobs.csv"), pd.DataFrame({
        "job": ["a", "b", "c", "d"], "part": "p", "submit": micro(100, 160, 400, 9000),
        "duration": micro(600, 1200, 60, 36000), "gpus": [2, 1, 4, 1],
        "value_kind": ["strict", "best-effort", "soft", ""],
        "deadlines_seconds": [(1200,), (), (60, 120, 180, 240), ()],
        "values": [(10.0,), (4.0,), (10.0, 8.0, 5.0, 2.0), ()],
    }))  # fmt: skip
    made = hs.from_trace("oasis", table, jobs=4, slot_seconds=60, horizon=200, servers=2)
    assert made.arrival.tolist() == [1, 2, 6, 149]
    assert made.work.tolist() == [20, 20, 4, 600]  # duration x GPUs in slots
    assert [job.chunks for job in made.jobs] == [4, 2, 8, 2]
    strict, best_effort, soft, drawn = (job.utility for job in made.jobs)
    assert (strict.priority, strict.decay, strict.target) == (10, 6, 20.5)
    assert (best_effort.priority, best_effort.decay) == (8, 0)
    assert soft.value(0) > soft.value(1) > soft.value(3) > 0
    assert 300 <= drawn.target <= 900
    assert made.provenance["too_long_for_the_horizon"] == ["d"]
    few, many = (
        hs.from_trace(
            "oasis", table, jobs=3, load=load, gpus_per_server=1, slot_seconds=60, horizon=40
        )
        for load in (8.0, 0.5)
    )
    assert len(few.worker_servers) < len(many.worker_servers)


def test_tenants_of_astraea_are_virtual_clusters_and_unknown_ones_are_counted():
    parts = ["ed69ec", "795a4c", "103959", "795a4c", "ed69ec", "51b7ef"]
    table = table_of("philly", part=parts)
    made = hs.from_trace("astraea", table, jobs=3, elasticity=2)
    assert {tenant.name for tenant in made.tenants} == set(PHILLY_NODES)
    assert made.worker_count.sum() == 8 * sum(PHILLY_NODES.values())
    assert made.provenance["rejected"] == {NO_NODES: 2}
    assert [(j.tenant, j.arrival, j.chunks, j.requested_workers) for j in made.jobs] == [
        ("ed69ec", 0, 2, 1), ("103959", 1, 4, 2), ("ed69ec", 2, 8, 4),
    ]  # fmt: skip
    work = made.jobs[1].total_minibatches * made.jobs[1].minibatch_slots
    assert work == pytest.approx(7200 * 2 / 3600)


def test_work_of_astraea_is_drawn_and_servers_are_shared_like_the_trace_s_nodes():
    """The paper takes arrivals, clusters and GPUs from Philly, and draws E, D, M and m."""
    table = table_of("philly", part=["ed69ec", "103959"] * 3)
    made = hs.from_trace("astraea", table, jobs=4, servers=44, minibatch_scale=1, horizon=90)
    nodes = {tenant.name: int(tenant.worker_quota) // 8 for tenant in made.tenants}
    assert nodes.keys() == PHILLY_NODES.keys()
    assert sum(nodes.values()) == 44
    assert all(abs(nodes[name] - count / 8) <= 1 for name, count in PHILLY_NODES.items())
    for job in made.jobs:
        assert 50 <= job.epochs <= 100
        assert 20 <= job.chunks <= 50
        assert 0.001 <= job.minibatch_slots <= 0.05
    assert [job.requested_workers for job in made.jobs] == [1, 8, 2, 8]


def test_every_tenant_of_astraea_has_a_node():
    table = table_of("helios", part=["vcA", "vcB", "vcC", "vcA", "vcB", "vcC"])
    with pytest.raises(InputError, match="at least 3, one a tenant"):
        hs.from_trace("astraea", table, jobs=3, servers=2)


@pytest.mark.parametrize(
    ("family", "name", "value"),
    [
        ("oasis", "horizon", 1), ("oasis", "load", 0), ("oasis", "every", 0),
        ("batchsched", "servers", 2), ("batchsched", "architecture", "ring"),
        ("astraea", "elasticity", 0), ("astraea", "load", "nan"),
        ("astraea", "start", -1),
        ("astraea", "utility", "sigmoid"), ("edgecloud", "slot_seconds", 0),
        ("gang", "every", 0), ("gang", "start", "x"), ("gang", "gpus", 0), ("gang", "servers", 65),
    ],
)  # fmt: skip
def test_a_bad_setting_of_a_trace_is_named(family, name, value):
    with pytest.raises(InputError, match=rf"^set.{name}"):
        hs.from_trace(family, table_of("elasticflow"), jobs=6, **{name: value})


def test_times_of_gang_are_rounded_up_to_slots_and_it_says_so():
    due = [(700.5,)] * 6
    table = table_of("chronus", deadlines_seconds=due)
    made = hs.from_trace("gang", table, jobs=6, slot_seconds=1800)
    assert [job.submit for job in made.jobs] == [0, 1800, 5400, 9000, 9000, 21600]
    assert [job.duration for job in made.jobs] == [3600, 1800, 7200, 20 * WEEK, 1800, 1800]
    assert [job.deadline for job in made.jobs][:2] == [700.5, 1300.5]
    counts = {"submissions_rounded": 3, "durations_rounded": 2, "jobs_cut": 0}
    assert counts.items() <= made.provenance.items()
    seven = hs.from_trace("gang", table, jobs=6, servers=7)
    assert [server.gpus for server in seven.servers] == [10, 9, 9, 9, 9, 9, 9]


def test_any_table_is_a_trace_by_naming_its_columns(tmp_path: Path) -> None:
    path, made = tmp_path / "jobs.csv", tmp_path / "made.json"
    path.write_text("id,arrival,Runtime,width\na,2024-05-06 09:00,60,1\nb,2024-05-06 09:01,30,2\n")
    table = hs.load_trace(path, "csv", columns={"gpus": "width"})
    assert table.rows[["submit_seconds", "duration_seconds", "gpus"]].values.tolist() == [
        [0, 60, 1], [60, 30, 2],
    ]  # fmt: skip
    trace = ["--from-trace", str(path), "--trace-format", "csv", "--set", "jobs=2"]
    assert run(["generate", "gang", *trace, "--column", "gpus=width", "-o", str(made)]) == 0
    assert len(hs.read(made).jobs) == 2
    assert run(["generate", "gang", *trace, "-o", str(made)]) == 2

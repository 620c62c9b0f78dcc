"""The edgecloud instance: derived numbers, one-line refusals, generator and trace mapping."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hindsched.errors import InputError
from hindsched.instances.edgecloud.generator import MODELS, from_trace, generate
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.instances.generators.registry import generate as generate_by_word
from hindsched.instances.generators.registry import suite
from hindsched.instances.io import parse_instance, read, schema
from hindsched.online.simulator import simulate
from hindsched.solvers.door.api import solve
from tests.strategies.edgecloud import instance, job

FILES = ("edgecloud-j5-s601", "edgecloud-j7-s600")
TRACE = Path(os.environ.get("HINDSCHED_TRACES", "nowhere")) / "philly" / "philly.csv.gz"


@pytest.mark.parametrize("name", FILES)
def test_files_round_trip(name):
    path = f"tests/data/instances/{name}.json"
    with open(path, encoding="utf-8") as stream:
        data = json.load(stream)
    assert read(path).to_dict() == data
    assert "upload_slots" in json.dumps(schema("edgecloud"))


def test_processing_times():
    """m = 1 slot and 2 q / b = 1 slot: 2 slots at the edge, 1 in the cloud."""
    known = read("tests/data/instances/edgecloud-j5-s601.json")
    assert known.edge_slots.tolist() == [2, 4, 4, 3, 3]
    assert known.cloud_slots.tolist() == [1, 3, 3, 3, 3]
    assert known.groups == {
        (0, "t2"): (0,),
        (1, "t1"): (1,),
        (1, "t2"): (2,),
        (2, "t1"): (3,),
        (2, "t2"): (4,),
    }


def tiny_data(**changes):
    server = {"name": "a", "workers": ["t1"], "ps": ["p"]}
    data = instance([server], [job("j", 1, 2, 3, 2, {"a": 1, "cloud": 6})]).to_dict()
    data.update(changes)
    return data


def changed_job(**changes):
    data = tiny_data()
    data["jobs"][0].update(changes)
    return data


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (changed_job(chunks=0), "jobs[0].chunks"),
        (changed_job(arrival=99), "jobs[0].arrival"),
        (changed_job(upload_slots={"cloud": 1}), "jobs[0].upload_slots.a"),
        (changed_job(upload_slots={"a": 1}), "jobs[0].upload_slots.cloud"),
        (changed_job(upload_slots={"a": 1, "cloud": 1, "b": 2}), "jobs[0].upload_slots.b"),
        (changed_job(upload_slots={"a": -1, "cloud": 1}), "jobs[0].upload_slots.a"),
        (changed_job(bandwidth_mbps=0), "jobs[0].bandwidth_mbps"),
        (changed_job(minibatch_slots=0, gradient_mb=0), "jobs[0].minibatch_slots"),
        (changed_job(color="red"), "jobs[0].color"),
        (tiny_data(cloud={"name": "a"}), "cloud.name"),
        (tiny_data(cloud={"name": "cloud", "workers": {"t1": -1}}), "cloud.workers.t1"),
        (tiny_data(cloud={"name": "cloud", "ps": {"p": 0}}, servers=[]), "jobs[0].upload_slots.a"),
    ],
)
def test_bad_instances_are_refused_by_path(data, where):
    with pytest.raises(InputError) as error:
        parse_instance(data)
    assert error.value.where == where
    assert "\n" not in str(error.value)


def test_a_job_needs_a_worker_and_a_ps_somewhere():
    closed = {"name": "cloud", "workers": {"t2": 0}}
    data = changed_job(worker_type="t2")
    data["cloud"] = closed
    with pytest.raises(InputError, match="type of some worker"):
        parse_instance(data)
    data = changed_job(ps_type="q")
    data["cloud"] = {"name": "cloud", "ps": {"q": 0}}
    with pytest.raises(InputError, match="type of some PS"):
        parse_instance(data)


def test_generator_is_reproducible_and_keeps_the_papers_ranges():
    one, again = generate("paper", 3, jobs=40), generate("paper", 3, jobs=40)
    assert one.to_dict() == again.to_dict()
    assert one.sha256() != generate("paper", 4, jobs=40).sha256()
    assert len(one.servers) == 100
    assert one.slot_seconds == 3600
    for made in one.jobs:
        assert (made.chunks, made.minibatches) in MODELS.values()
        assert 20 <= made.epochs <= 60
        assert 0.001 <= made.minibatch_slots <= 0.05
        assert 0.01 <= made.update_slots * 3600 <= 0.1
        assert 30 <= made.gradient_mb <= 575
        assert 100 <= made.bandwidth_mbps <= 5120
        assert 10 <= made.upload_slots["cloud"] <= 15
        assert {made.upload_slots[s.name] for s in one.servers} <= {1, 2, 3, 4}
    # One job's draws do not depend on how many jobs there are.
    assert generate("paper", 3, jobs=41).jobs[5].epochs in range(20, 61)


def test_testbed_and_suites():
    bed = generate("testbed", 0)
    assert len(bed.servers) == 8
    assert len(bed.jobs) == 30
    assert all(sorted(server.workers) == ["t1", "t2"] for server in bed.servers)
    for name in ("small", "variants"):
        for made in suite("edgecloud", name):
            assert solve(made, "relaxation").bound > 0


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"servers": -1}, "set.servers"),
        ({"epochs": [9, 2]}, "set.epochs"),
        ({"workers": []}, "set.workers"),
        ({"colour": 1}, "set.colour"),
        ({"cloud_workers": 0, "worker_types": 40}, "set.worker_types"),
        ({"cloud_workers": [1, 2]}, "set.cloud_workers"),
        ({"cloud_workers": -1}, "set.cloud_workers"),
        ({"minibatch_scale": [0.1, 0.2]}, "set.minibatch_scale"),
        ({"burst": "much"}, "set.burst"),
        ({"epochs": float("inf")}, "set.epochs"),
        ({"epochs": None}, "set.epochs"),
        ({"ps": [3]}, "set.ps"),
    ],
)
def test_bad_settings(settings, where):
    with pytest.raises(InputError) as error:
        generate("small", 0, **settings)
    assert error.value.where == where


def test_settings_that_are_off_in_every_preset_can_be_set():
    made = generate_by_word("edgecloud", cloud_workers="2", storage_gb="[4, 8]", chunk_gb=2)
    assert made.cloud.workers == {"t1": 2, "t2": 2}
    assert all(4 <= server.storage_gb <= 8 for server in made.servers)
    with pytest.raises(InputError, match="cloud_workers"):
        generate_by_word("edgecloud", cloud_workers="many")


@pytest.mark.skipif(not TRACE.exists(), reason="HINDSCHED_TRACES does not hold philly.csv.gz")
def test_philly_trace():
    """300 jobs of the real trace: gangs from its GPUs, one hour a slot, run and bounded."""
    from hindsched.instances.traces.table import load_trace

    table = load_trace(TRACE, "philly").window(0, 300)
    made = from_trace(table, jobs=300, seed=1)
    assert isinstance(made, EdgecloudInstance)
    assert len(made.jobs) == 300
    assert made.jobs[0].arrival == 1
    arrivals = made.arrivals
    assert (arrivals[1:] >= arrivals[:-1]).all()
    result = simulate(made, "edgecloud")
    assert result.violations == []
    with pytest.raises(InputError):
        from_trace(table, jobs=301)

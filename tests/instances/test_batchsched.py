"""batchsched instances: files, rules, modes, generator and traces."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

from hindsched.errors import InputError
from hindsched.instances.batchsched.generator import SUITES, from_trace, generate
from hindsched.instances.batchsched.instance import (
    PARAMETER_SERVER,
    RING_ALLREDUCE,
    BatchschedInstance,
)
from hindsched.instances.batchsched.modes import modes
from hindsched.instances.io import read, write
from tests.strategies.batchsched import instance, known_b

BOTH = (PARAMETER_SERVER, RING_ALLREDUCE)
FILE = Path("tests/data/instances/batchsched-ps-j5-s200.json")


def test_round_trip(tmp_path):
    inst = read(FILE)
    write(inst, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text()) == json.loads(FILE.read_text())
    assert read(tmp_path / "x.json").sha256() == inst.sha256()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda d: d["jobs"][0].update(arrival=99), "jobs[0].arrival"),
        (lambda d: d["jobs"][1].update(minibatch_slots=[1.0]), "jobs[1].minibatch_slots"),
        (lambda d: d["jobs"][1].update(update_slots=None), "jobs[1].update_slots"),
        (lambda d: d["jobs"][1].update(reduce_slots=1.0), "jobs[1].reduce_slots"),
        (lambda d: d["jobs"][0].update(surprise=1), "jobs[0].surprise"),
        (lambda d: d["servers"][0]["capacity"].update(gpu=-1), "servers[0].capacity.gpu"),
        (lambda d: d["servers"][0]["capacity"].update(tpu=1), "servers[0].capacity.tpu"),
        (lambda d: d["worker_types"][0]["demand"].update(gpu=9), "worker_types[0].demand"),
        (
            lambda d: d["worker_types"][0]["demand"].pop("bandwidth_mbps"),
            "worker_types[0].demand.bandwidth_mbps",
        ),
        (lambda d: d.pop("ps_types"), "ps_types"),
        (lambda d: d.update(architecture="ring-allreduce"), "ps_types"),
        (lambda d: d.update(bandwidth_resource="net"), "bandwidth_resource"),
        (lambda d: d["servers"][1].update(name="s1"), "servers[1].name"),
        (lambda d: d["jobs"][2].update(epochs=10**7, minibatches=10**6), "jobs[2]"),
        (lambda d: d["jobs"][0].update(weight=-1), "jobs[0].weight"),
        (lambda d: d["jobs"][0].update(weight=5e-324), "jobs[0].weight"),
        (lambda d: d["jobs"][0].update(minibatch_slots=[]), "jobs[0].minibatch_slots"),
        (lambda d: d["jobs"][0].update(chunks=1.5), "jobs[0].chunks"),
        (lambda d: d["jobs"][1].update(name="j1"), "jobs[1].name"),
        (lambda d: d.update(servers=[]), "servers"),
        (lambda d: d.update(slot_seconds=0), "slot_seconds"),
    ],
)
def test_broken_rules_name_the_field(change, where):
    data = json.loads(FILE.read_text())
    change(data)
    with pytest.raises(InputError) as error:
        BatchschedInstance.parse(data)
    assert error.value.where == where
    assert "\n" not in str(error.value)


def test_more_chunks_than_the_cluster_holds_workers_add_no_mode():
    data = json.loads(FILE.read_text())
    data["jobs"][0].update(chunks=10**7, minibatches=1)
    inst = BatchschedInstance.parse(data)
    most = inst.most_workers
    assert most < 100
    few = inst.jobs[0].model_copy(update={"chunks": most, "minibatches": 10**7 // most})
    found = set(modes(inst, inst.jobs[0]).tuples())
    assert {mode[:4] for mode in found} == {mode[:4] for mode in modes(inst, few).tuples()}
    assert max(mode[3] for mode in found) <= most


@pytest.mark.parametrize(
    ("servers", "workers", "ps", "usable"),
    [
        ([(3, 11)], [(2, 4)], [6], [[2, 10]]),
        ([(3, 9), (4, 7)], [(2, 4), (1, 2)], [3], [[3, 9], [4, 7]]),
        ([(0.7, 13)], [(0.2, 4)], [8], [[0.6, 12]]),
        ([(0.3, 13)], [(0.1, 4)], [8], [[0.3, 12]]),
        ([(1e12 + 1, 5e12)], [(2.5, 3e12)], [1e-8], [[1e12, 5e12]]),
        ([(3, 13)], [(0, 4)], [8], [[3, 12]]),
    ],
)
def test_usable_is_what_whole_units_can_take(servers, workers, ps, usable):
    """Multiples of what every demand is a multiple of, in the decimals of the file."""
    job = {
        "arrival": 1, "weight": 1, "epochs": 1, "chunks": 1, "minibatches": 1, "gradient_mb": 0.0,
        "minibatch_slots": [1.0] * len(workers), "update_slots": [0.0],
    }  # fmt: skip
    inst = instance(PARAMETER_SERVER, servers, workers, ps, [job])
    assert inst.usable_capacity.tolist() == usable
    few = inst.server_capacity[0] <= 10  # by brute force, where counts are few
    units = np.vstack([inst.worker_demand, inst.ps_demand])
    for counts in itertools.product(range(5), repeat=len(units)):
        taken = counts @ units
        if (taken <= inst.server_capacity[0] + 1e-9)[few].all():
            assert (taken <= inst.usable_capacity[0] + 1e-9)[few].all()


def test_a_cluster_that_holds_no_job_is_refused():
    with pytest.raises(InputError, match="must hold one worker"):
        instance(PARAMETER_SERVER, [(1, 2)], [(1, 2)], [2], [])


def test_modes_of_b1_and_b2():
    inst = known_b(PARAMETER_SERVER)
    assert set(modes(inst, inst.jobs[0]).tuples()) >= {(0, 0, 1, 2, 3), (0, 0, 0, 3, 4)}
    ring = known_b(RING_ALLREDUCE)
    wide = instance(
        RING_ALLREDUCE, [(3, 3), (3, 3)], [(1, 1)], [],
        [job.model_dump(exclude={"name"}, exclude_unset=True) for job in ring.jobs], 2,
    )  # fmt: skip
    expected = {(0, 0, 1, 3, 2), (0, 0, 1, 1, 3), (0, 0, 0, 3, 3), (0, 0, 0, 2, 4)}
    assert set(modes(wide, wide.jobs[0]).tuples()) == expected


def test_generator_is_deterministic_and_within_the_ranges():
    assert generate("paper", 5).sha256() == generate("paper", 5).sha256()
    assert generate("paper", 5).sha256() != generate("paper", 6).sha256()
    inst = generate("paper", 0, architecture=RING_ALLREDUCE)
    for job in inst.jobs:
        assert 200 <= job.weight <= 5000
        assert 5 <= job.chunks <= 50
        assert all(0.001 <= slots <= 0.05 for slots in job.minibatch_slots)


def test_generator_knobs():
    one = generate("paper", 0, fixed_worker_type=3)
    assert len(one.worker_types) == 1
    few = generate("paper", 0, fixed_workers=4)
    assert {job.chunks for job in few.jobs} == {4}
    free = generate("paper", 0)
    assert one.servers == few.servers == free.servers  # what is forced is not the cluster
    for job, same in zip(few.jobs, free.jobs, strict=True):
        assert 0 <= job.total_minibatches - same.total_minibatches < 4
    small, large = (generate("paper", 0, capacity_fraction=f) for f in (0.2, 0.4))
    ratio = large.server_capacity.sum(axis=0) / small.server_capacity.sum(axis=0)
    assert ratio == pytest.approx([2.0] * 3, rel=0.05)


def test_workers_are_the_papers_ec2_instances():
    free = generate("paper", 0, ec2_workers=True)
    names = [item.name for item in free.worker_types]
    assert names == ["p3.4xlarge", "p2.2xlarge", "p3.2xlarge", "p2.xlarge"]
    assert [item.demand["gpu"] for item in free.worker_types] == [2, 2, 1, 1]
    times = np.array([job.minibatch_slots for job in free.jobs]).mean(axis=0)
    assert times[0] < times[1] < times[3]
    assert times[2] < times[3]
    last = generate("paper", 0, ec2_workers=True, fixed_worker_type=4)
    assert [item.name for item in last.worker_types] == names[3:]
    assert last.servers == free.servers


@pytest.mark.parametrize("architecture", BOTH)
def test_the_total_capacity_does_not_depend_on_the_number_of_servers(architecture):
    totals = [
        generate("paper", 3, servers=servers, architecture=architecture)
        .server_capacity.sum(axis=0)
        .tolist()
        for servers in (20, 75, 300)
    ]
    # Only the servers that are made to hold the largest type differ, by less than that type.
    for total in totals[1:]:
        assert total == pytest.approx(totals[0], abs=16)


@pytest.mark.parametrize(
    "bad",
    [
        {"fixed_workers": 0},
        {"fixed_workers": 2.5},
        {"fixed_worker_type": 9},
        {"fixed_worker_type": True},
        {"fixed_worker_type": 5, "ec2_workers": True},
        {"ec2_workers": 1},
        {"capacity_fraction": -1},
        {"capacity_fraction": "abc"},
        {"capacity_fraction": float("inf")},
        {"architecture": "ring"},
        {"time_scale": None},
        {"weight": "abc"},
        {"weight": 5},
        {"weight": [5, 1]},
        {"weight": [1, 2, 3]},
        {"chunks": [1.5, 2.5]},
        {"gpus": [0, 0]},
        {"minibatch_slots": [0, 1]},
        {"update_ms": [-5, 10]},
        {"servers": True},
        {"jobs": 10**12},
    ],
)
def test_a_wrong_setting_of_the_generator_is_named(bad):
    with pytest.raises(InputError) as error:
        generate("paper", 0, **bad)
    assert error.value.where == f"set.{next(iter(bad))}"
    assert "\n" not in str(error.value)


def test_small_suite_has_eight_instances_of_both_architectures():
    suite = SUITES["small"]()
    assert len(suite) == 8
    assert {inst.architecture for inst in suite} == {PARAMETER_SERVER, RING_ALLREDUCE}


def test_from_trace():
    if "HINDSCHED_TRACES" not in os.environ:
        pytest.skip("no real traces: HINDSCHED_TRACES is not set")
    from hindsched.instances.traces.table import load_trace

    path = Path(os.environ["HINDSCHED_TRACES"]) / "elasticflow" / "raw-traces.tar.gz"
    table = load_trace(path, "elasticflow", "cluster06").window(0, 40)
    for architecture in (PARAMETER_SERVER, RING_ALLREDUCE):
        inst = from_trace(table, jobs=40, architecture=architecture)
        assert len(inst.jobs) == 40
        assert len(inst.worker_types) == 3
    with pytest.raises(InputError):
        from_trace(table, jobs=41)

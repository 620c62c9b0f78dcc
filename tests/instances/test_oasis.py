"""The oasis instance: derived quantities, exact round trip, and one line for every broken rule."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from hindsched.errors import InputError
from hindsched.instances.decimals import how_many_fit
from hindsched.instances.io import parse_instance, read, write
from hindsched.instances.oasis.generator import generate
from hindsched.instances.oasis.instance import OasisInstance

FILES = sorted(Path("tests/data/instances").glob("oasis-*.json"))
DATA = json.loads(Path("tests/data/instances/oasis-t10-i10-h5-s1.json").read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_round_trip_exactly(path, tmp_path):
    instance = read(path)
    assert instance.to_dict() == json.loads(path.read_text())
    write(instance, tmp_path / "copy.json")
    assert read(tmp_path / "copy.json") == instance
    assert instance.worker_capacity.shape == (len(instance.worker_servers), 5)
    assert (instance.min_duration >= 1).all()


def broken(path, value):
    data = copy.deepcopy(DATA)
    place = data
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (["jobs", 3, "arrival"], 11, "jobs[3].arrival"),
        (["jobs", 3, "arrival"], 0, "jobs[3].arrival"),
        (["jobs", 2, "worker", "gpu"], -1, "jobs[2].worker.gpu"),
        (["jobs", 2, "worker", "gpu"], 17, "jobs[2].worker"),
        (["jobs", 2, "worker", "tpu"], 1, "jobs[2].worker.tpu"),
        (["jobs", 2, "ps", "memory_gb"], 61, "jobs[2].ps"),
        (["jobs", 2, "ps", "bandwidth_mbps"], 0, "jobs[2].ps.bandwidth_mbps"),
        (["jobs", 2, "worker", "bandwidth_mbps"], 0, "jobs[2].worker.bandwidth_mbps"),
        (["jobs", 1, "name"], "j1", "jobs[1].name"),
        (["jobs", 1, "epochs"], 2.5, "jobs[1].epochs"),
        (["jobs", 1, "epochs"], None, "jobs[1].epochs"),
        (["jobs", 1, "minibatch_slots"], 0, "jobs[1].minibatch_slots"),
        (["jobs", 1, "minibatch_slots"], 1e15, "jobs[1]"),
        (["jobs", 0, "utility"], {"kind": "power", "scale": 1, "exponent": 1}, "jobs[0].utility"),
        (
            ["jobs", 0, "utility"],
            {"kind": "linear", "slope": 1, "intercept": 0},
            "jobs[0].utility.slope",
        ),
        (["worker_servers", 1, "capacity", "cpu"], float("inf"), "worker_servers[1].capacity.cpu"),
        (["worker_servers", 1, "capacity", "tpu"], 1, "worker_servers[1].capacity.tpu"),
        (["worker_servers", 1, "name"], "w1", "worker_servers[1].name"),
        (["ps_servers"], [], "ps_servers"),
        (["resources"], ["gpu", "gpu"], "resources[1]"),
        (["bandwidth_resource"], "mbps", "bandwidth_resource"),
        (["slots"], 10, "slots"),
        (["horizon"], 0, "horizon"),
    ],
)
def test_a_broken_rule_is_one_line_with_its_path(path, value, where):
    with pytest.raises(InputError) as caught:
        parse_instance(broken(path, value))
    assert caught.value.where.startswith(where)
    assert "\n" not in str(caught.value)


def test_derived_quantities_by_hand():
    instance = OasisInstance.parse(DATA)
    job = instance.jobs[0]
    # 2 x 138.426 MB x 8 bit / 1479 Mbps / 3600 s = 0.00041597... slots
    per_batch = job.minibatch_slots + 2 * job.gradient_mb * 8 / 1479 / 3600
    assert instance.minibatch_time(job) == pytest.approx(per_batch)
    assert instance.work_of(job) == 148
    assert np.ceil(97 * 62 * 14 * per_batch) == 148
    assert instance.min_duration_of(job) == 3  # 148 / 62
    assert instance.ps_needed(job, 0) == 0
    assert instance.ps_needed(job, 9) == 2  # 9 x 1479 / 11995 = 1.1
    assert instance.ps_needed_up_to(job, 9).tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 1, 2]
    values = instance.utilities(job)
    assert np.isnan(values[0])
    assert values[1] == job.utility.value(0)


def test_most_workers_by_hand():
    instance = OasisInstance.parse(DATA)
    job = instance.jobs[1]  # 1 GPU, 19 GB each; 16 + 1 + 2 + 4 + 1 GPUs; at most 8 chunks
    assert instance.most_workers(job) == 8
    wide = job.model_copy(update={"ps": {**job.ps, "bandwidth_mbps": 3000}})
    assert instance.most_workers(wide) == 0  # a worker sends more than a PS takes


def test_how_many_fit_is_exact_and_ignores_what_is_not_needed():
    capacity = np.array([[0.3, 0.0], [1.0, 5.0]])
    assert how_many_fit(capacity, np.array([0.1, 0.0]), 99).tolist() == [3, 10]
    assert how_many_fit(capacity, np.array([0.1, 1.0]), 99).tolist() == [0, 5]
    assert how_many_fit(capacity, np.array([0.0, 0.0]), 7).tolist() == [7, 7]
    assert how_many_fit(-capacity, np.array([0.1, 0.0]), 7).tolist() == [0, 0]


def test_other_jobs_keep_the_cluster_and_its_arrays():
    instance = OasisInstance.parse(DATA)
    other = instance.with_jobs(instance.jobs[2:4])
    assert other.worker_capacity is instance.worker_capacity
    assert other.work.tolist() == instance.work[2:4].tolist()
    assert instance.work.size == 10


def test_numbers_of_the_classes_can_be_exact():
    shares = [0.0, 0.5, 0.5]
    drawn = generate("paper", 0, jobs=21, shares=shares)
    exact = generate("paper", 0, jobs=21, shares=shares, exact_shares=True)
    kinds = [job.utility.decay >= 4 for job in exact.jobs]
    assert kinds.count(True) == 11
    assert kinds != sorted(kinds)
    assert [job.arrival for job in exact.jobs] == [job.arrival for job in drawn.jobs]
    with pytest.raises(InputError, match="exact_shares"):
        generate("paper", 0, exact_shares=1)

"""Instances from frames and from JSON data, in every family."""

import numpy as np
import pandas as pd
import pytest

import hindsched as hs
from hindsched.errors import InputError
from hindsched.instances.base import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_a_written_instance_comes_back_from_its_data_and_from_frames(family):
    made = hs.generate(family, seed=3)
    data = made.to_dict()
    assert hs.read(data) == made
    fields = {
        key: pd.json_normalize(value, max_level=0) if key == "jobs" else value
        for key, value in data.items()
        if key not in ("format", "family", "name")
    }
    again = hs.instance(family, name=made.name, **fields)
    assert again == made


def test_dotted_columns_are_entries_and_empty_cells_are_absent():
    made = hs.generate("oasis", seed=3)
    data = made.to_dict()
    jobs = pd.json_normalize(data["jobs"])
    assert "worker.gpu" in jobs
    servers = pd.json_normalize(data["worker_servers"]).set_index("name")
    servers["capacity.tpu"] = [np.nan] * len(servers)
    fields = {key: data[key] for key in data if key not in ("format", "family", "name")}
    frames = {"jobs": jobs, "worker_servers": servers}
    again = hs.instance("oasis", name=made.name, **{**fields, **frames})
    assert again == made
    assert type(again.jobs[0].arrival) is int


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda jobs: jobs.assign(colour="red"), r"^jobs\[0\]\.colour: red: unknown field"),
        (lambda jobs: jobs.drop(columns="arrival"), r"^jobs\[0\]\.arrival: .*is required"),
        (lambda jobs: jobs.assign(arrival=1.5), r"^jobs\[0\]\.arrival: 1\.5"),
        (lambda jobs: jobs.assign(**{"name.first": 1}), r"^jobs\[0\]\.name\.first: 1: name is no"),
        (lambda jobs: pd.concat([jobs, jobs["name"]], axis=1), r"^jobs\.name: .*one column"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(change, message):
    data = hs.generate("oasis", seed=3).to_dict()
    jobs = change(pd.json_normalize(data["jobs"]))
    fields = {key: data[key] for key in data if key not in ("format", "family", "name")}
    with pytest.raises(InputError, match=message):
        hs.instance("oasis", **{**fields, "jobs": jobs})


def test_an_unknown_family_is_named():
    with pytest.raises(InputError, match="family"):
        hs.instance("oases", jobs=[])


TENANTS = pd.DataFrame({"name": [7, 8], "worker_quota": [2, 2], "ps_quota": [2, 2]})
TENANT_JOBS = pd.DataFrame(
    {
        "tenant": [7, 8, 7], "arrival": [0, 0, 1], "epochs": 1, "chunks": 1, "minibatches": 1,
        "minibatch_slots": 1.0, "update_slots": 0.0, "gradient_mb": 1.0,
        "utility.kind": "linear", "utility.slope": -1, "utility.intercept": 9,
    }
)  # fmt: skip


def shared(jobs, tenants=TENANTS):
    return hs.instance(
        "astraea", jobs=jobs, tenants=tenants, servers=[{"name": "s", "workers": 4, "ps": 4}],
        horizon=9, slot_seconds=60, utility_origin="arrival", worker_bandwidth_mbps=100,
        ps_bandwidth_mbps=100,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("jobs", "names"),
    [
        (TENANT_JOBS.assign(name=[30, 10, 20]), ["30", "10", "20"]),
        (TENANT_JOBS.assign(name=[30.0, 10.0, 20.0]), ["30", "10", "20"]),
        (TENANT_JOBS, ["0", "1", "2"]),
        (TENANT_JOBS.set_index(pd.Index([5, 3, 4], name="id")), ["5", "3", "4"]),
    ],
)
def test_ids_of_any_kind_of_index_become_names_and_survive(jobs, names):
    made = shared(jobs)
    assert [job.name for job in made.jobs] == names
    assert [job.tenant for job in made.jobs] == ["7", "8", "7"]
    assert [job.arrival for job in made.jobs] == [0, 0, 1]
    assert hs.read(made.to_dict()) == made


def test_an_instance_without_jobs_is_no_slip_of_the_pen():
    with pytest.raises(InputError, match=r"^jobs: \(absent\): is required"):
        hs.instance("gang", gpus=1, horizon=1, slot_seconds=1)


@pytest.mark.parametrize("source", [[1], None, 3, b"x.json"])
def test_what_is_neither_path_nor_data_is_one_line(source):
    with pytest.raises(InputError, match=r"^source: .*must be a file's path"):
        hs.read(source)
    with pytest.raises(InputError, match="must be the path of a file"):
        hs.read_solution(source, hs.generate("oasis"))

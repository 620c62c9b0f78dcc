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

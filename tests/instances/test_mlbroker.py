"""mlbroker's instances, generator and trace mapping."""

import copy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hindsched.errors import InputError
from hindsched.instances.generators.registry import generate as generate_family
from hindsched.instances.io import parse_instance, read, schema, write
from hindsched.instances.library import known_instance
from hindsched.instances.mlbroker.generator import (
    PAPER,
    PRESETS,
    SMALL_LEVELS,
    SUITES,
    from_trace,
    generate,
)
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.instances.traces.table import build_table
from hindsched.online.simulator import simulate


def broken(change):
    data = copy.deepcopy(known_instance("mlbroker-r3-t2-s51").to_dict())
    change(data)
    with pytest.raises(InputError) as caught:
        parse_instance(data)
    assert "\n" not in str(caught.value)
    return caught.value.where


def put(*path):
    """A change: the value at a path."""
    *way, last, value = path

    def change(data):
        for step in way:
            data = data[step]
        data[last] = value

    return change


GPU = ("datacenters", 0, "prices", "gpu")
RULES = [
    (put(*GPU, "discounted_usd", 99), "datacenters[0].prices.gpu.discounted_usd"),
    (put(*GPU, "threshold", -1), "datacenters[0].prices.gpu.threshold"),
    (put("datacenters", 1, "prices", "tpu", {"unit_usd": 1, "discounted_usd": 1, "threshold": 0}),
     "datacenters[1].prices.tpu"),
    (lambda data: data["datacenters"][2]["prices"].pop("gpu"), "datacenters[2].prices.gpu"),
    (put("datacenters", []), "datacenters"),
    (put("resources", []), "resources"),
    (put("datacenters", 1, "name", "r1"), "datacenters[1].name"),
    (put("resources", ["gpu", "gpu"]), "resources"),
    (put("transfer_usd_per_gb", [[0]]), "transfer_usd_per_gb"),
    (put("transfer_usd_per_gb", 1, [0, 0]), "transfer_usd_per_gb[1]"),
    (put("transfer_usd_per_gb", 1, 1, 0.5), "transfer_usd_per_gb[1][1]"),
    (put("transfer_usd_per_gb", 1, 0, -0.5), "transfer_usd_per_gb[1][0]"),
    (put("jobs", 0, "departure", 3), "jobs[0].data_gb"),
    (put("jobs", 2, "departure", 1), "jobs[2].departure"),
    (put("jobs", 0, "data_gb", [[1, 2, 3]]), "jobs[0].data_gb"),
    (put("jobs", 0, "data_gb", 1, [1, 2]), "jobs[0].data_gb[1]"),
    (put("jobs", 0, "data_gb", 1, [1, 2, -3]), "jobs[0].data_gb[1][2]"),
    (put("jobs", 0, "capacity_gb", 0), "jobs[0].capacity_gb"),
    (put("jobs", 0, "worker", {"tpu": 1}), "jobs[0].worker.tpu"),
    (put("jobs", 0, "pinned_datacenters", ["r7"]), "jobs[0].pinned_datacenters[0]"),
    (put("jobs", 0, "pinned_datacenters", ["r1", "r1"]), "jobs[0].pinned_datacenters"),
    (put("jobs", 1, "name", "j1"), "jobs[1].name"),
    (put("cost_weights", {"transfer": -1}), "cost_weights.transfer"),
    (put("cost_weights", {"energy": 1}), "cost_weights.energy"),
    (put("horizon", 1), "jobs[0].departure"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "where"), RULES, ids=[where for _, where in RULES])
def test_every_rule_names_its_field(change, where):
    assert broken(change) == where


def test_known_file_round_trips(tmp_path):
    instance = known_instance("mlbroker-r3-t2-s51")
    path = tmp_path / "x.json"
    write(instance, path)
    assert read(path) == instance
    assert read(path).sha256() == instance.sha256()
    assert "datacenters" in schema("mlbroker")["properties"]


def test_views():
    instance = known_instance("mlbroker-r3-t2-s51")
    assert instance.workers_needed.tolist() == [[6, 6], [3, 3], [0, 3]]
    assert instance.data.shape == (3, 2, 3)
    assert instance.alive.tolist() == [[True, True], [True, True], [False, True]]
    assert instance.tier_fee == pytest.approx(
        (instance.unit_price - instance.discounted_price) * instance.threshold
    )
    assert SlotData.at(instance, 1).jobs == ("j1", "j2")
    assert SlotData.at(instance, 1).largest_use[0].tolist() == [24, 15, 56, 44]


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_deterministic_and_valid(preset):
    jobs = {} if preset != "paper" else {"jobs": 12}
    one, two = (generate(preset, 3, **jobs) for _ in range(2))
    assert one == two
    assert one.sha256() == two.sha256()
    assert one != generate(preset, 4, **jobs)
    assert parse_instance(one.to_dict()) == one


def test_paper_preset_lies_in_the_ranges_of_section_6_1():
    instance = generate("paper", 0)
    assert (len(instance.datacenters), instance.horizon, len(instance.jobs)) == (15, 50, 145)
    assert instance.slot_seconds == 43200
    gpu = instance.unit_price[:, 0] / PAPER["slot_days"]
    assert 1.2 <= gpu.min() <= gpu.max() <= 9.6
    share = instance.discounted_price / instance.unit_price
    assert 0.7 - 1e-9 <= share.min() <= share.max() <= 0.8 + 1e-9
    assert 500 <= instance.threshold[:, 0].min() <= instance.threshold[:, 0].max() <= 600
    off = instance.transfer_price[~np.eye(15, dtype=bool)]
    assert 0.01 <= off.min() <= off.max() <= 0.02
    assert np.array_equal(instance.transfer_price, instance.transfer_price.T)
    total = instance.data.sum(axis=2)[instance.alive]
    assert 400 - 1e-6 <= total.min() <= total.max() <= 600 + 1e-6
    live = instance.alive.sum(axis=0)[15:]
    assert 20 <= live.mean() <= 40


def test_settings():
    asymmetric = generate("small", 0, symmetric_transfer=False).transfer_price
    assert not np.array_equal(asymmetric, asymmetric.T)
    pinned = generate("small", 0, pinned_probability=0.5)
    assert any(job.pinned_datacenters for job in pinned.jobs)
    assert generate("small", 0, jobs=0).jobs == ()
    assert generate("small", 0, gpus=4).jobs[0].worker["gpu"] == 4
    assert generate_family("mlbroker", "small", 0, data_gb="[10, 20]").name.startswith("mlbroker")
    real = generate("section-6.4", 0)
    assert real.resources == ("instance",)
    assert real.unit_price == pytest.approx(3.06)


@pytest.mark.parametrize(
    "settings",
    [{"gpu_range": [5, 1]}, {"datacenters": 0}, {"jobs": -1}, {"jobs": 2.5}, {"wrong": 1},
     {"data_gb": "many"}, {"life_slots": [1, 2, 3]}, {"horizon": True}],
)  # fmt: skip
def test_bad_settings_are_input_errors(settings):
    with pytest.raises(InputError):
        generate("small", 0, **settings)


@pytest.mark.parametrize(
    ("preset", "key", "value"),
    [
        ("small", "slot_days", 0),
        ("small", "slot_days", (0.5, 1)),
        ("small", "life_slots", 0.5),
        ("small", "life_slots", (0, 3)),
        ("small", "discount", (0.5, 1.5)),
        ("small", "data_variation", 2),
        ("small", "persistent_share", -1),
        ("small", "pinned_probability", 2),
        ("small", "burst", (0, 1)),
        ("small", "symmetric_transfer", "maybe"),
        ("small", "capacity_gb", 0),
        ("small", "data_gb", float("inf")),
        ("small", "deployment_gb", -1),
        ("small", "jobs", True),
        ("section-6.4", "slot_hours", 0),
        ("section-6.4", "dataset_gb", -5),
        ("section-6.4", "discount", (0.5, 0.6)),
        ("section-6.4", "instance_threshold", (1, 2)),
        ("section-6.4", "dataset_share", (0.1,)),
    ],
)
def test_bad_settings_are_named(preset, key, value):
    with pytest.raises(InputError) as caught:
        generate(preset, 0, **{key: value})
    assert caught.value.where == f"set.{key}"
    assert "\n" not in str(caught.value)


def test_unknown_preset():
    with pytest.raises(InputError):
        generate("large", 0)


def test_suites_hold_instances_of_their_own_names():
    for make_suite in SUITES.values():
        names = [instance.name for instance in make_suite()]
        assert len(set(names)) == len(names)


def test_the_small_suite_tells_algorithms_apart():
    """Four levels, and who is best changes with them."""
    made = SUITES["small"]()
    assert len(made) >= 8
    assert len(SMALL_LEVELS) == 4
    costs = {
        name: np.array([simulate(instance, name).objective for instance in made])
        for name in ("mlbroker-tight", "central", "oasis-style", "local", "receding-horizon")
    }
    least = np.min(list(costs.values()), axis=0)
    far = {name: (cost / least - 1).round(4) for name, cost in costs.items()}
    assert (far["central"] > 0.02).sum() >= 5
    assert (far["oasis-style"] > 0.002).sum() >= 5
    assert (far["mlbroker-tight"] > 0.01).sum() >= 1  # myopic where launches are dear
    assert (far["receding-horizon"] <= 0.001).sum() >= 6
    assert far["central"][4:].min() > far["central"][:2].max(), "the level decides"


def trace(seconds):
    """A trace of jobs submitted at the given seconds."""
    raw = pd.DataFrame(
        {
            "job": [f"t{i}" for i in range(len(seconds))],
            "part": "p",
            "submit_seconds": seconds,
            "duration_seconds": 60.0,
            "gpus": 1,
        }
    )
    return build_table("by-hand", Path("by-hand.csv"), raw)


def test_arrivals_of_a_trace():
    table = trace([0, 10, 20, 50, 99, 100])
    instance = from_trace(table, jobs=6, horizon=10, datacenters=3)
    assert [job.arrival for job in instance.jobs] == [1, 2, 3, 6, 10, 10]
    assert instance.provenance["trace"] == "by-hand.csv"
    assert from_trace(table, jobs=3, every=2, horizon=10).jobs[1].arrival == 3
    half_days = from_trace(trace([0, 43199, 43200, 1e9]), jobs=4, horizon=10, stretch=False)
    assert [job.arrival for job in half_days.jobs] == [1, 1, 2, 10]
    with pytest.raises(InputError):
        from_trace(table, jobs=7)
    with pytest.raises(InputError):
        from_trace(table, jobs=3, every=0)

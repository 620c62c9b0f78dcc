"""What every family's instances, files, generators and mappings from traces keep to."""

from __future__ import annotations

import hashlib
import json
from functools import reduce

import numpy as np
import pytest

import hindsched as hs
from hindsched.errors import InputError
from hindsched.instances.base import FAMILIES, canonical_json
from hindsched.instances.catalogue import KNOWN, suite, suites
from hindsched.instances.generators.registry import generate, presets
from hindsched.instances.io import parse_instance, schema

ABSENT = object()
EXAMPLE = {
    "oasis": "oasis-t10-i10-h5-s1",
    "batchsched": "batchsched-ps-j5-s200",
    "astraea": "astraea-j5-s40",
    "edgecloud": "edgecloud-j5-s601",
    "mlbroker": "mlbroker-r3-t2-s51",
    "gang": "gang/small/j6-s1",
}
LINE = {"kind": "linear", "slope": 1, "intercept": 0}
POWER = {"kind": "power", "scale": 1e10, "exponent": 400}
RULES = {
    "oasis": [
        ("jobs.2.worker.gpu", -1, "jobs[2].worker.gpu"),
        ("jobs.2.worker.gpu", 17, "jobs[2].worker"),
        ("jobs.2.worker.tpu", 1, "jobs[2].worker.tpu"),
        ("jobs.2.ps.memory_gb", 61, "jobs[2].ps"),
        ("jobs.2.worker.bandwidth_mbps", 0, "jobs[2].worker.bandwidth_mbps"),
        ("jobs.1.epochs", ABSENT, "jobs[1].epochs"),
        ("jobs.1.minibatch_slots", 0, "jobs[1].minibatch_slots"),
        ("jobs.1.minibatch_slots", 1e15, "jobs[1]"),
        ("jobs.0.utility", POWER, "jobs[0].utility"),
        ("jobs.0.utility", LINE, "jobs[0].utility.slope"),
        ("worker_servers.1.capacity.cpu", float("inf"), "worker_servers[1].capacity.cpu"),
        ("ps_servers", [], "ps_servers"),
        ("resources", ["gpu", "gpu"], "resources[1]"),
        ("bandwidth_resource", "mbps", "bandwidth_resource"),
        ("slots", 10, "slots"),
        ("horizon", 0, "horizon"),
        ("format", "hindsched/2", "format"),
        ("family", "unknown", "family"),
    ],
    "batchsched": [
        ("jobs.0.arrival", 99, "jobs[0].arrival"),
        ("jobs.1.minibatch_slots", [1.0], "jobs[1].minibatch_slots"),
        ("jobs.1.update_slots", None, "jobs[1].update_slots"),
        ("jobs.1.reduce_slots", 1.0, "jobs[1].reduce_slots"),
        ("worker_types.0.demand.gpu", 9, "worker_types[0].demand"),
        ("worker_types.0.demand.bandwidth_mbps", ABSENT, "worker_types[0].demand.bandwidth_mbps"),
        ("architecture", "ring-allreduce", "ps_types"),
        ("jobs.2.epochs", 10**7, "jobs[2]"),
        ("jobs.0.weight", -1, "jobs[0].weight"),
    ],
    "astraea": [
        ("tenants.0.worker_quota", 99, "tenants.worker_quota"),
        ("tenants.0.worker_quota", 10**30, "tenants[0].worker_quota"),
        ("jobs.0.tenant", "u9", "jobs[0].tenant"),
        ("jobs.0.arrival", 10**6, "jobs[0].arrival"),
        ("jobs.0.minibatch_slots", {"gpu": 1}, "jobs[0].minibatch_slots.gpu"),
        ("jobs.0.utility", LINE, "jobs[0].utility.slope"),
        ("jobs.0.utility", {"kind": "sigmoid"}, "jobs[0].utility"),
        ("jobs.0.utility", {**LINE, "intercept": 1e308}, "jobs[0].utility.intercept"),
        ("jobs.0.utility", {**LINE, "slope": -(10**400)}, "jobs[0].utility.slope"),
        ("worker_bandwidth_mbps", {"a": 1, "b": 2}, "tenants[0].worker_quota"),
        ("worker_bandwidth_mbps", {}, "worker_bandwidth_mbps"),
    ],
    "edgecloud": [
        ("jobs.0.upload_slots", {"cloud": 1}, "jobs[0].upload_slots.s1"),
        ("jobs.0.upload_slots.cloud", ABSENT, "jobs[0].upload_slots.cloud"),
        ("jobs.0.upload_slots.b", 2, "jobs[0].upload_slots.b"),
        ("cloud", {"name": "s1"}, "cloud.name"),
        ("cloud", {"name": "cloud", "workers": {"t1": -1}}, "cloud.workers.t1"),
    ],
    "mlbroker": [
        ("datacenters.0.prices.gpu.discounted_usd", 99, "datacenters[0].prices.gpu.discounted_usd"),
        ("datacenters.0.prices.gpu.threshold", -1, "datacenters[0].prices.gpu.threshold"),
        ("datacenters.2.prices.gpu", ABSENT, "datacenters[2].prices.gpu"),
        ("transfer_usd_per_gb.1", [0, 0], "transfer_usd_per_gb[1]"),
        ("transfer_usd_per_gb.1.1", 0.5, "transfer_usd_per_gb[1][1]"),
        ("jobs.0.departure", 3, "jobs[0].departure"),
        ("jobs.1.data_gb", [], "jobs[1].data_gb"),
        ("jobs.2.departure", 1, "jobs[2].departure"),
        ("jobs.0.data_gb.1", [1, 2, -3], "jobs[0].data_gb[1][2]"),
        ("jobs.0.pinned_datacenters", ["r7"], "jobs[0].pinned_datacenters[0]"),
        ("cost_weights", {"transfer": -1}, "cost_weights.transfer"),
        ("cost_weights", {"energy": 1}, "cost_weights.energy"),
        ("horizon", 1, "jobs[0].departure"),
    ],
    "gang": [
        ("gpus", ABSENT, "gpus"),
        ("servers", [{"name": "s", "gpus": 4}], "gpus"),
        ("placement", "consolidated", "placement"),
        ("jobs.1.gpus", 99, "jobs[1].gpus"),
        ("jobs.1.most_gpus", 1, None),
        ("jobs.1.submit", 0.5, "jobs[1].submit"),
        ("horizon", 1, None),
        ("jobs.0.duration", 10**15, "jobs"),
    ],
}
CASES = [(family, *case) for family, cases in RULES.items() for case in cases]


def example(family):
    return hs.named_instance(EXAMPLE[family])


@pytest.mark.parametrize(("family", "path", "value", "where"), CASES)
def test_a_broken_rule_names_its_field_in_one_line(family, path, value, where):
    data = json.loads(json.dumps(example(family).to_dict()))
    *outer, last = (int(word) if word.isdecimal() else word for word in path.split("."))
    holder = reduce(lambda place, word: place[word], outer, data)
    if value is ABSENT:
        del holder[last]
    else:
        holder[last] = value
    with pytest.raises(InputError) as caught:
        parse_instance(data)
    assert caught.value.where == where or where is None
    assert "\n" not in str(caught.value)
    assert caught.value.rule


@pytest.mark.parametrize("family", FAMILIES)
def test_files_round_trip_exactly(family, tmp_path):
    for name in [name for name in KNOWN if name.startswith(family)] or [EXAMPLE[family]]:
        instance = hs.named_instance(name)
        data = instance.to_dict()
        assert instance.sha256() == hashlib.sha256(canonical_json(data).encode()).hexdigest()
        hs.write(instance, tmp_path / "x.json")
        assert json.loads((tmp_path / "x.json").read_text()) == data
        again = hs.read(tmp_path / "x.json")
        assert again == instance
        assert hs.read(data) == instance
        kept = again.with_jobs(again.jobs[1:])
        assert len(kept.jobs) == len(again.jobs) - 1


@pytest.mark.parametrize("family", FAMILIES)
def test_schemas_name_what_files_have(family):
    body, data = schema(family), example(family).to_dict()
    assert {"format", "family", "name", "horizon", "slot_seconds"} <= set(body["required"])
    assert body["additionalProperties"] is False
    assert set(body["required"]) <= set(data) <= set(body["properties"])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_seed_gives_the_same_instance_and_made_data_obey_the_rules(family):
    for preset in presets(family):
        small = {} if preset != "paper" else {"jobs": 12}
        instance, again, other = (generate(family, preset, seed, **small) for seed in (5, 5, 6))
        assert instance.sha256() == again.sha256() != other.sha256()
        assert parse_instance(json.loads(json.dumps(instance.to_dict()))) == instance
        assert instance.provenance["preset"] == preset


@pytest.mark.parametrize("family", FAMILIES)
def test_suites_hold_instances_of_their_own_names(family):
    assert "small" in suites(family)
    made = suite(family, "small")
    assert len({instance.name for instance in made}) == len(made) >= 4
    assert {instance.family for instance in made} == {family}


@pytest.mark.parametrize("family", FAMILIES)
def test_settings_of_another_kind_are_refused(family):
    for preset, settings in presets(family).items():
        for name, value in settings.items():
            wrong = ["inf", "1e-300"] if isinstance(value, int | float | list) else []
            wrong += [] if isinstance(value, dict) else ["{}"]
            for text in wrong:
                with pytest.raises(InputError, match=f"set.{name}: "):
                    generate(family, preset, **{name: text})


def test_what_builders_make_is_what_a_file_holds():
    utility = hs.oasis.Sigmoid(priority=20, decay=2, target=3)
    read = hs.named_instance(EXAMPLE["oasis"])
    fields = {name: getattr(read.jobs[0], name) for name in read.jobs[0].model_fields_set}
    built = read.with_jobs((hs.oasis.Job(**{**fields, "utility": utility}),))
    data = built.to_dict()
    assert data["jobs"][0]["utility"]["kind"] == "sigmoid"
    assert parse_instance(json.loads(json.dumps(data))) == built


SETTINGS = {
    "oasis": [
        ("priority", [5, 1]), ("shares", [0, 0, 0]), ("shares", [1, "a", 2]), ("jobs", 0),
        ("servers", 1.5), ("colour", 1), ("exact_shares", 1),
    ],
    "batchsched": [
        ("fixed_workers", 2.5), ("fixed_worker_type", 9), ("ec2_workers", 1), ("gpus", [0, 0]),
        ("capacity_fraction", -1), ("architecture", "ring"), ("chunks", [1.5, 2.5]),
        ("minibatch_slots", [0, 1]), ("jobs", 10**12),
    ],
    "astraea": [
        ("utility", "sigmoid"), ("minibatch_scale", 0), ("arrival_span", 99), ("slope", [1, 2]),
        ("intercept", "[nan, 1]"), ("workers_per_server", [-1]), ("ps_per_server", 1.5),
    ],
    "edgecloud": [
        ("servers", -1), ("epochs", None), ("workers", []), ("ps", [3]), ("cloud_workers", "many"),
        ("minibatch_scale", [0.1, 0.2]), ("burst", "much"),
    ],
    "mlbroker": [
        ("datacenters", 0), ("jobs", True), ("life_slots", 0.5), ("slot_days", 0),
        ("discount", (0.5, 1.5)), ("data_variation", 2), ("burst", (0, 1)), ("capacity_gb", 0),
    ],
    "gang": [
        ("servers", 99), ("placement", "row"), ("arrivals", "often"), ("mix", "even"),
        ("seconds", [0, 9]), ("widths", []), ("widths", [0]), ("deadline_factor", [-1, 2]),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("family", "name", "value"),
    [(family, *case) for family, cases in SETTINGS.items() for case in cases],
)
def test_a_bad_setting_is_named(family, name, value):
    with pytest.raises(InputError) as caught:
        generate(family, "small", 0, **{name: value})
    assert caught.value.where in (f"set.{name}", name, "jobs[0].gpus")
    assert "\n" not in str(caught.value)


def ends(values):
    return min(values), max(values)


def inside(values, low, high):
    least, most = ends(list(values))
    return low <= least <= most <= high


def test_the_papers_ranges_are_kept():
    oasis = generate("oasis", "paper", 3)
    assert oasis.worker_capacity.shape == oasis.ps_capacity.shape == (50, 5)
    assert inside((job.epochs for job in oasis.jobs), 50, 200)
    assert inside((job.chunks for job in oasis.jobs), 5, 100)
    assert inside((job.minibatch_slots for job in oasis.jobs), 0.001, 0.1)
    assert inside((job.worker["bandwidth_mbps"] for job in oasis.jobs), 100, 5000)
    assert inside((job.utility.priority for job in oasis.jobs), 1, 100)
    for job in oasis.jobs:
        assert oasis.most_workers(job) * (oasis.horizon - job.arrival) >= oasis.work_of(job)
    decays = np.array([job.utility.decay for job in oasis.jobs])
    assert inside([(decays == 0).sum()], 2, 22)
    assert inside([(decays >= 4).sum()], 20, 50)
    batchsched = generate("batchsched", "paper", 0, architecture="ring-allreduce")
    assert inside((job.weight for job in batchsched.jobs), 200, 5000)
    assert inside((s for job in batchsched.jobs for s in job.minibatch_slots), 0.001, 0.05)
    astraea = generate("astraea", "paper", 7)
    assert {int(n) for n in astraea.worker_count.ravel()} == {2, 8}
    assert (astraea.worker_quota > 0).all()
    assert inside((job.minibatch_slots for job in astraea.jobs), 0.0001, 0.005)
    assert inside((job.utility.slope for job in astraea.jobs), -2, -0.1)
    printed = generate("astraea", "paper", 7, minibatch_scale=1.0)
    assert printed.jobs[0].minibatch_slots == pytest.approx(10 * astraea.jobs[0].minibatch_slots)
    edgecloud = generate("edgecloud", "paper", 3, jobs=40)
    assert inside((job.epochs for job in edgecloud.jobs), 20, 60)
    assert inside((job.upload_slots["cloud"] for job in edgecloud.jobs), 10, 15)
    mlbroker = generate("mlbroker", "paper", 0)
    assert inside(mlbroker.unit_price[:, 0] * 2, 1.2, 9.6)
    assert inside(mlbroker.threshold[:, 0], 500, 600)
    assert np.array_equal(mlbroker.transfer_price, mlbroker.transfer_price.T)
    assert inside(mlbroker.data.sum(axis=2)[mlbroker.alive], 400 - 1e-6, 600 + 1e-6)
    gang = generate("gang", "paper", 0)
    assert set(gang.job_gpus.tolist()) == {1, 2, 4, 8}

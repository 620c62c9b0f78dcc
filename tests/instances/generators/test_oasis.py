"""The oasis generator: same bytes everywhere, the paper's ranges, and jobs that can finish."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hindsched.errors import InputError
from hindsched.instances.generators.sampling import Draws, arrival_slots, rounded
from hindsched.instances.io import parse_instance
from hindsched.instances.oasis import generator
from hindsched.instances.oasis.generator import PRESETS, SUITES, from_trace, generate
from hindsched.instances.oasis.trace import fit_steps
from hindsched.instances.traces.table import build_table

CHECKSUMS = {
    ("small", 0): "3f866a3321997bfcf370498c0945aa2611cf1737051e4fbf4105be66ebf55591",
    ("small", 7): "8b418f05b3d2136f1102a8e4b5356bfe104d446fcb30a892a267845a38e65dae",
    ("paper", 0): "bb6c655edf46e763957291f9858c5938383e99ec8098d6fad4185a3dc3e0a2da",
    ("testbed", 0): "37109fe4037ad3ea667ea1d1140901b53ba7bedc27fe7a23036ae4d3548c4885",
}


@pytest.mark.parametrize(("preset", "seed"), list(CHECKSUMS))
def test_a_seed_gives_the_same_bytes_everywhere(preset, seed):
    assert generate(preset, seed).sha256() == CHECKSUMS[preset, seed]


def test_draws_are_pinned():
    draws = Draws(1, "a", "b")
    assert [draws.integer(1, 6) for _ in range(8)] == [6, 6, 6, 2, 1, 6, 6, 5]
    assert draws.unit() == 0.9019386481289914
    assert draws.log_uniform(0.001, 0.1) == 0.0702672736788
    assert draws.normal() == 0.0917864942985
    assert draws.shuffled("abcdef") == ["f", "d", "c", "a", "b", "e"]
    assert Draws(1, "ab").word() != Draws(1, "a", "b").word()


def test_words_that_are_looked_at_are_drawn_afterwards():
    one, other = Draws(1, "a"), Draws(1, "a")
    one.word(), other.word()
    seen = one.ahead(100).tolist()
    assert one.ahead(3).tolist() == seen[:3]
    assert [other.word() for _ in range(100)] == seen
    one.skip(98)
    assert [one.word(), one.word()] == seen[98:]
    assert one.unit() == other.unit()


@pytest.mark.parametrize("settings", [{}, {"network": "random", "jobs": 30}, {"max_duration": 2}])
def test_jobs_that_are_skipped_as_too_long_are_those_that_are_drawn_in_vain(settings, monkeypatch):
    found = generate("small", 5, **settings)
    skipped, skip = [], generator._skip_long_jobs

    def noted(*arguments):
        skipped.append(skip(*arguments))
        return skipped[-1]

    monkeypatch.setattr(generator, "_skip_long_jobs", noted)
    assert generate("small", 5, **settings) == found
    assert sum(skipped) > 500
    monkeypatch.setattr(generator, "_skip_long_jobs", lambda *_: 0)
    assert generate("small", 5, **settings) == found


def test_no_job_is_drawn_after_the_last_try(monkeypatch):
    """A step of many draws may reach the limit: what comes then is not looked at."""
    monkeypatch.setattr(generator, "MOST_TRIES", 100)

    def drawn(seed):
        try:
            return generate("small", seed, jobs=1, servers=50).sha256()
        except InputError as error:
            return str(error)

    found = [drawn(seed) for seed in range(40)]
    monkeypatch.setattr(generator, "_skip_long_jobs", lambda *_: 0)
    assert [drawn(seed) for seed in range(40)] == found
    assert 0 < sum("can finish" in each for each in found) < 40


def test_draws_have_the_right_shape():
    draws = Draws(0)
    units = [draws.unit() for _ in range(4000)]
    assert np.mean(units) == pytest.approx(0.5, abs=0.02)
    assert min(units) >= 0
    assert max(units) < 1
    normals = [draws.normal(2, 3) for _ in range(4000)]
    assert np.mean(normals) == pytest.approx(2, abs=0.2)
    assert np.std(normals) == pytest.approx(3, abs=0.15)
    assert np.mean([draws.exponential(5) for _ in range(4000)]) == pytest.approx(5, abs=0.3)
    assert np.bincount([draws.integer(0, 2) for _ in range(3000)]) == pytest.approx(1000, abs=100)
    chosen = [draws.choice("ab", [1, 3]) for _ in range(2000)]
    assert chosen.count("b") == pytest.approx(1500, abs=80)
    assert sorted(draws.sample(range(9), 9)) == list(range(9))
    assert rounded(1 / 3) == 0.333333333333
    slots = arrival_slots(draws, 500, 48)
    assert slots == sorted(slots)
    assert min(slots) >= 1
    assert max(slots) <= 48


def test_paper_settings_are_kept():
    instance = generate("paper", 3)
    assert len(instance.jobs) == 100
    assert instance.worker_capacity.shape == instance.ps_capacity.shape == (50, 5)
    assert (instance.min_duration <= 15).all()
    for job in instance.jobs:
        assert 50 <= job.epochs <= 200
        assert 5 <= job.chunks <= 100
        assert 10 <= job.minibatches <= 100
        assert 0.001 <= job.minibatch_slots <= 0.1
        assert 30 <= job.gradient_mb <= 575
        assert 0 <= job.worker["gpu"] <= 4
        assert type(job.worker["bandwidth_mbps"]) is int
        assert 100 <= job.worker["bandwidth_mbps"] <= 5000 <= job.ps["bandwidth_mbps"] <= 20000
        assert 1 <= job.utility.priority <= 100
        assert 1 <= job.utility.target <= 15
        slots = instance.horizon - job.arrival
        assert instance.most_workers(job) * slots >= instance.work_of(job)
    decays = np.array([job.utility.decay for job in instance.jobs])
    assert 2 <= (decays == 0).sum() <= 22
    assert 20 <= (decays >= 4).sum() <= 50


def test_settings_change_what_they_say():
    assert (generate("small", 0, max_duration=2).min_duration <= 2).all()
    assert len(generate("small", 0, jobs=3).jobs) == 3
    assert generate("small", 0, servers=2).ps_capacity.shape[0] == 2
    mbps = generate("small", 0, network="random", servers=9).worker_capacity[:, 4]
    assert len(set(mbps)) == 9
    high = generate("small", 0, priority=[90, 100])
    assert min(job.utility.priority for job in high.jobs) >= 90
    critical = generate("small", 0, shares=[0, 0, 1])
    assert min(job.utility.decay for job in critical.jobs) >= 4


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("priority", [5, 1]),
        ("priority", ["a", "b"]),
        ("priority", [0, 0]),
        ("shares", [0, 0, 0]),
        ("shares", [1, "a", 2]),
        ("jobs", 0),
        ("servers", 1.5),
        ("network", "ring"),
        ("priority", [1]),
        ("shares", 3),
        ("colour", 1),
    ],
)
def test_bad_settings_are_one_line_errors(setting, value):
    with pytest.raises(InputError, match=setting):
        generate("small", 0, **{setting: value})


def test_the_testbed_is_the_papers():
    instance = generate("testbed", 0)
    assert (instance.horizon, instance.slot_seconds, len(instance.jobs)) == (10, 1200, 12)
    assert instance.worker_capacity[:, 0].sum() == 4
    assert instance.worker_capacity.shape[0] + instance.ps_capacity.shape[0] == 9
    assert max(instance.arrival) <= 9


def test_suites_are_valid_and_contended_at_four_levels():
    suite = SUITES["small"]()
    assert len(suite) >= 8
    assert len({len(instance.worker_servers) for instance in suite}) == 4
    assert len({instance.name for instance in suite}) == len(suite)
    for instance in suite:
        assert parse_instance(instance.to_dict()) == instance
    assert set(PRESETS) == {"small", "paper", "testbed"}


def test_steps_are_fitted_by_a_falling_sigmoid():
    deadlines, values = (0.25, 0.5, 0.75, 1.0), (10.0, 8.0, 5.0, 2.0)
    priority, decay, target = fit_steps(deadlines, values)
    middles = np.array([0.125, 0.375, 0.625, 0.875])
    fitted = priority / (1 + np.exp(decay * (middles - target)))
    assert fitted == pytest.approx(values, abs=0.5)
    same = fit_steps(deadlines, (5.0, 5.0, 5.0, 5.0))
    flat = same[0] / (1 + np.exp(same[1] * (middles - same[2])))
    assert flat == pytest.approx([5] * 4, abs=0.1)


def made_up_table(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("made up")
    raw = pd.DataFrame(
        {
            "job": ["a", "b", "c", "d"],
            "part": "p",
            "submit_seconds": [100, 160, 400, 9000],
            "duration_seconds": [600.0, 1200.0, 60.0, 36000.0],
            "gpus": [2, 1, 4, 1],
            "value_kind": ["strict", "best-effort", "soft", ""],
            "deadlines_seconds": [(1200,), (), (60, 120, 180, 240), ()],
            "values": [(10.0,), (4.0,), (10.0, 8.0, 5.0, 2.0), ()],
        }
    )
    return build_table("made-up", path, raw)


def test_rows_of_a_trace_become_elastic_jobs(tmp_path):
    table = made_up_table(tmp_path)
    instance = from_trace(table, jobs=4, slot_seconds=60, horizon=200, servers=2)
    assert instance.arrival.tolist() == [1, 2, 6, 149]
    assert instance.work.tolist() == [20, 20, 4, 600]  # duration x GPUs in slots
    assert [job.chunks for job in instance.jobs] == [4, 2, 8, 2]
    strict, best_effort, soft, drawn = (job.utility for job in instance.jobs)
    assert (strict.priority, strict.decay, strict.target) == (10, 6, 20.5)
    assert (best_effort.priority, best_effort.decay) == (8, 0)
    assert soft.value(0) > soft.value(1) > soft.value(3) > 0
    assert 300 <= drawn.target <= 900
    assert instance.provenance["too_long_for_the_horizon"] == ["d"]
    assert instance.provenance["trace"] == "jobs.csv"
    assert instance.worker_capacity.shape[0] == 2
    again = from_trace(table, jobs=4, slot_seconds=60, horizon=200, servers=2)
    assert again.sha256() == instance.sha256()


def test_the_load_sets_the_number_of_servers(tmp_path):
    table = made_up_table(tmp_path)
    few = from_trace(table, jobs=3, load=8.0, gpus_per_server=1, slot_seconds=60, horizon=40)
    many = from_trace(table, jobs=3, load=0.5, gpus_per_server=1, slot_seconds=60, horizon=40)
    assert len(few.worker_servers) < len(many.worker_servers)
    gpu_slots = many.work.sum()
    offered = gpu_slots / (many.horizon * many.worker_capacity[:, 0].sum())
    assert 0.4 <= offered <= 0.75


@pytest.mark.parametrize("settings", [{"jobs": 9}, {"horizon": 3}, {"load": 0}, {"every": 0}])
def test_bad_trace_settings_are_one_line_errors(tmp_path, settings):
    with pytest.raises(InputError):
        from_trace(made_up_table(tmp_path), **{"jobs": 4, **settings})


@pytest.mark.parametrize(
    ("name", "file", "part"),
    [
        ("chronus", "chronus/trace_job_Philly_MIX2.csv.gz", None),
        ("elasticflow", "elasticflow/raw-traces.tar.gz", "cluster06"),
    ],
)
def test_real_traces_give_contended_instances(name, file, part):
    root = os.environ.get("HINDSCHED_TRACES")
    if root is None or not (Path(root) / file).exists():
        pytest.skip("real traces are absent: set HINDSCHED_TRACES to their folder")
    from hindsched.instances.traces.table import load_trace

    table = load_trace(Path(root) / file, name)
    instance = from_trace(table if part is None else table.part(part), jobs=60)
    assert len(instance.jobs) == 60
    capacity = instance.horizon * instance.worker_capacity[:, 0].sum()
    assert instance.work.sum() / capacity >= 2

"""Comparisons: tables from records worked by hand, and real runs."""

import math
import sys

import pytest

import hindsched as hs
from hindsched.analysis.compare import compare, ratio
from hindsched.analysis.comparison import Comparison
from hindsched.analysis.ratio import Interval
from hindsched.errors import InputError, SolveFailed
from tests.analysis import records


def test_a_deterministic_algorithm():
    comparison = Comparison([records.offline("a", 90.0, 120.0), records.online("a", "oasis", 60.0)])
    [item] = comparison.instances
    assert item.optimum.interval == Interval(90.0, 120.0)
    assert item.algorithm("oasis").ratio.interval == Interval(1.5, 2.0)
    assert item.algorithm("oasis").objective == 60.0
    data = item.to_dict()
    assert data["optimum"] == {
        "lower": 90.0,
        "upper": 120.0,
        "status": "feasible",
        "best": "offline",
        "proof": "certificate",
    }
    [row] = data["algorithms"]
    assert row["ratio"] == {"lower": 1.5, "upper": 2.0}
    assert row["difference"] == {"lower": 30.0, "upper": 60.0}


def test_the_ratio_of_a_randomised_algorithm_is_that_of_its_expected_objective():
    runs = [
        records.online("a", "fifo", value, seed=seed) for seed, value in enumerate((60.0, 30.0))
    ]
    [item] = Comparison([records.offline("a", 120.0, 120.0), *runs]).instances
    row = item.algorithm("fifo")
    assert row.objective == 45.0
    assert row.ratio.interval == Interval(120 / 45, 120 / 45)
    data = row.to_dict()
    assert data["spread"]["lower"] == {"lower": 2.0, "upper": 4.0}
    assert [seed["ratio"]["upper"] for seed in data["seeds"]] == [2.0, 4.0]
    assert data["difference"] == {"lower": 75.0, "upper": 75.0}


def test_a_seed_that_earns_nothing_counts():
    runs = [records.online("a", "fifo", value, seed=i) for i, value in enumerate((0.0, 30.0))]
    [item] = Comparison([records.offline("a", 120.0, 120.0), *runs]).instances
    row = item.algorithm("fifo")
    assert row.ratio.interval == Interval(8.0, 8.0)
    assert row.to_dict()["spread"]["upper"] == {"lower": 4.0, "upper": "inf"}


def test_a_failed_seed_leaves_no_ratio():
    runs = [records.online("a", "fifo", 30.0, seed=1), records.failed("a", "fifo")]
    [item] = Comparison([records.offline("a", 120.0, 120.0), *runs]).instances
    assert item.algorithm("fifo").ratio.reason == "1 of 2 runs failed"


def test_a_better_online_schedule_raises_the_optimum_for_all():
    comparison = Comparison(
        [
            records.offline("a", 40.0, 120.0),
            records.online("a", "oasis", 60.0),
            records.online("a", "fifo", 30.0),
        ]
    )
    [item] = comparison.instances
    assert item.optimum.best == "oasis"
    assert item.algorithm("fifo").ratio.interval == Interval(2.0, 4.0)
    assert item.algorithm("oasis").ratio.interval == Interval(1.0, 2.0)


def test_it_prints_as_a_table():
    comparison = Comparison([records.offline("a", 90.0, 120.0), records.online("a", "oasis", 60.0)])
    assert str(comparison).splitlines() == [
        "instance  algorithm  objective  ratio",
        "a         (offline)                       optimum in [90, 120]",
        "          oasis      60         [1.5, 2]",
    ]
    assert str(comparison.instances[0]) == str(comparison)


def test_a_baseline_outside_the_feasible_set_raises_nothing():
    comparison = Comparison(
        [
            records.offline("a", 40.0, 50.0),
            records.online("a", "srtf", 60.0, in_feasible_set=False),
        ]
    )
    [item] = comparison.instances
    assert item.optimum.interval == Interval(40.0, 50.0)
    assert item.contradiction is None
    [row] = item.to_dict()["algorithms"]
    assert row["ratio"] == {"lower": 40 / 60, "upper": 50 / 60}
    assert row["starred"] is True
    assert str(comparison).splitlines()[-1].startswith("* may do what the offline problem forbids")
    assert row["in_feasible_set"] is False
    assert row["reason"] == "may do what the offline problem forbids"
    assert row["difference"] == {"lower": -20.0, "upper": -10.0}


def test_a_contradiction_is_reported():
    comparison = Comparison([records.offline("a", 40.0, 50.0), records.online("a", "oasis", 60.0)])
    assert comparison.instances[0].optimum.status == "contradicted"
    assert "beyond the proven bound" in comparison.errors[0]


def test_a_failed_run_has_a_row_and_an_error():
    comparison = Comparison([records.offline("a", 40.0, 50.0), records.failed("a", "dorm")])
    assert comparison.errors == ["a: dorm: SolveFailed: stuck"]
    frame = comparison.to_frame()
    assert frame.loc[0, "error"] == "SolveFailed: stuck"
    assert math.isnan(frame["objective"].astype(float)[0])
    assert comparison.instances[0].algorithm("dorm").ratio.reason == "the run failed"


def test_summary_over_instances():
    comparison = Comparison(
        [
            records.offline("a", 100.0, 120.0),
            records.offline("b", 100.0, 100.0),
            records.offline("c", 100.0, 100.0),
            records.online("a", "oasis", 50.0),
            records.online("b", "oasis", 25.0),
            records.online("c", "oasis", 0.0),
        ]
    )
    assert comparison.summary_rows() == [
        {
            "family": "oasis",
            "algorithm": "oasis",
            "label": "oasis",
            "instances": 3,
            "median_lower": 4.0,
            "median_upper": 4.0,
            "mean_lower": math.inf,
            "mean_upper": math.inf,
            "worst_lower": math.inf,
            "worst_upper": math.inf,
            "sums_lower": 4.0,
            "sums_upper": pytest.approx(320 / 75),
            "infinite": 1,
            "without_ratio": 0,
            "starred": False,
            "rival": False,
            "foresight": False,
            "commitment": "",
        }
    ]
    optima = comparison.optima_frame()
    assert list(optima["lower"]) == [100.0, 100.0, 100.0]
    assert set(optima["proof"]) == {"certificate"}


@pytest.fixture(scope="module")
def instance():
    return hs.named_instance("oasis-t10-i10-h25-s0")


def test_real_runs(instance):
    comparison = compare(
        instance, ["oasis", "fifo"], seeds=2, method="bound", time_limit=2, progress=False
    )
    frame = comparison.to_frame()
    assert list(frame["algorithm"]) == ["oasis", "fifo", "fifo"]
    assert list(frame["seed"]) == [0, 0, 1]
    assert (frame["ratio_lower"] >= 1).all()
    assert (frame["ratio_upper"] >= frame["ratio_lower"]).all()
    # The optimum proven elsewhere, 182.359, lies in the interval.
    [item] = comparison.instances
    assert item.optimum.interval.lower <= 182.359 * (1 + 1e-4)
    assert item.optimum.interval.upper >= 182.359 * (1 - 1e-4)
    assert item.algorithm("oasis").theorem["kind"] == "ratio"
    assert item.algorithm("fifo").theorem is None
    assert set(comparison.job_frame()["algorithm"]) == {"oasis", "fifo"}
    assert (comparison.slot_frame()["used"] > 0).all()


def test_ratio_is_one_instance_of_compare(instance):
    found = ratio(instance, ["oasis"], method="bound", time_limit=2, progress=False)
    assert found.algorithm("oasis").ratio.exists
    assert len(found.to_frame()) == 1
    with pytest.raises(KeyError):
        found.algorithm("fifo")


def test_settings_reach_the_algorithms_that_have_them(instance):
    found = ratio(
        instance, ["oasis", "drf"], settings={"lower_floor": "0.1"}, method="bound",
        time_limit=1, progress=False,
    )  # fmt: skip
    assert found.algorithm("oasis").settings == {"lower_floor": "0.1"}
    assert found.algorithm("drf").settings == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"algorithms": ["nope"]}, "algorithm: nope: must be one of"),
        ({"settings": {"nope": 1}}, "set.nope: 1: the algorithms have the settings"),
        ({"method": "nope"}, "method: nope: must be one of"),
        ({"solver": "nope"}, "solver: nope: must be one of"),
        ({"colour": "blue"}, "colour: blue: must be an option"),
        ({"seeds": 0}, "seeds: 0: must be at least 1"),
        ({"time_limit": -1}, "time_limit: -1: must be a number of seconds"),
    ],
)
def test_bad_input_is_found_before_anything_runs(instance, arguments, message):
    with pytest.raises(InputError, match=message):
        compare(instance, **arguments)


def test_two_instances_of_one_name(instance):
    with pytest.raises(InputError, match="names must be unique"):
        compare([instance, instance])


def test_a_failed_offline_solve_is_no_ratio(instance, monkeypatch):
    def breaks(*args, **kwargs):
        raise SolveFailed("it broke")

    monkeypatch.setattr("hindsched.solvers.door.api.solve", breaks)
    with pytest.raises(SolveFailed, match="it broke"):
        ratio(instance, ["oasis"], progress=False)


def test_the_bar_goes_to_standard_error(instance, capsys):
    compare(instance, ["oasis"], method="bound", time_limit=0.5)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "comparing: 2/2" in captured.err
    assert sys.stdout is not None

"""Comparisons of records that are worked by hand: ratios, summaries, paired tests."""

import math

import pytest

from hindsched.analysis import statistics
from hindsched.analysis.comparison import Comparison
from hindsched.analysis.ratio import Bounds
from tests.analysis import records


def test_a_deterministic_algorithm():
    comparison = Comparison([records.offline("a", 90.0, 120.0), records.online("a", "oasis", 60.0)])
    [item] = comparison.instances
    assert item.optimum.interval == Bounds(90.0, 120.0)
    assert item.algorithm("oasis").ratio.interval == Bounds(1.5, 2.0)
    assert item.algorithm("oasis").objective == 60.0
    data = item.to_dict()
    assert (data["optimum"]["lower"], data["optimum"]["upper"]) == (90.0, 120.0)
    assert (data["optimum"]["best"], data["optimum"]["proof"]) == ("offline", "certificate")
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
    assert row.ratio.interval == Bounds(120 / 45, 120 / 45)
    data = row.to_dict()
    assert data["spread"]["lower"] == {"lower": 2.0, "upper": 4.0}
    assert [seed["ratio"]["upper"] for seed in data["seeds"]] == [2.0, 4.0]
    assert data["difference"] == {"lower": 75.0, "upper": 75.0}


def test_a_failed_seed_leaves_no_ratio():
    runs = [records.online("a", "fifo", 30.0, seed=1), records.failed("a", "fifo")]
    [item] = Comparison([records.offline("a", 120.0, 120.0), *runs]).instances
    assert item.algorithm("fifo").ratio.reason == "1 of 2 runs failed"


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
    assert item.optimum.interval == Bounds(40.0, 50.0)
    assert item.contradiction is None
    [row] = item.to_dict()["algorithms"]
    assert row["ratio"] == {"lower": 40 / 60, "upper": 50 / 60}
    assert row["starred"] is True
    assert str(comparison).splitlines()[-1].startswith("* may do what the offline problem forbids")
    assert row["in_feasible_set"] is False
    assert row["reason"] == "may do what the offline problem forbids"
    assert row["difference"] == {"lower": -20.0, "upper": -10.0}


def test_who_has_no_record_on_an_instance_is_not_ahead():
    """As where the record of a leader was damaged, and is left out."""
    every = [records.offline(name, 120.0, 120.0) for name in "ab"]
    every += [records.online(name, "oasis", 60.0) for name in "ab"]
    every.append(records.online("a", "fifo", 70.0))
    [verdict] = Comparison(every).verdicts()
    assert not verdict.is_ahead
    assert [summary.algorithm for summary in verdict.ranking] == ["fifo", "oasis"]


def test_a_contradiction_is_reported():
    comparison = Comparison([records.offline("a", 40.0, 50.0), records.online("a", "oasis", 60.0)])
    assert comparison.instances[0].optimum.status == "contradicted"
    assert "beyond the proven bound" in comparison.errors[0]


def test_a_run_without_a_ratio_says_why():
    failed = {**records.online("a", "oasis", 1.0), "status": "failed", "error": "took over 10 s"}
    failed |= {"objective": None}
    [row] = Comparison([records.offline("a", 100.0, 120.0), failed]).summaries
    assert row.note == "no ratio on 1 (took over 10 s)"


def test_summary_over_instances():
    comparison = Comparison(
        [
            records.offline("a", 100.0, 120.0),
            records.offline("b", 100.0, 100.0),
            records.offline("c", 100.0, 100.0),
            *[records.online(name, "oasis", v) for name, v in zip("abc", (50, 25, 0), strict=True)],
        ]
    )
    [row] = comparison.summaries
    assert row.median == Bounds(4.0, 4.0)
    assert row.worst.upper == math.inf
    assert (row.instances, row.infinite, row.without_ratio) == (3, 1, 0)
    assert list(comparison.optima_frame()["lower"]) == [100.0, 100.0, 100.0]


def compared(own, rival, sense="max"):
    """Algorithms ``oasis`` and ``fifo`` with one objective an instance."""
    rows = []
    for index, values in enumerate(zip(own, rival, strict=True)):
        ends = (100.0, 100.0) if sense == "max" else (1.0, 1.0)
        rows.append(records.offline(f"i{index}", *ends, sense=sense, status="optimal"))
        for name, value in zip(("oasis", "fifo"), values, strict=True):
            rows.append(records.online(f"i{index}", name, value, sense=sense))
    return Comparison(rows)


def test_always_twice_as_good():
    [row] = (
        compared([20.0, 40.0, 60.0, 8.0], [10.0, 20.0, 30.0, 4.0]).paired_frame().to_dict("records")
    )
    assert (row["algorithm"], row["rival"], row["instances"]) == ("oasis", "fifo", 4)
    assert (row["better"], row["worse"], row["ties"]) == (4, 0, 0)
    for name in ("advantage", "advantage_lower", "advantage_upper"):
        assert row[name] == pytest.approx(2.0)
    assert row["wilcoxon_p"] == pytest.approx(0.125)


def test_holm_corrects_for_all_pairs():
    """Worked by hand: 0.01 * 3, then at least that and 0.03 * 2, then at least that and 0.04."""
    assert statistics.holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert statistics.holm([0.7, 0.6]) == [1.0, 1.0]


def test_who_is_better_than_whom():
    """Twelve instances tell two apart, but not one that is now better, now worse."""
    every = []
    for place in range(12):
        name = f"i{place:02d}"
        every.append(records.offline(name, 120.0, 120.0))
        every.append(records.online(name, "oasis", 100.0 + place))
        every.append(records.online(name, "fifo", 50.0 + place))
        every.append(records.online(name, "drf", 75.0 + place + 40 * (-1) ** place))
    comparison = Comparison(every)
    frame = comparison.paired_frame().set_index(["algorithm", "rival"])
    assert frame.loc[("oasis", "fifo"), "wilcoxon_p"] == pytest.approx(2 / 4096)
    assert frame.loc[("oasis", "fifo"), "holm_p"] == pytest.approx(6 / 4096)
    assert frame["winner"].tolist() == ["oasis", "", ""]
    assert comparison.standing_rows("oasis") == [
        {"algorithm": "oasis", "better than": "fifo", "worse than": "", "not told apart from": 1},
        {"algorithm": "drf", "better than": "", "worse than": "", "not told apart from": 2},
        {"algorithm": "fifo", "better than": "", "worse than": "oasis", "not told apart from": 1},
    ]

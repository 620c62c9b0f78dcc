"""Paired comparisons and performance profiles, against numbers worked by hand."""

import math

import pytest

from hindsched.analysis.comparison import Comparison
from hindsched.errors import InputError
from tests.analysis import records


def comparison(own, rival, sense="max"):
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
        comparison([20.0, 40.0, 60.0, 8.0], [10.0, 20.0, 30.0, 4.0])
        .paired_frame()
        .to_dict("records")
    )
    assert (row["algorithm"], row["rival"], row["instances"]) == ("oasis", "fifo", 4)
    assert (row["better"], row["worse"], row["ties"]) == (4, 0, 0)
    for name in ("advantage", "advantage_lower", "advantage_upper"):
        assert row[name] == pytest.approx(2.0)
    assert row["sign_p"] == pytest.approx(2 / 2**4)
    assert row["wilcoxon_p"] == pytest.approx(0.125)


def test_smaller_is_better_when_minimising():
    [row] = comparison([2.0, 4.0], [4.0, 4.0], "min").paired_frame().to_dict("records")
    assert (row["better"], row["worse"], row["ties"]) == (1, 0, 1)
    assert row["advantage"] == pytest.approx(math.sqrt(2))


def test_equal_algorithms_have_no_test():
    [row] = comparison([3.0, 4.0], [3.0, 4.0]).paired_frame().to_dict("records")
    assert row["ties"] == 2
    assert row["advantage"] == 1.0
    assert row["sign_p"] is None


def test_who_earns_nothing_is_worse_but_has_no_factor():
    [row] = comparison([5.0, 5.0], [0.0, 5.0]).paired_frame().to_dict("records")
    assert (row["better"], row["ties"]) == (1, 1)
    assert row["advantage"] is None


def test_profiles_rise_to_one_and_start_at_the_share_of_wins():
    frame = comparison([10.0, 10.0, 10.0, 0.0], [5.0, 10.0, 20.0, 1.0]).profile_frame()
    ends = frame.groupby("algorithm")["share"].agg(["first", "last"])
    assert ends.loc["oasis"].tolist() == [0.5, 0.75]
    assert ends.loc["fifo"].tolist() == [0.75, 1.0]
    at_two = frame[frame["factor"] >= 2.0 - 1e-9].groupby("algorithm")["share"].first()
    assert at_two.tolist() == [1.0, 0.75]
    assert (frame.groupby("algorithm")["share"].diff().dropna() >= 0).all()


def test_below_zero_is_worse_than_nothing():
    found = comparison([12.0, 0.0, -1.0, -2.0], [-1.0, -3.0, -1.0, -1.0])
    [row] = found.paired_frame().to_dict("records")
    assert (row["better"], row["worse"], row["ties"]) == (2, 1, 1)
    assert row["advantage"] is None
    ends = found.profile_frame().groupby("algorithm")["share"].last()
    assert ends.to_dict() == {"oasis": 0.5, "fifo": 0.0}


def test_where_nobody_earns_anything_all_are_the_best():
    frame = comparison([0.0, 10.0], [0.0, 5.0]).profile_frame()
    assert frame.groupby("algorithm")["share"].first().to_dict() == {"oasis": 1.0, "fifo": 0.5}
    one = Comparison(
        [
            records.offline("i0", 10.0, 10.0, status="optimal"),
            records.online("i0", "oasis", 0.0),
            records.failed("i0", "fifo"),
        ]
    ).profile_frame()
    assert one.groupby("algorithm")["share"].last().to_dict() == {"oasis": 1.0, "fifo": 0.0}


def test_the_summary_counts_infinite_ratios_apart_and_says_its_level():
    found = comparison([50.0, 25.0, 0.0], [100.0, 100.0, 100.0])
    frame = found.summary_frame(confidence=0.9).set_index("algorithm")
    ours = frame.loc["oasis"]
    assert (ours["mean"], ours["median"], ours["worst"]) == (3.0, 3.0, 4.0)
    assert 2.0 <= ours["mean_lower"] <= 3.0 <= ours["mean_upper"] <= 4.0
    assert (ours["infinite"], ours["without_ratio"], ours["level"]) == (1, 0, 0.9)
    assert frame.loc["fifo", ["mean_lower", "mean_upper"]].tolist() == [1.0, 1.0]
    assert not frame["starred"].any()
    assert set(found.paired_frame()["level"]) == {0.95}
    with pytest.raises(InputError, match="confidence: 2"):
        found.summary_frame(confidence=2)

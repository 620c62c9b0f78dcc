"""Worst cases that theory knows, found again; controls on which nothing may be found."""

from pathlib import Path

import pytest

import hindsched as hs

LONGEST_FIRST = (
    Path(__file__).parents[3] / "examples/schedulers/longest_first.py:LongestFirst"
).as_posix()
WITHIN = 0.99


@pytest.mark.parametrize("gpus", [2, 3, 4])
def test_list_order_is_2_minus_1_over_m_from_gadgets(gpus):
    supremum = 2 - 1 / gpus
    found = hs.worst(
        "gang", "fifo", preset="machines", ranges={"gpus": gpus}, starts=["gadgets"],
        work_limit=60, target=WITHIN * supremum, shrink=False,
    )  # fmt: skip
    assert WITHIN * supremum <= found.proven <= supremum + 1e-9
    assert found.optimum.is_proven


@pytest.mark.parametrize("gpus", [2, 3])
def test_longest_first_is_4_thirds_minus_1_over_3m_from_gadgets(gpus):
    supremum = 4 / 3 - 1 / (3 * gpus)
    found = hs.worst(
        "gang", LONGEST_FIRST, preset="machines", ranges={"gpus": gpus}, starts=["gadgets"],
        work_limit=60, target=WITHIN * supremum, shrink=False,
    )  # fmt: skip
    assert WITHIN * supremum <= found.proven <= supremum + 1e-9


@pytest.mark.parametrize("jobs", [3, 10])
def test_first_in_first_out_is_n_times_worse_with_n_jobs(jobs):
    found = hs.worst(
        "gang", "fifo", preset="one-gpu", ranges={"jobs": [1, jobs]}, starts=["gadgets"],
        work_limit=40, target=WITHIN * jobs, shrink=False,
    )  # fmt: skip
    assert WITHIN * jobs <= found.proven <= jobs


@pytest.mark.parametrize(
    ("algorithm", "formulation", "ranges"),
    [("srtf", "preemptive", {"jobs": [1, 4]}), ("wspt", None, {"jobs": [1, 4], "submit": 0})],
)
def test_nothing_is_found_against_optimal_rules(algorithm, formulation, ranges):
    found = hs.worst(
        "gang", algorithm, preset="one-gpu", ranges=ranges, formulation=formulation,
        work_limit=40, shrink=False,
    )  # fmt: skip
    assert found.proven == 1
    assert found.search["evaluations"] == 40


def test_smiths_rule_on_many_gpus_is_a_seventh_above_the_optimum():
    found = hs.worst(
        "gang", "wspt", preset="smith", ranges={"gpus": 12, "jobs": 60}, starts=["gadgets"],
        work_limit=60, target=1.15, shrink=False,
    )  # fmt: skip
    assert found.proven >= 1.15


@pytest.mark.parametrize(
    ("algorithm", "preset", "ranges", "supremum", "work"),
    [
        ("fifo", "machines", {"gpus": 3}, 5 / 3, 3_000),
        ("fifo", "machines", {"gpus": 4}, 7 / 4, 3_000),
        ("fifo", "one-gpu", {"jobs": [1, 5]}, 5, 2_000),
        (LONGEST_FIRST, "machines", {"gpus": 2}, 7 / 6, 3_000),
    ],
)
def test_the_supremum_is_found_from_random_starts(algorithm, preset, ranges, supremum, work):
    found = hs.worst(
        "gang", algorithm, preset=preset, ranges=ranges, starts=["random"], work_limit=work,
        target=WITHIN * supremum, shrink=False,
    )  # fmt: skip
    assert WITHIN * supremum <= found.proven <= supremum + 1e-9

"""The tables of one core and two are made of all pairs that were kept, case by case."""

from __future__ import annotations

from tests.scripts import ROOT, script

threads = script("threads")


def pair(instance, seconds, one, case="gang"):
    return {"case": case, "instance": instance, "limit": 30.0, "seconds": seconds,
            "one": one, "two": 0.04}  # fmt: skip


def paced(instance, limit, one, sooner, moves):
    return {"case": "batchsched-crowded", "instance": instance, "limit": limit, "one": one,
            "sooner": sooner, "moves": moves}  # fmt: skip


def counted(instance, one, two):
    return {"case": "batchsched-crowded", "instance": instance, "limit": 0.0, "moves_given": 4000,
            "one": one, "two": two}  # fmt: skip


def test_the_last_pair_of_an_instance_counts(tmp_path):
    threads.keep(tmp_path, pair("s1", [30.0, 10.0], 0.06))
    threads.keep(tmp_path, pair("s0", [9.0, 9.0], 0.01))
    threads.keep(tmp_path, pair("s0", [8.0, 4.0], 0.02, "oasis-t10"))
    kept = threads.keep(tmp_path, pair("s0", [30.0, 15.0], 0.08))
    assert kept == threads.keep(tmp_path)
    lines = threads.tables(kept)
    assert lines[2] == "`gang`, limit 30 s."
    assert lines[6:8] == [
        "| s0 | 30.0 | 15.0 | 2.00 | 8.00% | 4.00% |",
        "| s1 | 30.0 | 10.0 | 3.00 | 6.00% | 4.00% |",
    ]
    assert lines[8] == "| median | | | 2.50 | 7.00% | 4.00% |"
    assert lines[11] == "`oasis-t10`, limit 30 s."
    assert lines[15] == "| s0 | 8.0 | 4.0 | 2.00 | 2.00% | 4.00% |"
    assert threads.MARK in (ROOT / threads.PAGE).read_text(encoding="utf-8")


def test_a_paced_search_is_compared_at_its_ends_and_by_its_moves(tmp_path):
    threads.keep(tmp_path, paced("s0", 30.0, 0.05, 0.05, [1000, 900]))
    threads.keep(
        tmp_path,
        paced("s0", 30.0, 0.05, 0.06, [1000, 1100]),
        paced("s0", 15.0, 0.08, 0.07, [500, 600]),
        paced("s1", 15.0, 0.06, 0.06, [500, 650]),
    )
    kept = threads.keep(tmp_path, counted("s0", 0.05, 0.06), counted("s1", 0.07, 0.07))
    lines = threads.tables(kept)
    assert lines[6:9] == [
        "| s0 | 15 s | 8.00% | 7.00% | 500 | 600 | 1.20 |",
        "| s1 | 15 s | 6.00% | 6.00% | 500 | 650 | 1.30 |",
        "| s0 | 30 s | 5.00% | 6.00% | 1,000 | 1,100 | 1.10 |",
    ]
    assert lines[9:12] == [
        "| mean, median ratio | 15 s | 7.00% | 6.50% | | | 1.25 |",
        "| mean, median ratio | 30 s | 5.00% | 6.00% | | | 1.10 |",
        "| mean, median ratio | all | 6.33% | 6.33% | | | 1.20 |",
    ]
    assert lines[13] == (
        "On 3 pairs the gap of two cores in 1/1.6 of the time less that of one core is"
        " 0.00 ± 0.58 points in the mean; in that time they try 1.20 times the moves (median), in"
        " the same time 1.92 times."
    )
    assert lines[15] == (
        "After 4,000 moves, whatever time they take, the mean gap of 2 instances is 6.00% with one"
        " thread and 6.50% with two: 0.50 ± 0.50 points more."
    )

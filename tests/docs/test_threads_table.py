"""The table of one core and two is made of all pairs that were kept, case by case."""

from __future__ import annotations

from tests.scripts import ROOT, script

threads = script("threads")


def pair(instance, seconds, one, sooner, case="batchsched-crowded"):
    found = {"case": case, "instance": instance, "limit": 30.0, "seconds": seconds,
             "one": one, "two": 0.04}  # fmt: skip
    return found if sooner is None else found | {"sooner": sooner, "moves": [1000.0, 1900.0]}


def test_the_last_pair_of_an_instance_counts_and_both_measures_are_said(tmp_path):
    threads.keep(tmp_path, pair("s1", [30.0, 10.0], 0.06, 0.05))
    threads.keep(tmp_path, pair("s0", [9.0, 9.0], 0.01, 0.01))
    threads.keep(tmp_path, pair("s0", [8.0, 4.0], 0.02, None, "gang"))
    kept = threads.keep(tmp_path, pair("s0", [30.0, 15.0], 0.08, 0.09))
    assert kept == threads.keep(tmp_path)
    lines = threads.tables(kept)
    assert lines[2] == "`batchsched-crowded`, limit 30 s."
    assert lines[6:8] == [
        "| s0 | 30.0 | 15.0 | 2.00 | 8.00% | 4.00% | 9.00% | 1,000 | 1,900 |",
        "| s1 | 30.0 | 10.0 | 3.00 | 6.00% | 4.00% | 5.00% | 1,000 | 1,900 |",
    ]
    assert lines[8] == "| median | | | 2.50 | 7.00% | 4.00% | 7.00% | 1,000 | 1,900 |"
    assert lines[11] == "In less time two cores end with the smaller gap on 1 of 2."
    assert lines[13] == "`gang`, limit 30 s."
    assert lines[17] == "| s0 | 8.0 | 4.0 | 2.00 | 2.00% | 4.00% |"
    assert threads.MARK in (ROOT / threads.PAGE).read_text(encoding="utf-8")

"""The table of one core and two is made of all pairs that were kept, in the order of seeds."""

from __future__ import annotations

from tests.scripts import ROOT, script

threads = script("threads")


def pair(seed, seconds, one, sooner):
    return {"case": "crowded", "seed": seed, "limit": 30.0, "seconds": seconds,
            "one": one, "sooner": sooner, "two": 0.04}  # fmt: skip


def test_the_last_pair_of_a_seed_counts_and_both_measures_are_said(tmp_path):
    threads.keep(tmp_path, pair(1, [30.0, 10.0], 0.06, 0.05))
    threads.keep(tmp_path, pair(0, [9.0, 9.0], 0.01, 0.01))
    kept = threads.keep(tmp_path, pair(0, [30.0, 15.0], 0.08, 0.09))
    assert kept == threads.keep(tmp_path)
    lines = threads.table(kept)
    assert lines[4:6] == [
        "| crowded, seed 0 | 30.0 | 15.0 | 2.00 | 8.00% | 9.00% | 4.00% |",
        "| crowded, seed 1 | 30.0 | 10.0 | 3.00 | 6.00% | 5.00% | 4.00% |",
    ]
    assert lines[6] == "| median | | | 2.50 | 7.00% | 7.00% | 4.00% |"
    assert lines[-1] == "In less time two cores end with the smaller gap on 1 of 2."
    assert threads.MARK in (ROOT / threads.PAGE).read_text(encoding="utf-8")

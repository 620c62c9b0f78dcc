"""The sentence says no more than what is proven: ends are rounded outward."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hindsched.analysis.gang.verdict import Verdict, factor, seconds


def test_sentences() -> None:
    verdict = Verdict("mean-jct", 51_045.95, 49_800.4, 50_899.2)
    assert verdict.sentence() == (
        "Your scheduler's mean JCT is 51,046 s; the best possible lies between 49,800 and "
        "50,900 s: you are within [1.002, 1.026] of optimal."
    )
    assert Verdict("mean-jct", 100.0, 100.0, 100.0).sentence() == (
        "Your scheduler's mean JCT is 100.0 s: that is optimal (no schedule can be below 100.0 s)."
    )
    assert Verdict("mean-jct", 5.0, 10.0, 10.0).sentence() == (
        "Your scheduler's mean JCT is 5.000 s; no schedule can be below 10.00 s."
    )
    assert Verdict("mean-jct", 150.0, 100.0, 100.0).sentence() == (
        "Your scheduler's mean JCT is 150.0 s; the best possible is 100.0 s: you take 1.500 times "
        "that."
    )
    assert (
        "no bound on the best possible is known" in Verdict("makespan", 9.0, None, 9.0).sentence()
    )
    assert "weighted mean JCT" in Verdict("mean-jct", 9.0, 1.0, 9.0, weighted=True).sentence()


def test_numbers_of_numpy_are_numbers() -> None:
    plain, numpy = (
        Verdict("makespan", 9.0, 8.5, 9.0),
        Verdict("makespan", 9.0, np.float64(8.5), 9.0),
    )
    assert numpy.sentence() == plain.sentence()


def test_deadlines() -> None:
    met = Verdict("deadlines-met", 79.0, 94.0, 100.0, out_of=100.0)
    assert met.sentence() == (
        "Your scheduler met 79 of 100 deadlines; the best possible meets between 94 and 100."
    )
    assert met.ratio == (94 / 79, 100 / 79)
    assert (
        Verdict("deadlines-met", 9.0, 9.0, 9.0, out_of=10.0)
        .sentence()
        .endswith("nobody could have met more.")
    )
    assert Verdict("deadlines-met", 0.0, 0.0, 5.0, out_of=5.0).ratio == (1.0, None)


@given(st.floats(1e-3, 1e9), st.sampled_from([-1, 1]))
def test_ends_are_rounded_outward(value: float, outward: int) -> None:
    for text in (seconds(value, outward), factor(value, outward)):
        shown = float(text.replace(",", ""))
        assert shown <= value if outward < 0 else shown >= value
        assert abs(shown - value) <= max(1.0, 1e-2 * value) if value >= 1 else True

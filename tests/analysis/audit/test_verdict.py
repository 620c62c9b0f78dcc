"""The sentence says no more than what is proven: ends are rounded outward."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.analysis.audit.gang.verdict import Verdict, seconds
from hindsched.analysis.interval import Interval


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (
            Verdict("mean-jct", 51_045.95, Interval(np.float64(49_800.4), 50_899.2)),
            "Your scheduler's mean JCT is 51,046 s; the best possible lies between 49,800 and "
            "50,900 s: you are within [1.002, 1.026] of optimal.",
        ),
        (
            Verdict("mean-jct", 100.0, Interval(100.0, 100.0)),
            "Your scheduler's mean JCT is 100.0 s: that is optimal (no schedule can be below "
            "100.0 s).",
        ),
        (
            Verdict("mean-jct", 5.0, Interval(10.0, 10.0)),
            "Your scheduler's mean JCT is 5.000 s; no schedule can be below 10.00 s.",
        ),
        (
            Verdict("mean-jct", 150.0, Interval(100.0, 100.0), weighted=True),
            "Your scheduler's weighted mean JCT is 150.0 s; the best possible is 100.0 s: you take "
            "1.5 times that.",
        ),
        (
            Verdict("makespan", 9.0, Interval(8.0, None)),
            "Your scheduler's makespan is 9.000 s; the best possible lies between 8.000 and it: "
            "you are within [?, 1.125] of optimal.",
        ),
        (
            Verdict("deadlines-met", 79.0, Interval(94.0, 100.0), out_of=100.0),
            "Your scheduler met 79 of 100 deadlines; the best possible meets between 94 and 100.",
        ),
        (
            Verdict("deadlines-met", 9.0, Interval(9.0, 9.0), out_of=10.0),
            "Your scheduler met 9 of 10 deadlines: nobody could have met more.",
        ),
    ],
)
def test_sentences(verdict: Verdict, sentence: str) -> None:
    assert verdict.sentence() == sentence


@given(st.floats(1e-3, 1e9), st.sampled_from([-1, 1]))
def test_ends_are_rounded_outward(value: float, outward: int) -> None:
    shown = float(seconds(value, outward).replace(",", ""))
    assert shown <= value if outward < 0 else shown >= value
    assert abs(shown - value) <= max(1.0, 1e-2 * value)

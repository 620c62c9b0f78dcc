"""Marks behind names in summaries: what an algorithm knows more than others stays in sight."""

from __future__ import annotations

import hindsched as hs
from hindsched.analysis.summary import _common_mark


def test_marks_stand_in_the_summary_and_the_verdict() -> None:
    instances = [hs.generate("mlbroker", preset="small", seed=seed) for seed in (1, 2)]
    comparison = hs.compare(
        instances, ["receding-horizon", "local"], method="relaxation", seeds=1, progress=False
    )
    labels = {row["algorithm"]: row["label"] for row in comparison.summary_rows()}
    assert labels == {"receding-horizon": "receding-horizon (forecasts)", "local": "local"}
    assert "receding-horizon (forecasts)" in comparison._repr_html_()


def test_a_mark_that_differs_in_a_detail_keeps_what_is_common() -> None:
    assert _common_mark(["", " (forecasts)", " (forecasts)"]) == " (forecasts)"
    assert _common_mark([" (best gangs: half)", " (best gangs: ideal)"]) == " (best gangs)"
    assert _common_mark(["", ""]) == ""

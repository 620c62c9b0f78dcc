"""Audits: the interval holds the truth, files can be checked, and what is impossible is said."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hindsched as hs
from hindsched.analysis.audit.gang.verdict import AuditVerdict
from hindsched.analysis.audit.gang.words import seconds, span_text
from hindsched.analysis.bounds import Bounds
from hindsched.cli.app import run
from hindsched.errors import InputError

EXAMPLES = Path(str(files("hindsched.instances.traces") / "examples"))
LOG = pd.DataFrame(
    {"job": ["=a", "b", "c"], "submit": 0, "start": [0, 60, 90], "end": [60, 90, 100], "gpus": 2}
)


def test_a_frame_is_judged() -> None:
    found = hs.audit(LOG, gpus=2, time_limit=2)
    assert found.is_possible
    assert found.verdict.value == pytest.approx((60 + 90 + 100) / 3)
    assert found.verdict.best.is_point
    assert found.verdict.best.upper == 50.0  # 10, 40, 100
    assert found.best is not None
    assert found.best.name == "best found"
    frame = found.to_frame()
    assert frame["scheduler"].tolist()[0] == "log"
    assert (frame["ratio_lower"] >= 1).all()
    assert found.jobs()["job"].tolist() == ["=a", "b", "c"]
    assert "the best possible is 50 s: you take 1.667 times that" in found.sentence()


def test_the_gap_names_jobs_and_hours() -> None:
    late = pd.DataFrame(
        {"job": ["a", "b"], "submit": [0, 0], "start": [0, 7200], "end": [3600, 7300], "gpus": 1}
    )
    found = hs.audit(late, gpus=2, time_limit=2)
    gap = found.gap
    assert gap is not None
    assert gap.jobs[["job", "later"]].values.tolist() == [["b", 7200], ["a", 0]]
    # One GPU idle for the waiting job in each of the two hours; the second one is not wanted.
    assert gap.hours[["begin", "end", "idle"]].values.tolist() == [
        ["0", "3600", 3600],
        ["3600", "7200", 3600],
    ]
    assert gap.sentence().startswith(
        "1 of 2 jobs ends later than in the best schedule found. 7,200"
    )
    assert hs.audit(late.assign(start=0, end=[3600, 100]), gpus=2, time_limit=2).gap is None


def test_what_is_impossible_counts_for_nothing() -> None:
    doubled = LOG.assign(start=[0, 10, 20], end=[60, 40, 30])
    found = hs.audit(doubled, gpus=2, time_limit=2)
    assert not found.is_possible
    assert found.sentence().startswith("This schedule is impossible: more GPUs held than there are")
    assert found.best is not None
    assert found.best.name != "log"
    # It ends before anybody could, which proves it impossible by itself.
    assert "better than the best possible" in found.sentence()


def test_a_log_known_by_completions_can_beat_the_bound() -> None:
    hidden = LOG.assign(start=0, end=[30, 30, 30], duration=[20, 20, 20])
    found = hs.audit(hidden, gpus=2, time_limit=2)
    assert found.formulation == "preemptive"
    assert found.breaches.counts == {"better than possible": 1}
    assert "capacity cannot be checked slot by slot" in " ".join(found.remarks)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"objective": "speed"}, "objective: speed: must be one of mean-jct"),
        ({"objective": "deadlines-met"}, "no job of the log has a deadline"),
        ({"policies": ["fifa"]}, "policy: fifa: must be one of fifo"),
        ({"formulation": "free"}, "formulation: free: must be one of"),
        ({"time_limit": -1}, "time_limit: -1"),
        ({"gpus": None}, "`gpus` or `servers` must"),
        ({"gpus": 1}, "frame, row 1, column gpus: 2: the cluster has 1"),
    ],
)
def test_a_question_that_has_no_answer_is_one_line(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        hs.audit(LOG, **{"gpus": 2, "time_limit": 2, **options})
    assert expected in str(caught.value)


def test_the_folder_holds_what_others_can_check(tmp_path: Path) -> None:
    found = hs.audit(LOG, gpus=2, time_limit=2)
    written = {path.name for path in found.write(tmp_path)}
    assert {"audit.html", "audit.json", "instance.json", "best.json", "logged.json"} <= written
    page = (tmp_path / "audit.html").read_text()
    assert found.sentence().replace("'", "&#39;") in page
    assert page.count("<svg") == 5  # jobs, schedulers, use; the log above the best
    assert page.index("as logged") < page.index("best schedule (best found)")
    assert len(page) < 400_000
    assert not re.findall(r"""(?:src|href)=["']https?://""", page)
    assert json.loads((tmp_path / "audit.json").read_text())["sentence"] == found.sentence()
    jobs = pd.read_csv(tmp_path / "jobs.csv")
    assert jobs["job"].tolist() == ["'=a", "b", "c"]  # no formula for a spreadsheet
    assert jobs["best_found_jct"].tolist() == [100, 40, 10]
    with pytest.raises(InputError, match="must be a folder"):
        found.write(tmp_path / "audit.html")


def test_the_page_draws_what_differs_and_says_it_once(tmp_path: Path) -> None:
    """Nothing is lost and all schedulers agree: only use, and the log's schedule."""
    calm = hs.audit(LOG.assign(submit=[0, 60, 90]), gpus=2, time_limit=2)
    page = calm.write(tmp_path)[0].read_text()
    assert page.count("<svg") == 2
    assert "Nowhere: no better schedule is known." in page
    columns = [*calm.shown_rows()[0]]
    assert columns[:3] == ["scheduler", "ratio", "mean_jct"]
    assert "value" not in columns
    assert calm.shown_rows()[0]["makespan"] == "1 min 40 s"
    users = [f"u{n % 3}" for n in range(60)]
    many = pd.DataFrame({"job": range(60), "submit": 0, "start": range(60, 0, -1), "user": users})
    many = many.assign(end=many["start"] + 1, gpus=1)
    page = hs.audit(many, gpus=1, time_limit=2).write(tmp_path)[0].read_text()
    assert "Of 60 jobs those 40 submitted one after the other that lose most" in page
    assert "Users whose jobs end later" in page


def test_each_level_says_how_it_is_checked(tmp_path: Path) -> None:
    page = hs.audit(LOG, servers="2x1", time_limit=2).write(tmp_path)[0].read_text()
    for stem in ("", "2-on-the-servers-"):
        files = [
            str(tmp_path / f"{stem}{what}.json") for what in ("instance", "best", "certificate")
        ]
        assert f"python -m hindsched.kernel {' '.join(files)}" in page
        assert run(["verify", files[0], files[1], "--prices", files[2]]) == 0


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(EXAMPLES / "jobs.csv")
    options = ["--servers", "gpu01=8,gpu02=8", "--time-limit", "8"]
    assert run(["audit", log, *options, "--json", "-o", str(tmp_path / "out")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["jobs"] == 5
    assert told["jobs_set_aside"] == 1
    assert {"log", "easy", "best found"} <= {row["scheduler"] for row in told["schedulers"]}
    assert run(["audit", log, *options]) == 0
    text = capsys.readouterr().out
    first, *findings = text.splitlines()[:5]
    assert first == (
        "jobs.csv: judged with what is left. 8 rows read: 5 jobs judged, 2 rows not judged."
    )
    assert findings == [
        "- 1 row set aside: a share of a GPU (column gpus, row 8: 0.5).",
        "- 1 row set aside: no end: still running when the log ended (column end, row 9: late).",
        "- never used: 4 of 16 GPUs.",
        "Your scheduler's weighted mean JCT is 3,158.33 s (52 min 38 s); the best possible lies "
        "between 2,208 and 2,300 s: you are within [1.373, 1.431] of optimal.",
    ]
    # Half of the GPUs: the log's own schedule cannot have been.
    half = ["--servers", "gpu01=4,gpu02=8", "--time-limit", "2"]
    assert run(["audit", log, *half]) == 1
    text = capsys.readouterr().out
    assert "\nThis schedule is impossible: more GPUs held on a server than it has" in text
    assert "row 3, server gpu01: 8 GPUs held where there are 4" in text
    for wrong in ([], ["--gpus", "16", "--column", "job"], ["--gpus", "16", "--column", "job=a"]):
        assert run(["audit", log, *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_policies_for_which_no_time_is_left_are_left_out_and_named(tmp_path: Path) -> None:
    """A limit is one of everything; the verdict and its page are written all the same."""
    found = hs.audit(LOG, gpus=2, time_limit=1e-6, policies=["fifo", "easy"])
    assert not {"fifo", "easy"} & {row["scheduler"] for row in found.rows()}
    assert "Not replayed, for no time was left: fifo, easy." in found.remarks
    assert found.certificate.bound == 3 * 50.0  # so few jobs are proven without a clock
    assert found.write(tmp_path)[0].name == "audit.html"


# The sentence says no more than what is proven: ends are rounded outward.


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (("mean-jct", 51_045.95, Bounds(np.float64(49_800.4), 50_899.2)),
         "Your scheduler's mean JCT is 51,046 s (14 h 11 min); the best possible lies between "
         "49,800 and 50,900 s: you are within [1.002, 1.026] of optimal."),
        (("mean-jct", 100.0, Bounds(100.0, 100.0)),
         "Your scheduler's mean JCT is 100 s (1 min 40 s): that is optimal "
         "(no schedule can be below 100 s)."),
        (("mean-jct", 5.0, Bounds(10.0, 10.0)),
         "Your scheduler's mean JCT is 5 s; no schedule can be below 10 s."),
        (("mean-jct", 150.0, Bounds(100.0, 100.0), True),
         "Your scheduler's weighted mean JCT is 150 s (2 min 30 s); the best possible is "
         "100 s: you take 1.5 times that."),
        (("mean-jct", 20.0, Bounds(15.0, 15.0)),
         "Your scheduler's mean JCT is 20 s; the best possible is 15 s: you take 1.333 times "
         "that."),
        (("mean-jct", 1_000_001.0, Bounds(1e6, 1e6)),  # near is not optimal
         "Your scheduler's mean JCT is 1,000,001 s (11 d 14 h); the best possible is "
         "1,000,000 s: you take 1.000001 times that."),
        (("makespan", 9.0, Bounds(8.0, None)),
         "Your scheduler's makespan is 9 s; the best possible lies between 8 and it: "
         "you are within [?, 1.125] of optimal."),
        (("deadlines-met", 79.0, Bounds(94.0, 100.0), False, 100.0),
         "Your scheduler met 79 of 100 deadlines; the best possible meets between 94 and 100."),
        (("deadlines-met", 9.0, Bounds(9.0, 9.0), False, 10.0),
         "Your scheduler met 9 of 10 deadlines: nobody could have met more."),
    ],
)  # fmt: skip
def test_sentences(verdict: Any, sentence: str) -> None:
    assert AuditVerdict(*verdict).sentence() == sentence


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 s"), (59.94, "59.9 s"), (59.96, "1 min"), (195, "3 min 15 s"), (3599.7, "1 h"),
     (11_400, "3 h 10 min"), (86_399, "1 d"), (400_000, "4 d 15 h"), (-90, "-1 min 30 s")],
)  # fmt: skip
def test_spans_are_written_as_people_say_them(value: float, text: str) -> None:
    assert span_text(value) == text


def test_a_value_that_is_known_has_its_digits() -> None:
    """Ends of an interval are rounded outward, to four."""
    assert [seconds(1300 + 2 / 3, way) for way in (-1, 0, 1)] == ["1,300", "1,300.67", "1,301"]


def test_hours_of_a_log_of_years_are_weeks() -> None:
    log = LOG.assign(start=[0, 3e9, 5e9], end=[3e9, 5e9, 5e9 + 9])
    gap = hs.audit(log, gpus=4, time_limit=2).gap
    assert gap is not None
    assert len(gap.hours) <= 10_000
    assert gap.hours["share"].sum() == pytest.approx(1)


def test_a_log_that_cannot_be_read_compiles_nothing(monkeypatch: Any) -> None:
    """Else a misspelt path is told after minutes on a fresh machine."""
    compiled = list[bool]()
    module = "hindsched.analysis.audit.gang.audit"
    monkeypatch.setattr(f"{module}.compile_audit", lambda: compiled.append(True))
    with pytest.raises(InputError, match="must be a readable file"):
        hs.audit("absent.csv", gpus=2)
    with pytest.raises(InputError, match="no job of the log has a deadline"):
        hs.audit(LOG, gpus=2, objective="deadlines-met")
    assert not compiled
    hs.audit(LOG, gpus=2, time_limit=1)
    assert compiled

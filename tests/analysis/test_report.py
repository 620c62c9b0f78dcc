"""The report: its words, the numbers behind its pictures, the commands it names."""

import re
import shlex
from html import unescape

import pytest
from typer.testing import CliRunner

import hindsched as hs
from hindsched.analysis.compare import plan_tasks
from hindsched.analysis.comparison import Comparison
from hindsched.analysis.report.html import _picture, render_report
from hindsched.analysis.store import ResultStore
from hindsched.analysis.sweep import run_tasks
from hindsched.cli.app import app
from tests.analysis.records import offline, online


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    instance = hs.named_instance("oasis/small/t8-j8-h3-d4-s0")
    limits = {"method": "auto", "time_limit": 60.0}  # it is proven in two seconds
    tasks = plan_tasks([instance], ["oasis", "fifo"], seeds=2, offline=limits)
    made = ResultStore.create(tmp_path_factory.mktemp("report") / "out", [instance], tasks)
    run_tasks(tasks, [instance], workers=0, on_record=made.add)
    return made


@pytest.fixture(scope="module")
def page(store):
    return unescape(render_report(store))


def test_the_commands_make_the_numbers_again(store, page, monkeypatch):
    monkeypatch.chdir(store.folder)
    commands = re.findall(r"<code>(hindsched .*?)</code>", page)
    assert [line.split()[1] for line in commands] == ["solve", "simulate", "verify"]
    for row in Comparison(store.records()).instances[0].algorithms:
        words = shlex.split(commands[1].replace("NAME", row.algorithm))
        answer = CliRunner().invoke(app, [*words[1:], "--json"])
        assert answer.exit_code == 0, answer.output
        assert f'"objective": {row.runs[0][0]["objective"]!r}' in answer.stdout
    checked = CliRunner().invoke(app, [*shlex.split(commands[2])[1:], "--fast"])
    assert checked.exit_code == 0, checked.output


def test_a_family_has_three_pictures_in_which_names_are_text(page):
    assert page.count("<svg") == 3  # ratios, and a schedule above the best one known
    assert 'href="#oasis-small-t8-j8-h3-d4-s0"' in page, "of a dot and of the worst instance"
    assert 'id="oasis-small-t8-j8-h3-d4-s0"' in page
    shown = Comparison([offline("a", 1.0, 1.0), online("a", "<b>$x$", 0.5)])
    pictures = _picture(shown, "oasis")
    assert "&lt;b&gt;$x$" in pictures
    assert "<b>" not in pictures
    drawn = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert not re.search(r"font-family|<metadata|<g id=", "".join(drawn)), "said once, or never"
    assert max(map(len, drawn)) < 16_000, "bytes of a picture"


def verdict(*records):
    (found,) = Comparison(records).verdicts()
    return found


def test_verdict_of_a_maximum():
    found = verdict(
        offline("a", 100.0, 100.0, status="optimal"), online("a", "slow", 50.0),
        online("a", "good", 80.0), offline("b", 90.0, 100.0), online("b", "slow", 20.0),
        online("b", "good", 90.0), online("a", "oasis", 20.0), online("b", "oasis", 10.0),
    )  # fmt: skip
    # Ratios of good: 1.25 and [1, 1.111]; median lower 1.125, upper 1.181 = 1 / 0.847.
    assert found.lines() == [
        "oasis: good comes closest, median ratio [1.125, 1.181], worst 1.25; "
        "next slow, [3.25, 3.5]",
        "  the paper's oasis: median ratio [7, 7.5], worst [9, 10]; "
        "1 of 2 optima proven (1 by prices), widest gap 10%",
    ]


def test_verdict_of_a_minimum_and_of_what_cannot_be_told_apart():
    found = verdict(
        offline("a", 110.0, 100.0, sense="min", certified=False),
        online("a", "x", 121.0, sense="min"),
        online("a", "y", 132.0, sense="min"),
        online("a", "z", 111.0, sense="min", in_feasible_set=False),
    )
    assert found.lines() == [
        "oasis: x comes closest, ratio [1.1, 1.21]; next y, worse on every instance",
        "  0 of 1 optima proven, widest gap 10%",
    ]
    assert found.left_out == ["z"]
    wide = verdict(
        offline("a", 110.0, 80.0, sense="min"), offline("b", 110.0, 80.0, sense="min"),
        online("a", "x", 121.0, sense="min"), online("b", "x", 112.0, sense="min"),
        online("a", "y", 120.0, sense="min"), online("b", "y", 125.0, sense="min"),
    )  # fmt: skip
    assert wide.lines()[0].endswith("; next y, level")


def test_the_verdict_rounds_outward_but_for_what_optima_are_proven_to():
    found = verdict(
        offline("a", 100.0, 100.0, sense="min", status="optimal"),
        online("a", "oasis", 100.00000007, sense="min"),
        online("a", "x", 100.04, sense="min"),
        online("a", "h", 100.0, sense="min", mark=" (sees all jobs)"),
        online("a", "z", 90.0, sense="min", in_feasible_set=False),
    )
    assert found.lines()[0] == "oasis: oasis comes closest, ratio 1; next x, 1.0004"
    assert found.lines()[1].strip().startswith("it is the paper's algorithm; 1 of 1 optima proven")
    assert found.left_out == ["z"]
    alone = verdict(
        offline("a", 100.0, 100.0, status="optimal"), online("a", "h", 100.0, mark=" (forecasts)")
    )
    assert alone.lines()[0].startswith("oasis: no online algorithm has a ratio; 1 of 1 optima")

"""The report: its words, the numbers behind its pictures, the commands it names."""

import re
import shlex
from html import unescape

import pytest
from typer.testing import CliRunner

import hindsched as hs
from hindsched.analysis.compare import plan_tasks
from hindsched.analysis.comparison import Comparison
from hindsched.analysis.interval import Interval
from hindsched.analysis.report import svg
from hindsched.analysis.report.html import render_report
from hindsched.analysis.spans import job_spans
from hindsched.analysis.store import ResultStore
from hindsched.analysis.sweep import run_tasks
from hindsched.cli.app import app
from hindsched.solutions.base import read_solution
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


def test_pictures_show_what_the_numbers_say(store, page):
    assert page.count("<svg") == 4  # ratios, profiles, the optimum's schedule and the best run's
    assert page.count("schedule: ") == 2
    solution = store.solution_file(store.records()[0])
    solution = read_solution(solution, store.instances()[0])
    drawn = svg.gantt(solution)
    bars = sum(map(len, job_spans(solution).values()))
    assert drawn.count('stroke-width="7"') == bars
    assert drawn in page


def test_an_open_end_is_a_ring_and_names_are_text():
    picture = svg.intervals({"<b>": [Interval(1.5, None), Interval(1.0, 20.0)], "b": []})
    assert picture.count('fill="none"') == 1
    assert "&lt;b&gt;" in picture
    assert "<b>" not in picture
    assert svg.profiles({"a": [(1.0, 1.0)]}).count("<path") == 3


def verdict(*records):
    (found,) = Comparison(records).verdicts()
    return found


def test_verdict_of_a_maximum():
    found = verdict(
        offline("a", 100.0, 100.0, status="optimal"), online("a", "slow", 50.0),
        online("a", "good", 80.0), offline("b", 90.0, 100.0), online("b", "slow", 20.0),
        online("b", "good", 90.0),
    )  # fmt: skip
    # Ratios of good: 1.25 and [1, 1.111]; median lower 1.125, upper 1.181 = 1 / 0.847.
    assert found.sentence() == (
        "oasis: good comes closest to the optimum. On the median of 2 instances it earns at least "
        "84.7% of what hindsight could (ratio [1.125, 1.181]), at worst it earns at least 80.0% of "
        "what hindsight could (ratio 1.25). Next is slow, at a median ratio of 3.25 or "
        "more."
    )
    assert found.proof() == (
        "1 of 2 optima are proven, by prices that anyone can recompute; the others lie in "
        "intervals, the widest of 10.00%."
    )


def test_verdict_of_a_minimum_and_of_what_cannot_be_told_apart():
    found = verdict(
        offline("a", 110.0, 100.0, sense="min", certified=False),
        online("a", "x", 121.0, sense="min"),
        online("a", "y", 132.0, sense="min"),
        online("a", "z", 111.0, sense="min", in_feasible_set=False),
    )
    assert "On the one instance it costs at most 21.0% more" in found.sentence()
    assert found.sentence().endswith(" Next is y, which costs more on every instance.")
    assert found.left_out == ["z"]
    assert found.proof() == "The optimum is not proven; it lies within 10.00%."
    wide = verdict(
        offline("a", 110.0, 80.0, sense="min"), offline("b", 110.0, 80.0, sense="min"),
        online("a", "x", 121.0, sense="min"), online("b", "x", 112.0, sense="min"),
        online("a", "y", 120.0, sense="min"), online("b", "y", 125.0, sense="min"),
    )  # fmt: skip
    assert wide.sentence().endswith("y cannot be told apart from it at the median.")


def test_what_the_verdict_states_is_never_rounded_to_what_does_not_hold():
    cost = verdict(
        offline("a", 134.0, 134.0, sense="min", status="optimal"),
        online("a", "x", 135.0, sense="min"),  # 0.746 % more
        online("a", "y", 150.0, sense="min"),  # a ratio of 1.11940
    ).sentence()
    assert "costs at most 0.8% more" in cost
    assert "Next is y, at a median ratio of 1.119 or more." in cost


def test_the_verdict_is_of_online_algorithms_and_names_who_knows_more_behind_them():
    found = verdict(
        offline("a", 100.0, 100.0, sense="min", status="optimal"),
        online("a", "x", 100.04, sense="min"),
        online("a", "y", 132.0, sense="min"),
        online("a", "h", 100.0, sense="min", mark=" (sees all jobs)"),
        online("a", "f", 101.0, sense="min", mark=" (forecasts)"),
        online("a", "z", 90.0, sense="min", in_feasible_set=False),
    )
    assert found.sentence() == (
        "oasis: of the online algorithms, x comes closest to the optimum. On the one instance it "
        "costs at most 0.04% more than hindsight would (ratio 1.0004). Next is y, at a "
        "median ratio of 1.32 or more. Knowing more than an online algorithm does, h (sees all "
        "jobs) is optimal."
    )
    assert found.left_out == ["z"]
    alone = verdict(
        offline("a", 100.0, 100.0, status="optimal"), online("a", "h", 100.0, mark=" (forecasts)")
    )
    assert alone.sentence().startswith("oasis: no online algorithm has a ratio. Knowing more")

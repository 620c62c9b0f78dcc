"""What the full scale needs, from one of its settings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hindsched.analysis.figures.base import FULL_SEEDS


@pytest.fixture(scope="module")
def scripts():
    folder = str(Path(__file__).parents[3] / "benchmarks")
    sys.path.insert(0, folder)
    import claims
    import claims_page
    import claims_probe

    yield claims, claims_page, claims_probe
    sys.path.remove(folder)


def experiment(slow_at=None):
    """Two rivals on four numbers of jobs; quick: on two."""

    def run(scale, on_row):
        for jobs in scale.axis("jobs", (10, 20, 30, 40), (1, 2)):
            for seed in range(scale.seeds):
                for rival in ("a", "b"):
                    while slow_at == (jobs, rival):
                        pass
                    on_row(f"{jobs} {seed} {rival}")

    return run


def test_a_setting_in_the_middle_tells_the_number_of_runs(scripts):
    _, page, probe = scripts
    found = probe.probe(experiment(), 5, None)
    assert found["ended"]
    assert found["runs"] == 2
    assert found["runs_needed"] == 2 * 4 * FULL_SEEDS
    assert page.probed({**found, "cpu_seconds": 10}).startswith("about 3 min: 2 of its 40 runs")


@pytest.mark.parametrize(
    ("slow", "runs", "words"),
    [
        ((30, "b"), 1, "at least 7 min: 1 of about 40 runs"),
        ((30, "a"), 0, "more than 7 min: in the middle none of about 40 runs"),
    ],
)
def test_what_does_not_end_is_ended(scripts, slow, runs, words):
    _, page, probe = scripts
    found = probe.probe(experiment(slow), 0.2, None)
    assert not found["ended"]
    assert found["runs"] == runs
    assert found["runs_needed"] == 40
    assert page.probed({**found, "cpu_seconds": 10}).startswith(words)


def test_cheap_experiments_come_first_and_dear_ones_are_left(scripts, monkeypatch, tmp_path):
    script, _, _ = scripts
    made = []

    def measured(plan, seconds):
        made.append(f"probe {plan.name}")
        dear = plan.name == "oasis-9"
        return {"cpu_seconds": 100.0 if dear else 1.0, "runs": 1, "runs_needed": 10}

    monkeypatch.setattr(script, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(script, "stored", {"oasis-8": {"cpu_seconds": 9, "seeds": 1}}.get)
    monkeypatch.setattr(script, "size_of", lambda record: 0)
    monkeypatch.setattr(script, "probe_full", measured)
    monkeypatch.setattr(script, "run", lambda plan: made.append(plan.command))
    arguments = ["claims.py", "--full", "--at-most", "60", "oasis-8", "oasis-9"]
    monkeypatch.setattr(sys, "argv", arguments)
    script.main()
    assert made == ["probe oasis-9", "probe oasis-8", "hindsched figure oasis 8 --seeds 5"]

"""Searches that write schedulers: their contracts, and a climber that finds a better one."""

import asyncio
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import hindsched as hs
from hindsched.analysis.score.candidate import find_bwrap
from hindsched.errors import InputError

EXAMPLES = Path(__file__).parents[3] / "examples" / "evolve"
INITIAL = sorted(EXAMPLES.glob("initial_*.py"))
SEEDS = [5, 9, 16]
SANDBOX = "bwrap" if find_bwrap()[0] else "none"


@pytest.fixture(autouse=True)
def surroundings(tmp_path_factory, monkeypatch):
    seeds = tmp_path_factory.mktemp("seeds") / "seeds"
    seeds.write_text("\n".join(f"that-nobody-guesses-{seed}" for seed in SEEDS))
    monkeypatch.setenv("SCORE_SEEDS", str(seeds))
    monkeypatch.setenv("SCORE_SANDBOX", SANDBOX)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "evolve-cache"))


def module(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("program", INITIAL, ids=lambda path: path.stem)
def test_initial_programs_work(program):
    family = program.stem.removeprefix("initial_")
    found = hs.score(str(program), family=family, seeds=[5], public_seeds=[], sandbox=SANDBOX)
    assert found.instances["status"].tolist() == ["ok"]
    assert found.combined_score > 0
    assert "EVOLVE-BLOCK-START" in program.read_text()


def test_a_climber_finds_a_better_program(tmp_path):
    climb, program = module("climb"), tmp_path / "program.py"

    def score(text):
        program.write_text(text)
        found = hs.score(str(program), family="gang", seeds=SEEDS, public_seeds=[], sandbox=SANDBOX)
        return found.combined_score

    text = (EXAMPLES / "initial_gang.py").read_text()
    better, reached = climb.climb(text, score, steps=8)
    assert reached > score(text)
    assert reached == score(better)


def test_an_evaluation_has_the_score_and_what_to_learn_from():
    evaluator = module("evaluator")
    metrics, artifacts = evaluator.parts(evaluator.evaluate(str(EXAMPLES / "initial_gang.py")))
    assert 0 < metrics["combined_score"] < 1
    assert all(isinstance(value, float) for value in metrics.values())
    assert "public instance i01" in artifacts["feedback"]


def test_a_program_that_is_none_scores_nothing(tmp_path):
    evaluator = module("evaluator")
    for text in ("def broken(:", "raise SystemExit", ""):
        (tmp_path / "program.py").write_text(text)
        metrics, _ = evaluator.parts(evaluator.evaluate(str(tmp_path / "program.py")))
        assert metrics["combined_score"] == 0


def test_a_fault_of_the_evaluator_s_is_no_program_s(monkeypatch):
    monkeypatch.setenv("SCORE_SANDBOX", "jail")
    with pytest.raises(InputError, match="sandbox: jail"):
        module("evaluator").evaluate(str(EXAMPLES / "initial_gang.py"))


def test_files_and_lines_for_other_searches(tmp_path):
    run = [sys.executable, str(EXAMPLES / "evaluator.py")]
    program = str(EXAMPLES / "initial_gang.py")
    done = subprocess.run([*run, program, "train"], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["status"] == "success"
    assert said["combined_score"] == said["metrics"]["combined_score"] > 0
    files = ["--program_path", program, "--results_dir", str(tmp_path)]
    subprocess.run([*run, *files], check=True)
    told = json.loads((tmp_path / "metrics.json").read_text())
    assert told["combined_score"] == said["combined_score"]
    assert json.loads((tmp_path / "correct.json").read_text()) == {"correct": True, "error": None}


@pytest.mark.nightly
def test_the_evaluator_of_openevolve_on_ours():
    pytest.importorskip("openevolve", reason="openevolve is not installed")
    from openevolve.config import EvaluatorConfig
    from openevolve.evaluator import Evaluator

    config = EvaluatorConfig(timeout=300, cascade_evaluation=False, max_retries=0)
    theirs = Evaluator(config, str(EXAMPLES / "evaluator.py"))
    text = (EXAMPLES / "initial_gang.py").read_text()
    metrics = asyncio.run(theirs.evaluate_program(text, "first"))
    assert 0 < metrics["combined_score"] < 1
    assert "public instance" in theirs.get_pending_artifacts("first")["feedback"]
    cheat = asyncio.run(theirs.evaluate_program("print('{\"combined_score\": 1.0}')", "cheat"))
    assert cheat["combined_score"] == 0
    assert "answered with" in theirs.get_pending_artifacts("cheat")["feedback"]

"""Tab completion, and what a command says of an argument that is missing."""

import json
import sys

import click
import pytest

from hindsched.cli import completing
from hindsched.cli.app import app, run
from hindsched.instances.base import FAMILIES
from hindsched.solvers.door.api import methods


@pytest.fixture
def completed(monkeypatch, capsys):
    """What the shell is offered for the last word of a line."""

    def ask(line):
        monkeypatch.setenv("_HINDSCHED_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        monkeypatch.setattr(sys, "argv", ["hindsched"])
        with pytest.raises((SystemExit, click.exceptions.Exit)):
            app(prog_name="hindsched")
        return capsys.readouterr().out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("hindsched figure ast", ["astraea"]),
        ("hindsched figure oasis ", ["3", "4", "5", "6", "8", "9"]),
        ("hindsched list al", ["algorithms"]),
        ("hindsched generate oasis --preset te", ["testbed"]),
        ("hindsched solve x.json --method col", ["column-generation"]),
        ("hindsched solve x.json --solver g", ["glpk", "gurobi"]),
        ("hindsched worst astraea --algorithm hi", ["hived"]),
        ("hindsched solve oasis/known/t10-i10-h2", ["oasis/known/t10-i10-h25-s0"]),
        ("hindsched solve x", []),
        ("hindsched bench small --family ga", ["gang"]),
    ],
)
def test_words_are_completed(completed, line, offered):
    assert completed(line) == offered


def test_a_file_says_whose_algorithms_are_meant(completed, tmp_path, capsys):
    file = tmp_path / "x.json"
    assert run(["generate", "batchsched", "-o", str(file)]) == 0
    capsys.readouterr()
    assert completed(f"hindsched simulate {file} --algorithm w") == ["wspt"]
    assert "batchsched" in completed(f"hindsched simulate {file} --algorithm ")
    assert "hived" not in completed(f"hindsched simulate {file} --algorithm ")


def test_the_stated_words_are_those_of_the_families():
    assert set(completing.METHODS) == {name for family in FAMILIES for name in methods(family)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure"], f"'family': one of {', '.join(FAMILIES)}"),
        (["figure", "oasis"], "'number': one of 3, 4, 5, 6, 8, 9"),
        (["generate", "oasis"], "'-o' / '--output': Instance file to write"),
        (["solve"], "'file': Instance file, - for standard input"),
    ],
)
def test_what_is_missing_says_what_it_may_be(capsys, arguments, message):
    assert run(arguments) == 2
    assert f"error: Missing {'option' if '-o' in message else 'argument'} {message}" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["generate", "oasis", "--preset", "smal"], "small"),
        (["generate", "oasis", "--set", "job=3"], "jobs"),
        (["describe", "oasis/smal/t8"], "small"),
        (["simulate", "oasis-t10-i10-h5-s1", "--algorithm", "oasi"], "oasis"),
    ],
)
def test_the_closest_word_is_hinted_at(capsys, tmp_path, arguments, hint):
    assert run([*arguments, *(["-o", str(tmp_path / "x.json")] * (len(arguments) > 2))]) == 2
    assert f"did you mean {hint}?" in capsys.readouterr().err


def test_half_a_name_of_the_library_is_no_file(capsys):
    assert run(["describe", "edgecloud/tiny"]) == 2
    assert "must be FAMILY/SUITE/NAME" in capsys.readouterr().err


def test_bench_takes_a_suite_of_one_family(capsys, tmp_path):
    arguments = ["bench", "oasis/worst", "--algorithm", "fifo", "--method", "bound"]
    arguments += ["--work-limit", "5", "--workers", "0", "-o", str(tmp_path / "r"), "--json"]
    assert run(arguments) == 0
    rows = json.loads(capsys.readouterr().out)["instances"]
    assert {row["family"] for row in rows} == {"oasis"}

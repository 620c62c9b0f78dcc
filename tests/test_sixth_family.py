"""A family of its own, one package on each floor and one word in a list: every command knows it.

``tests/sixth_family`` is the smallest family there is; it stands outside the package, whose
folders are made to look there as well.
"""

import importlib
import itertools
import json
import sys
from pathlib import Path

import pytest

import hindsched as hs
from hindsched.cli.app import run
from hindsched.instances import base
from hindsched.instances.io import read, write
from hindsched.online.checks import check_algorithm
from hindsched.solutions.base import build_solution
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.status import Status

WORD = "tollbooth"
FOLDER = Path(__file__).parent / "sixth_family"
FLOORS = ("instances", "solutions", "models", "solvers.families", "online")


@pytest.fixture(autouse=True)
def _tollbooth(monkeypatch):
    monkeypatch.setattr(base, "FAMILIES", (*base.FAMILIES, WORD))
    for floor in FLOORS:
        package = importlib.import_module(f"hindsched.{floor}")
        path = [*package.__path__, str(FOLDER / floor.replace(".", "/"))]
        monkeypatch.setattr(package, "__path__", path)
    yield
    for name in [name for name in sys.modules if f".{WORD}" in name]:
        del sys.modules[name]


@pytest.fixture
def instance():
    return hs.generate(WORD, jobs=4, horizon=5, booths=1, seed=3)


def brute_force(instance):
    """Best total toll of all choices of starts."""
    choices = [[None, *instance.starts(job)] for job in instance.jobs]
    best = 0.0
    for starts in itertools.product(*choices):
        rows = {
            job.name: [{"from": start, "to": start + job.length - 1}]
            for job, start in zip(instance.jobs, starts, strict=True)
            if start is not None
        }
        solution = build_solution(instance, rows)
        if solution.is_feasible():
            best = max(best, solution.objective())
    return best


@pytest.mark.parametrize("method", ["auto", "milp"])
def test_solve(instance, method):
    result = hs.solve(instance, method, time_limit=60.0)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(brute_force(instance))


def test_bounds_and_certificates(instance):
    best = brute_force(instance)
    for method in ("bound", "column-generation", "relaxation"):
        assert hs.solve(instance, method, time_limit=5.0).bound >= best - 1e-9
    result = hs.solve(instance, "bound", time_limit=5.0)
    verified = verify_certificate(instance, result.certificate.to_dict())
    assert (verified.bound, verified.layout) == (result.bound, "servers")
    assert hs.explain(build_solution(instance, {}), result.certificate).gap == result.bound
    assert "(2) a car holds a booth" in str(hs.model(instance))


def test_simulate_and_compare(instance):
    best = brute_force(instance)
    for name in ("tollbooth", "first-come"):
        run_ = hs.simulate(instance, name)
        assert run_.violations == []
        assert 0 < run_.objective <= best + 1e-9
        check_algorithm(instance, name)
    compared = hs.ratio(instance, progress=False, time_limit=10.0)
    assert [row.algorithm for row in compared.algorithms] == ["tollbooth", "first-come"]
    assert compared.optimum.status == "optimal"


def test_every_command(instance, tmp_path, capsys):
    path, solution, prices = (str(tmp_path / name) for name in ("i.json", "s.json", "c.json"))
    write(instance, path)
    assert read(path).sha256() == instance.sha256()
    solved = ("solve", path, "--time-limit", "10", "-o", solution, "--certificate", prices)
    simulated = ("simulate", path, "--algorithm", "first-come", "-o", solution)
    checked = ("verify", path, solution, "--prices", prices)
    made = ("generate", WORD, "-o", str(tmp_path / "g.json"))
    compared = ("bench", "--family", WORD, "--workers", "0", "--time-limit", "5", "--json")
    results = ("--out", str(tmp_path / "results"))
    for command in (solved, simulated, checked, made, (*compared, *results)):
        assert run(list(command)) == 0, capsys.readouterr().err
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [item["family"] for item in told["instances"]] == [WORD, WORD]
    assert told["failed"] == []

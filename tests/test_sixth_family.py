"""A family of its own, in a package that `hindsched new-family` writes: every command knows it."""

import json
import os
import subprocess
import sys
import tomllib

import pytest

import hindsched as hs
from hindsched import kernel
from hindsched.analysis.verify import proof_of
from hindsched.cli.app import run
from hindsched.instances import base
from hindsched.instances.io import read, write
from hindsched.kernel import __main__ as kernel_command
from hindsched.solutions.base import build_solution
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.result import Status
from tests.scripts import ROOT

WORD = "tollbooth"
PACKAGE = f"hindsched_{WORD}"


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory):
    folder = tmp_path_factory.mktemp("family") / "made"
    assert run(["new-family", WORD, "-o", str(folder)]) == 0
    return folder


@pytest.fixture(autouse=True)
def _tollbooth(monkeypatch, skeleton):
    """What its entry point does where the package is installed before we are imported."""
    monkeypatch.syspath_prepend(str(skeleton))
    monkeypatch.setitem(kernel.PACKAGES, WORD, PACKAGE)
    for module in (kernel, kernel_command, base):
        monkeypatch.setattr(module, "FAMILIES", (*kernel.BUILT_IN, WORD))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]
    base.has_module.cache_clear()


def install(folder, name):
    """Say of a written package what an installer says: its entry point."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    facts = folder / f"{PACKAGE}-{project['version']}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    ((group, entries),) = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (facts / "entry_points.txt").write_text("\n".join(lines))
    assert entries == {name: f"hindsched_{name}"}


def call(folder, *arguments):
    """Run Python where a package is installed."""
    path = os.pathsep.join((str(folder), str(ROOT)))
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_an_installed_family_needs_no_edit_and_names_what_it_lacks(tmp_path, capsys):
    folder, word = tmp_path / "made", "toll_road"
    assert run(["new-family", word, "-o", str(folder)]) == 0
    install(folder, word)
    done = call(folder, "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout + done.stderr
    judge = folder / f"hindsched_{word}" / "kernel.py"
    judge.rename(judge.with_suffix(".txt"))
    assert call(folder, "hindsched", "generate", word, "-o", "y.json").returncode == 0
    done = call(folder, "hindsched", "simulate", "y.json", "--algorithm", word)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "kernel is missing; it must offer Problem" in done.stderr
    generator = folder / f"hindsched_{word}" / "generator.py"
    generator.write_text(generator.read_text().replace("GENERATOR =", "OTHER ="))
    asked = ("hindsched", "generate", word, "-o", "x.json")
    assert "generator must offer GENERATOR" in call(folder, *asked).stderr
    generator.unlink()
    done = call(folder, *asked)
    assert done.returncode == 2
    said = "generator is missing; it must offer GENERATOR"
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


@pytest.mark.parametrize("word", ["oasis", "Toll", "a-b", "class"])
def test_words_that_a_family_cannot_have(word, tmp_path, capsys):
    assert run(["new-family", word, "-o", str(tmp_path / "made")]) == 2
    assert not (tmp_path / "made").exists()


def test_nothing_is_overwritten(skeleton, capsys):
    assert run(["new-family", "other", "-o", str(skeleton)]) == 2
    assert "must be a folder that is empty" in capsys.readouterr().err


@pytest.fixture
def instance():
    return hs.generate(WORD, jobs=4, horizon=5, booths=1, seed=3)


def test_methods_certificates_and_comparisons(instance):
    """Against the brute force the package's own tests hold it, which run above."""
    solved = hs.solve(instance, time_limit=60.0)
    assert solved.status is Status.OPTIMAL
    for method in ("bound", "relaxation"):
        assert hs.solve(instance, method, time_limit=5.0).bound >= solved.objective - 1e-9
    result = hs.solve(instance, "bound", time_limit=5.0)
    assert proof_of(result) == "certificate"
    verified = verify_certificate(instance, result.certificate.to_dict())
    assert (verified.bound, verified.certificate.layout) == (result.bound, "servers")
    assert hs.explain(build_solution(instance, {}), result.certificate).gap == result.bound
    assert "(2) a car holds a booth" in str(hs.model(instance))
    compared = hs.ratio(instance, progress=False, time_limit=10.0)
    assert [row.algorithm for row in compared.algorithms] == ["tollbooth"]
    assert compared.optimum.status == "optimal"


def test_every_command(instance, tmp_path, capsys):
    path, solution, prices = (str(tmp_path / name) for name in ("i.json", "s.json", "c.json"))
    write(instance, path)
    assert read(path).sha256() == instance.sha256()
    solved = ("solve", path, "--time-limit", "10", "-o", solution, "--certificate", prices)
    simulated = ("simulate", path, "--algorithm", WORD, "-o", solution)
    checked = ("verify", path, solution, "--prices", prices)
    made = ("generate", WORD, "-o", str(tmp_path / "g.json"))
    compared = ("bench", f"{WORD}/small", "--workers", "0", "--time-limit", "5", "--json")
    results = ("--out", str(tmp_path / "results"))
    worst = ("worst", WORD, "--algorithm", WORD, "--work-limit", "8")
    for command in (solved, simulated, checked, made, worst, (*compared, *results)):
        assert run(list(command)) == 0, capsys.readouterr().err
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [item["family"] for item in told["instances"]] == [WORD, WORD]
    assert told["failed"] == []
    assert kernel_command.check_command([path, solution, prices]) == 0

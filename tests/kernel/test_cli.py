"""The kernel's command line: alone in a folder, exit codes, contradictions, tampered files."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hindsched
from hindsched.cli.app import run as package
from hindsched.kernel.__main__ import check_command

PACKAGE = Path(hindsched.__file__).parent
KNOWN, DATA = PACKAGE / "instances" / "known", Path(__file__).parent / "data"


def files(name):
    return (
        str(KNOWN / f"{name}.json"),
        str(DATA / f"{name}.solution.json.gz"),
        str(DATA / f"{name}.certificate.json.gz"),
    )


def read(path):
    raw = Path(path).read_bytes()
    return json.loads(gzip.decompress(raw) if path.endswith(".gz") else raw)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    def of(*given):
        arguments = []
        for position, item in enumerate(given):
            if isinstance(item, dict):
                path = tmp_path / f"{position}.json"
                path.write_text(json.dumps(item))
                item = str(path)
            arguments.append(item)
        code = check_command(arguments)
        return code, capsys.readouterr().out

    return of


@pytest.mark.parametrize("how", ["-m", "folder"])
def test_the_folder_copied_alone_works(tmp_path, how):
    shutil.copytree(PACKAGE / "kernel", tmp_path / "kernel")
    if how == "-m":
        run = "import sys, runpy; sys.path = [p for p in sys.path if 'site-packages' not in p]; "
        run += f"sys.path.insert(0, {str(tmp_path)!r}); sys.argv[0] = 'kernel'; "
        command = ["-c", run + "runpy.run_module('kernel', run_name='__main__')"]
    else:
        command = [str(tmp_path / "kernel")]
    done = subprocess.run(
        [sys.executable, "-I", "-S", *command, *files("astraea-j5-s40")],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "proves optimal"
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_0_says_what_is_proven(run):
    instance, solution, certificate = files("batchsched-ps-j5-s200")
    code, out = run(instance, certificate, solution)
    assert code == 0
    assert out.splitlines()[1:] == ["bound 243", "feasible", "objective 243", "proves optimal"]
    assert run(instance)[0] == run(instance, solution)[0] == run(instance, certificate)[0] == 0


def test_a_bound_that_is_stated_weaker_is_true_and_is_said(run):
    instance, solution, certificate = map(read, files("astraea-j5-s40"))
    _, honest = run(instance, solution, certificate)
    assert "stated" not in honest
    code, out = run(instance, solution, {**certificate, "bound": 400})
    assert code == 0
    assert "stated 400, weaker than the bound that the prices prove" in out
    assert out.splitlines()[-1] == honest.splitlines()[-1]


def test_an_infeasible_schedule_is_exit_1(run):
    instance, solution, certificate = map(read, files("batchsched-ps-j5-s200"))
    solution["jobs"][0]["assignments"][0]["workers"] = {"s1": 99}
    code, out = run(instance, solution, certificate)
    assert code == 1
    assert "infeasible: (2h): job j1 in slot 3 on server s1 lacks" in out
    assert " workers, at most " in out
    assert "optimal" not in out


def changed(**changes):
    return lambda data: data | changes


def without(key):
    return lambda data: {name: value for name, value in data.items() if name != key}


@pytest.mark.parametrize(
    ("which", "change", "says"),
    [
        ("instance", changed(format="hindsched/0"), "format"),
        ("instance", changed(family="os"), "family"),
        ("instance", changed(name="other"), "instance"),
        ("instance", changed(horizon=31), "another instance"),
        ("solution", changed(instance_sha256="0" * 64), "another instance"),
        ("solution", changed(formulation="must-complete,modes"), "another formulation"),
        ("solution", changed(formulation="x"), "malformed"),
        ("solution", changed(objective=348), "objective"),
        ("solution", changed(jobs=[]), "objective"),
        ("certificate", changed(bound=347.6439), "more than what is proven"),
        ("certificate", changed(bound=None), "malformed"),
        ("certificate", changed(sense="min"), "sense"),
        ("certificate", changed(layout="x"), "layout"),
        ("certificate", changed(more=1), "keys"),
        ("certificate", changed(prices={"worker_capacity": [{"from": 1, "to": 2}]}), "keys"),
        ("certificate", changed(kind="tree"), "prices: must be the list of leaves of a tree"),
        ("certificate", without("kind"), "keys must be"),
    ],
)
def test_tampered_files_are_exit_2_in_one_line(run, which, change, says):
    read_all = map(read, files("astraea-j5-s40"))
    data = dict(zip(("instance", "solution", "certificate"), read_all, strict=True))
    data[which] = change(data[which])
    code, out = run(*data.values())
    assert code == 2
    assert out.splitlines()[-1].startswith("refused: ")
    assert says in out.splitlines()[-1]


def test_a_decimal_that_a_double_does_not_keep_has_no_two_meanings(run, tmp_path, capsys):
    """The hash is over doubles: two decimals of one double would be one instance with two meanings.

    The package refuses them as well, in one line.
    """
    instance, _, _ = files("batchsched-rar-j5-s200")
    text = Path(instance).read_text()
    path = tmp_path / "same-doubles.json"
    for more in (
        "0.12415118120493007000000000000001}",
        "0.124151181204930071}",
        "1e-400}",
        "1e310}",
    ):
        path.write_text(text.replace("0.12415118120493007}", more))
        code, out = run(str(path))
        assert code == 2
        assert more[:-1] in out
        assert package(["verify", str(path), "absent.json"]) == 2
        assert "more digits than a double keeps" in capsys.readouterr().err
    path.write_text(text.replace("0.12415118120493007}", "0.124151181204930070}"))
    assert run(str(path))[0] == 0


def test_limits_are_options(run):
    instance, _, certificate = files("oasis-t10-i10-h5-s1")
    code, out = run(instance, "--limit", "cells=10")
    assert code == 0
    code, out = run(instance, certificate, "--limit", "cells=10")
    assert code == 2
    assert "--limit cells=" in out
    assert run(instance, certificate, "--limit", "cells=100000")[0] == 0
    for wrong in ("cells=x", "nothing=3", "cells"):
        assert run(instance, "--limit", wrong)[0] == 2


def test_every_solution_is_held_against_every_certificate(run):
    """Of two certificates that contradict each other one is false: it is refused, by name."""
    instance, solution, certificate = map(read, files("astraea-j5-s40"))
    nothing = [{**job, "assignments": [], "completion": None} for job in solution["jobs"]]
    idle = {**solution, "objective": 0, "jobs": nothing}
    dear = {"type": "worker", "from": 1, "to": 1, "price": 1000}
    prices = {"worker_capacity": [dear], "ps_capacity": []}
    weak = {**certificate, "kind": "lagrangian", "prices": prices, "bound": 1e6}
    code, out = run(instance, solution, certificate, idle, weak)
    last = out.splitlines()[-4:]
    assert (code, last[0]) == (0, "proves optimal")
    assert all(line.startswith("gap ") for line in last[1:])
    false = {**weak, "bound": 347}  # says that the other's optimum, 347.64, is out of reach
    code, out = run(instance, certificate, false)
    assert code == 2
    assert "2.json: bound: states more than what is proven" in out
    for row in solution["jobs"][0]["assignments"]:
        row["workers"] = dict.fromkeys(row["workers"], 99)
    code, out = run(instance, idle, solution, certificate)
    assert code == 1
    assert "optimal" not in out


def test_a_solution_that_beats_one_of_two_bounds_is_a_contradiction(run, monkeypatch):
    instance, solution, certificate = map(read, files("astraea-j5-s40"))
    from hindsched.kernel import astraea
    from hindsched.kernel.exact import point

    monkeypatch.setattr(astraea.Problem, "bound", lambda _, data: point(data["bound"]))
    code, out = run(
        instance, {**certificate, "bound": 400}, solution, {**certificate, "bound": 300}
    )
    assert code == 1
    assert "gap" in out.splitlines()[-2]
    assert "contradiction: objective 347.6439444862860296 beats the bound 300" in out


def test_usage_is_exit_2():
    with pytest.raises(SystemExit) as usage:
        check_command([])
    assert usage.value.code == 2


@pytest.mark.parametrize(
    ("jobs", "last"), [(20, "j20"), (21, "infeasible: 1 more"), (23, "3 more")]
)
def test_twenty_broken_rules_are_named_and_the_others_counted(run, jobs, last):
    instance = hindsched.generate("gang", jobs=jobs, seed=1)
    code, out = run(instance.to_dict(), hindsched.build_solution(instance, {}).to_dict())
    lines = [line for line in out.splitlines() if line.startswith("infeasible")]
    assert code == 1
    assert len(lines) == min(jobs, 21)
    assert last in lines[-1]

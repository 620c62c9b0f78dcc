"""The commands in the good case: what they print, what they write, their exit codes."""

import json
import subprocess
import sys

import pytest

from hindsched.cli.app import run
from hindsched.instances.base import families_on

NAME = "oasis-t10-i10-h25-s0"
BOUND = ["--method", "bound", "--time-limit", "1"]


@pytest.fixture
def text(capsys):
    """Run a command for a person and return what it prints."""

    def ask(*arguments):
        assert run(list(arguments)) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return ask


def test_no_command_loads_a_library_before_it_is_asked():
    heavy = "scipy", "pandas", "pyomo", "cvxpy", "numba", "highspy", "matplotlib", "joblib"
    code = f"import sys, hindsched.cli.app; print(*{{*{heavy}}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_walk_through_one_instance(answer, tmp_path):
    file, best, online, prices = (
        str(tmp_path / name) for name in ("x.json", "best.json", "on.json", "p.json")
    )
    code, made = answer("generate", "oasis", "--preset", "small", "--seed", "3", "-o", file)
    assert (code, made["family"], made["file"]) == (0, "oasis", file)

    code, solved = answer(
        "solve", file, "--method", "milp", "--time-limit", "20", "--gap", "0.1", "-o", best
    )
    assert code == 0
    names = {"family", "instance", "method", "status", "objective", "bound", "gap", "seconds"}
    assert names <= set(solved)
    code, bounded = answer("solve", file, *BOUND, "--certificate", prices)
    assert (code, bounded["objective"], bounded["certified"]) == (0, None, True)

    code, ran = answer("simulate", file, "--algorithm", "oasis", "-o", online)
    names = {
        "family", "instance", "algorithm", "objective", "jobs_completed", "jobs_rejected",
        "violations", "decision_ms_median", "decision_ms_max",
    }  # fmt: skip
    assert code == 0
    assert names <= set(ran)
    assert ran["violations"] == []
    assert ran["objective"] <= solved["bound"] * (1 + 1e-6)

    code, measured = answer("ratio", file, "--algorithm", "oasis", "--time-limit", "1")
    assert code == 0
    assert set(measured["optimum"]) >= {"lower", "upper", "status"}
    [row] = measured["algorithms"]
    assert row["algorithm"] == "oasis"
    assert row["objective"] == ran["objective"]
    assert 1 <= row["ratio"]["lower"] <= row["ratio"]["upper"]
    assert row["theorem"]["kind"] in ("ratio", "additive")
    assert all({"name", "holds", "worst"} <= set(item) for item in row["theorem"]["assumptions"])

    for solution in (best, online):
        code, checked = answer("verify", file, solution, "--prices", prices)
        assert (code, checked["feasible"]) == (0, True)
        assert checked["bound"] == pytest.approx(bounded["bound"], rel=1e-6)

    code, explained = answer("explain", file, online, "--prices", prices)
    assert code == 0
    kinds = ("jobs", "parts", "idle_capacity", "rounding")
    parts = [explained[f"from_{kind}"] for kind in kinds]
    assert sum(parts) == pytest.approx(explained["gap"], rel=1e-9)


def test_the_same_for_people(text, tmp_path):
    online, prices = str(tmp_path / "on.json"), str(tmp_path / "p.json")
    assert "horizon" in text("describe", NAME)
    assert "subgradient" in text("solve", NAME, *BOUND, "--certificate", prices)
    assert "decision ms median" in text("simulate", NAME, "--algorithm", "oasis", "-o", online)
    assert "ratio >=" in text("ratio", NAME, "--algorithm", "oasis", "--time-limit", "1")
    assert "feasible" in text("verify", NAME, online, "--prices", prices)
    assert "from idle capacity" in text("explain", NAME, online, "--prices", prices)
    assert "$schema" in text("schema", "oasis")
    assert "highspy" in text("--version")
    assert "bench" in text("--help")
    assert "bench" in text()


def test_a_solution_that_breaks_a_constraint_is_exit_code_1(answer, tmp_path):
    path = tmp_path / "s.json"
    answer("simulate", NAME, "--algorithm", "oasis", "-o", str(path))
    data = json.loads(path.read_text())
    served = next(job for job in data["jobs"] if job["assignments"])
    row = served["assignments"][0]
    row["workers"] = {"w1": sum(row["workers"].values())}
    path.write_text(json.dumps(data))
    code, checked = answer("verify", NAME, str(path))
    assert (code, checked["feasible"], checked["gap"]) == (1, False, None)
    assert checked["violations"]


def test_settings_reach_the_algorithm(answer):
    _, plain = answer("simulate", NAME, "--algorithm", "oasis")
    _, floored = answer("simulate", NAME, "--algorithm", "oasis", "--set", "lower_floor=0.1")
    assert floored["settings"] == {"lower_floor": "0.1"}
    assert floored["objective"] != plain["objective"]


def test_the_paper_s_algorithm_on_faster_machines(answer, capsys, tmp_path):
    file = str(tmp_path / "x.json")
    code, made = answer("generate", "edgecloud", "--seed", "3", "--assumptions", "-o", file)
    assert (code, made["assumptions_that_fail"]) == (0, [])
    asked = ["ratio", file, "--algorithm", "edgecloud", "--speed", "1.5"]
    code, found = answer(*asked)
    assert (code, [row["theorem"]["value"] for row in found["algorithms"]]) == (0, [8, 12, 3])
    assert found["algorithms"][1]["optimum"] == found["optimum"]
    assert found["algorithms"][2]["optimum"]["upper"] < found["optimum"]["lower"]
    assert run(asked) == 0
    said = capsys.readouterr().err
    assert "no kernel judges it" in said
    unaided = "edgecloud: of what its theorem assumes, fails: the algorithm runs at speed 2"
    assert unaided in " ".join(said.split())
    assert said.count("the algorithm runs at speed") == 1
    run(["generate", "edgecloud", "--assumptions", "--set", "edge_upload=[1,5]", "-o", file])
    assert "fail  chunks become available" in capsys.readouterr().out


@pytest.mark.parametrize(
    "what", ["families", "algorithms", "suites", "figures", "instances", "solvers"]
)
def test_lists(answer, text, what):
    code, listed = answer("list", what)
    assert code == 0
    assert listed[what]
    if what != "instances":
        assert what in text("list", what)
    if what == "families":
        assert [row["family"] for row in listed[what]] == list(families_on("instances", "instance"))
    if what == "algorithms":
        named = {(row["family"], row["algorithm"]) for row in listed[what]}
        families = families_on("online", "algorithms")
        assert {family for family, _ in named} == set(families)
        assert {(family, family) for family in families if family != "gang"} <= named
    if what == "solvers":
        assert {"solver": "highs", "installed": True} in listed[what]


def test_bench_takes_files_and_folders(answer, tmp_path):
    folder = tmp_path / "mine"
    for seed in (1, 2):
        file = folder / f"{seed}.json"
        assert answer("generate", "batchsched", "--seed", str(seed), "-o", str(file))[0] == 0
    few = ("--algorithm", "wspt", "--method", "bound", "--time-limit", "1", "--workers", "0")
    code, found = answer("bench", str(folder), *few, "--out", str(tmp_path / "a"))
    assert (code, len(found["instances"])) == (0, 2)
    code, found = answer("bench", str(folder / "1.json"), *few, "--out", str(tmp_path / "b"))
    assert (code, len(found["instances"])) == (0, 1)


def test_list_alone_says_what_can_be_listed(text, answer):
    shown = text("list")
    _, found = answer("list")
    words = [row["list"] for row in found["lists"]]
    assert words == ["families", "algorithms", "suites", "figures", "instances", "solvers"]
    assert all(word in shown for word in words)
    assert "engine=" in text("list", "algorithms", "oasis")


WORST = ["worst", "gang", "--algorithm", "fifo", "--workers", "0"]


def test_worst_says_what_goes_wrong_and_writes_the_witness(tmp_path, capsys):
    folder = tmp_path / "witness"
    assert run([*WORST, "--work-limit", "40", "--set", "duration=[1,5]", "-o", str(folder)]) == 0
    told = capsys.readouterr()
    assert "where a schedule costs" in told.out
    assert "40 candidates" in told.err
    files = {path.name for path in folder.iterdir()}
    assert {"instance.json", "run.json", "reference.json", "witness.json", "search.json"} <= files
    assert run(["verify", str(folder / "instance.json"), str(folder / "run.json"), "--exact"]) == 0


def test_the_worst_as_one_object(answer):
    code, found = answer(*WORST, "--work-limit", "30", "--set", "jobs=[1,2]")
    assert (code, found["jobs"] <= 2) == (0, True)
    assert found["ratio"]["lower"] >= 1
    assert found["search"]["evaluations"] == 30
    assert found["contradicts_theorem"] is False

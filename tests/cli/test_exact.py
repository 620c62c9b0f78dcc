"""`verify` asks the exact kernel, whose word counts, and says what it says."""

import json

import pytest

import hindsched as hs
from hindsched.analysis.verify import exact_check
from hindsched.cli.app import run


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exact")
    names = [str(folder / name) for name in ("i.json", "s.json", "c.json")]
    hs.write(hs.generate("batchsched", preset="small", seed=1), names[0])
    options = ["-o", names[1], "--certificate", names[2], "--time-limit", "20"]
    assert run(["solve", names[0], *options]) == 0
    return names


def test_the_kernel_answers_beside_the_fast_check(files, capsys):
    assert run(["verify", *files[:2], "--prices", files[2], "--exact", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["exact"]["exit_code"] == 0
    assert found["exact"]["verdict"].startswith(("proves optimal", "gap"))
    assert run(["verify", *files[:2], "--fast", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exact"] is None
    assert run(["verify", *files[:2], "--exact"]) == 0
    assert "exact kernel: feasible" in capsys.readouterr().out


def test_time_is_limited_unless_asked_for(files):
    assert exact_check(*files, seconds=0.0001) is None


def test_a_solution_that_beats_the_bound_is_a_contradiction(files, tmp_path, capsys, monkeypatch):
    from hindsched.analysis.verify import Verification

    beats = Verification("i", "batchsched", "modes", "min", 9.0, [], bound=10.0, kind="lagrangian")
    assert beats.is_contradiction
    assert not Verification("i", "oasis", "standard", "max", 9.0, [], bound=10.0).is_contradiction
    monkeypatch.setattr(Verification, "is_contradiction", True)
    assert run(["verify", *files[:2], "--prices", files[2]]) == 1
    said = capsys.readouterr().err
    assert "is better than the bound" in said
    assert "one of the two must be wrong" in said

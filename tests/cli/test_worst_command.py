"""``hindsched worst`` as a user meets it."""

import json

from hindsched.cli.app import run

QUICK = ["worst", "gang", "--algorithm", "fifo", "--workers", "0"]


def test_the_command_says_what_goes_wrong_and_writes_the_witness(tmp_path, capsys):
    folder = tmp_path / "witness"
    assert run([*QUICK, "--work-limit", "40", "--set", "duration=[1,5]", "-o", str(folder)]) == 0
    told = capsys.readouterr()
    assert "where a schedule costs" in told.out
    assert "40 candidates" in told.err
    files = {path.name for path in folder.iterdir()}
    assert {"instance.json", "run.json", "reference.json", "witness.json", "search.json"} <= files
    assert run(["verify", str(folder / "instance.json"), str(folder / "run.json"), "--exact"]) == 0


def test_json_is_one_object(capsys):
    assert run([*QUICK, "--work-limit", "30", "--set", "jobs=[1,2]", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"] <= 2
    assert found["ratio"]["lower"] >= 1
    assert found["search"]["evaluations"] == 30
    assert found["contradicts_theorem"] is False


def test_a_folder_that_cannot_be_made_is_refused_before_the_search(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hindsched.worst", None)
    monkeypatch.chdir(tmp_path)  # long paths are cut in what is said
    (tmp_path / "file").touch()
    assert run(["worst", "oasis", "--algorithm", "fifo", "-o", "file/below"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: output: file/below")
    assert line.endswith("is no folder)")

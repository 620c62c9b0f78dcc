"""Outputs destroy nothing: links, devices, pipes, modes, inputs and each other."""

import os
import signal
import stat
import threading

import pytest

import hindsched as hs
from hindsched.cli.app import run
from hindsched.cli.output import tell
from hindsched.errors import InputError
from hindsched.instances.io import write_text


@pytest.fixture
def instance(tmp_path):
    path = tmp_path / "instance.json"
    hs.write(hs.generate("batchsched", preset="small", seed=1), path)
    return path


def solve(instance, *options):
    return run(["solve", str(instance), "--method", "bound", "--time-limit", "0.2", *options])


def test_the_name_of_a_class_is_no_picture(capsys):
    tell("mine.py:A: score 1")
    assert capsys.readouterr().out == "mine.py:A: score 1\n"


def test_a_link_is_followed_and_stays(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_text("new", link)
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_failed_write_leaves_no_temporary_file(tmp_path, monkeypatch):
    def fails(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(InputError, match="No space left"):
        write_text("text", tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write_text("text", pipe)
    reader.join(10)
    assert found == ["text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_output_that_is_the_input_is_refused(instance, tmp_path, capsys):
    before = instance.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(instance)
    for path in (instance, link, f"{tmp_path}/../{tmp_path.name}/instance.json"):
        assert solve(instance, "-o", str(path)) == 2
        assert "is read by this command" in capsys.readouterr().err
    assert instance.read_bytes() == before


def test_a_program_that_cannot_be_written_leaves_what_was_there(instance, tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "model.mps"
    path.write_text("before")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        code = run(["model", str(instance), "-o", str(path)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert code in (1, 2)
    assert path.read_text() == "before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["instance.json", "model.mps"]


def test_two_outputs_of_one_name_are_refused(instance, tmp_path, capsys):
    path = str(tmp_path / "out.json")
    assert solve(instance, "-o", path, "--certificate", path) == 2
    assert "is what --output writes" in capsys.readouterr().err
    assert not os.path.exists(path)


def test_no_folder_is_made_for_a_command_that_is_refused(instance, tmp_path):
    folder = tmp_path / "new" / "deep"
    assert solve(instance, "-o", str(folder / "x.json"), "--solver", "nope") == 2
    assert not (tmp_path / "new").exists()
    assert solve(instance, "--certificate", str(folder / "x.json")) == 0
    assert (folder / "x.json").exists()


@pytest.mark.parametrize("arguments", [
    ["bench", "gang/small/j6-s1", "--dask", "tls://h:1"],
    ["bench", "gang/small/j6-s1", "--dask", "tcp://127.0.0.1:1"],
    ["figure", "oasis", "3", "--quick", "--set", "zz=1"],
    ["worst", "gang", "--algorithm", "easy", "--time-limit", "nan"],
])  # fmt: skip
def test_no_folder_is_made_before_arguments_are_known_to_be_right(arguments, tmp_path, capsys):
    assert run([*arguments, "--output", str(tmp_path / "new" / "deep")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_large_file_is_refused(instance, monkeypatch, capsys):
    monkeypatch.setattr("hindsched.instances.io.MOST_JSON_BYTES", 100)
    assert run(["describe", str(instance)]) == 2
    assert "must unpack to at most 100 bytes" in capsys.readouterr().err

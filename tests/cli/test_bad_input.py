"""Bad input: exit code 2 and one clear line, from every command, never a traceback."""

import json

import pytest

import hindsched as hs
from hindsched.cli.app import run
from hindsched.errors import InputError
from hindsched.instances.catalogue import named_instance

NAME = "oasis-t10-i10-h25-s0"
TRACE = ["--trace-format", "chronus", "--from-trace"]


@pytest.fixture
def files(tmp_path):
    """Files with one thing wrong each, made from an instance that is right."""
    data = named_instance(NAME).to_dict()

    def write(name, change):
        changed = json.loads(json.dumps(data))
        change(changed)
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(changed))
        return str(path)

    (tmp_path / "text.json").write_text("{not json")
    (tmp_path / "latin.json").write_bytes(b'{"name": "\xff"}')
    good = json.dumps(data)
    (tmp_path / "twice_key.json").write_text(good[:-1] + ', "name": "other"}')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "trace.csv").write_text("jobs,when\na,1\n")
    return {
        "good": write("good", lambda item: None),
        "text": str(tmp_path / "text.json"),
        "latin": str(tmp_path / "latin.json"),
        "missing": str(tmp_path / "missing.json"),
        "folder": str(tmp_path),
        "unknown_field": write("unknown_field", lambda item: item["jobs"][3].update(color=1)),
        "negative": write("negative", lambda item: item["jobs"][3]["worker"].update(gpu=-1)),
        "too_big": write("too_big", lambda item: item["jobs"][0]["worker"].update(gpu=999)),
        "absent_field": write("absent_field", lambda item: item["jobs"][1].pop("epochs")),
        "beyond_counting": write("beyond_counting", lambda item: item.update(horizon=10**18)),
        "endless_work": write(
            "endless_work",
            lambda item: item["jobs"][3].update(epochs=10**7, chunks=10**7, minibatches=10**7),
        ),
        "twice_key": str(tmp_path / "twice_key.json"),
        "deep": str(tmp_path / "deep.json"),
        "trace": str(tmp_path / "trace.csv"),
        "below_a_file": str(tmp_path / "text.json" / "out"),
        "new": str(tmp_path / "new"),
    }


def line_of(capsys, arguments):
    """Run a command that must refuse its input, and return its one line."""
    code = run(arguments)
    captured = capsys.readouterr()
    assert code == 2, captured.err
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("error: ")
    return lines[0]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("missing", "(absent): must be a readable file"),
        ("folder", "a folder: must be a readable file"),
        ("text", "must be JSON"),
        ("latin", "must be UTF-8 text"),
        ("unknown_field", "jobs[3].color: 1: unknown field"),
        ("negative", "jobs[3].worker.gpu: -1: "),
        ("too_big", "jobs[0].worker"),
        ("absent_field", "jobs[1].epochs: (absent): is required"),
        ("beyond_counting", "horizon: 1000000000000000000: "),
        ("endless_work", "jobs[3]: "),
        ("twice_key", "the key 'name' stands twice"),
        ("deep", "(nested too deep): must be JSON"),
    ],
)
@pytest.mark.parametrize("command", ["describe", "solve"])
def test_instance_files(capsys, files, command, file, message):
    assert message in line_of(capsys, [command, files[file]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "@good", "--algorithm", "nope"], "algorithm: nope: must be one of oasis"),
        (["simulate", "@good", "--algorithm", "oasis", "--set", "x"], "must be NAME=VALUE"),
        (["simulate", "@good", "--algorithm", "oasis", "--set", "x=1"], "oasis has the settings"),
        (["simulate", "@good", "--algorithm", "oasis", "--set", "engine=x"], "'model' or 'slots'"),
        (["simulate", "@good"], "Missing option '--algorithm'"),
        (["ratio", "@good", "--set", "nope=1"], "set.nope: 1"),
        (["ratio", "@good", "--set", "speed=2"], "set.speed: 2: is no setting but an option"),
        (["ratio", "@good", "--speed", "1"], "speed: 1.0: must be a number above 1 and at most"),
        (["ratio", "@good", "--speed", "nan"], "speed: nan: must be a number above 1"),
        (["ratio", "@good", "--speed", "2"], "speed: 2.0: no theorem of oasis is of faster"),
        (["generate", "gang", "--assumptions", "-o", "@new"], "gang has no paper's theorem"),
        (["generate", "oasis", *TRACE, "@trace", "--assumptions", "-o", "@new"], "for a trace"),
        (["bench", "@good", "--seeds", "0"], "seeds: 0: must be at least 1"),
        (["solve", "@good", "--method", "nope"], "method: nope: must be one of auto"),
        (["solve", "@good", "--solver", "nope"], "solver: nope: must be one of highs"),
        (["solve", "@good", "--formulation", "nope"], "formulation: nope"),
        (["solve", "@good", "--time-limit", "-1"], "time_limit: -1"),
        (["solve", "@good", "--gap", "2"], "gap: 2"),
        (["solve", "@good", "--nope"], "No such option: --nope"),
        (["solve", "@good", "-o", "@below_a_file"], "must be writable"),
        (["solve"], "Missing argument 'file'"),
        (["solve", "oasis/small/nope"], "must be one of t"),
        (["nope"], "No such command 'nope'"),
        (["verify", "@good", "@missing"], "(absent)"),
        (["verify", "@good", "@text"], "must be JSON"),
        (["verify", "@good", "@good"], "format: hindsched/1: must be hindsched-solution/1"),
        (["generate", "nope", "-o", "@new"], "family: nope: must be one of oasis"),
        (["generate", "oasis", "--preset", "nope", "-o", "@new"], "preset: nope"),
        (["generate", "oasis", "--set", "nope=1", "-o", "@new"], "set.nope: 1"),
        (["generate", "oasis", "--set", "seed=1", "-o", "@new"], "set.seed: 1: is no setting"),
        (["generate", "oasis", "--seed", "-1", "-o", "@new"], "seed: -1"),
        (["describe", "a\0b"], "must be a readable file"),
        (
            ["generate", "oasis", "--from-trace", "@trace", "--trace-format", "x", "-o", "@new"],
            "trace_format: x: must be one of csv, elasticflow",
        ),
        (["generate", "oasis", *TRACE, "@missing", "-o", "@new"], "must be a file or folder"),
        (
            ["generate", "astraea", *TRACE, "@trace", "--set", "jobs=0", "-o", "@new"],
            "set.jobs: 0: must be at least 1",
        ),
        (["bench", "nope", "--out", "@new"], "suite: nope: must be one of"),
        (["bench", "oasis/small", "--out", "@folder"], "must be a new or an empty folder"),
        (["bench", "oasis/small", "--workers", "-1", "--out", "@new"], "workers: -1"),
        (["report", "@folder"], "must be a folder of results"),
        (["figure", "oasis", "99", "-o", "@new"], "number: 99: oasis has the figures"),
        (["figure", "oasis", "3", "-o", "@below_a_file"], "is no folder"),
        (["figure", "astraea", "4a", "--quick", "--set", "jobs=[]", "-o", "@new"], "set.jobs: []"),
        (
            ["figure", "astraea", "5", "--from-trace", "x.csv", "-o", "@new"],
            "from-trace: x.csv: is for astraea's figures 4a",
        ),
        (
            ["figure", "oasis", "3", "--from-trace", "x.csv", "-o", "@new"],
            "from-trace: x.csv: oasis has no figures from a trace",
        ),
        (["worst", "oasis", "--algorithm", "fifo", "--set", "speed=3"], "set.speed"),
        (["worst", "oasis", "--algorithm", "fifo", "-o", "@below_a_file"], "is no folder"),
        (["generate", "oasis", *TRACE, "@trace", "-o", "@new"], "column"),
        (["schema", "nope"], "family: nope: must be one of oasis"),
        (["list", "nope"], "list: nope: must be one of families"),
        (["explain", "@good", "@good", "--prices", "@good"], "format: hindsched/1: must be"),
    ],
)
def test_arguments(capsys, files, arguments, message):
    given = [files[word[1:]] if word.startswith("@") else word for word in arguments]
    assert message in line_of(capsys, given)


def test_an_error_that_is_ours_is_one_line_too(capsys, files, monkeypatch):
    def breaks(*args, **kwargs):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("hindsched.simulate", breaks)
    monkeypatch.delenv("HINDSCHED_TRACEBACK", raising=False)
    assert run(["simulate", files["good"], "--algorithm", "oasis"]) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "ZeroDivisionError: a bug" in err
    monkeypatch.setenv("HINDSCHED_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run(["simulate", files["good"], "--algorithm", "oasis"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", "x" * 300],
        ["bench", "x" * 300],
        ["report", "x" * 300],
        ["bench", "--resume", "--out", "x" * 300],
        ["simulate", "edgecloud-j5-s601", "--algorithm", "x" * 300 + ".py:A"],
    ],
)
def test_a_name_that_no_file_can_have_is_one_line(arguments, capsys):
    assert run(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_options_have_the_command_line_s_names(tmp_path, capsys):
    (tmp_path / "log.csv").write_text(
        "job,submit,start,end,gpus\n"
        "a,2024-01-01 00:00:00,2024-01-01 00:00:00,2024-01-01 01:00:00,1\n"
    )
    with pytest.raises(InputError, match="`time_zone` must name the zone"):
        hs.read_log(tmp_path / "log.csv", gpus=2)
    assert run(["audit", str(tmp_path / "log.csv"), "--gpus", "2"]) == 2
    assert "--time-zone must name the zone" in capsys.readouterr().err


ANY = hs.generate("oasis", seed=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hs.solve("mine.json"), "instance: 'mine.json': must be an Instance, as hs.read"),
        (lambda: hs.solve(None), "instance: NoneType: must be an Instance"),
        (lambda: hs.simulate("mine.json", "oasis"), "instance: 'mine.json': must be an Instance"),
        (lambda: hs.simulate(ANY, object), "algorithm: type: must be a name or an OnlineAlgorithm"),
        (lambda: hs.simulate(ANY, 3), "algorithm: 3: must be a name or an OnlineAlgorithm"),
        (lambda: hs.compare(ANY, "oasis"), r"algorithms: oasis: must be a list: \['oasis'\]"),
        (lambda: hs.compare("mine.json"), "instances: 'mine.json': must be an Instance"),
        (lambda: hs.compare([3]), r"instances\[0\]: 3: must be an Instance"),
        (lambda: hs.verify("mine.json", "best.json"), "instance: 'mine.json': must be an Instance"),
        (lambda: hs.verify(ANY, 5), "solution: 5: must be a Solution or its file"),
        (lambda: hs.audit(3, time_limit="5"), "time_limit: '5': must be a number of seconds"),
        (lambda: hs.worst("oasis", "oasis", time_limit="5"), "time_limit: '5': must be a number"),
        (lambda: hs.foresight([ANY], "oasis", time_limit="5"), "time_limit: '5': must be a number"),
        (lambda: hs.write("mine.json", "x"), "instance: 'mine.json': must be an Instance"),
        (lambda: hs.model("mine.json"), "instances: 'mine.json': must be a list of Instances"),
        (lambda: hs.foresight(ANY), "instances: OasisInstance: must be a list of Instances"),
        (lambda: hs.explain(3, 4), "solution: 3: must be a Solution"),
        (lambda: hs.audit(3, gpus=1), "log: 3: must be a path or a frame"),
        (lambda: hs.score(3, family="gang"), "candidate: 3: must be a text"),
        (lambda: hs.ratio(ANY, speed="2"), "speed: 2: must be a number above 1"),
        (lambda: hs.generate("oasis", assumptions=1), "assumptions: 1: must be true or false"),
        (lambda: hs.plot.ratios(3), "comparison: int: must be what hs.compare"),
    ],
)
def test_a_wrong_type_in_python_is_named_with_what_was_expected(call, message):
    with pytest.raises(InputError, match=message):
        call()

"""The search: known answers, determinism, resuming, own algorithms, witnesses."""

import json
import math
import shutil
import signal
import sys
import time
from types import SimpleNamespace

import pytest

import hindsched as hs
from hindsched import compiler_clock, limits
from hindsched.analysis.worst import api, polish, search
from hindsched.analysis.worst.evaluate import BOUNDED, EXACT, evaluate, quotient
from hindsched.analysis.worst.folder import check_witness
from hindsched.analysis.worst.problem import Problem
from hindsched.analysis.worst.shrink import complexity, shrink
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.io import read_json, write_json
from hindsched.instances.search.space import copied, find_space
from hindsched.online.protocol import Decision, OnlineAlgorithm

THETA = 10


class TakesNobody(OnlineAlgorithm):
    """Refuses every job."""

    def start(self, environment):
        pass

    def step(self, slot, arrivals):
        return Decision(rejected=[job.name for job in arrivals])


class Fails(TakesNobody):
    def step(self, slot, arrivals):
        return Decision({"nobody": [{"from": slot, "to": slot, "workers": {}, "ps": {}}]})


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("witness")
    witness = hs.worst("oasis", "fifo", preset="one-slot", work_limit=60, folder=folder)
    return witness, folder


def test_first_come_first_served_loses_all_but_the_first_value(found):
    witness, _ = found
    assert witness.proven == THETA
    assert [job.utility.intercept for job in witness.instance.jobs] == [1, THETA]
    assert witness.optimum.is_proven
    assert "fifo earns 1 where a schedule earns 10" in witness.explain()
    assert "j2 (arrives at 1) loses 10: not served instead of in slot 1" in witness.explain()


def run_for_ever(*_, **__):
    while True:
        pass


def test_a_candidate_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr(limits, "OVERRUN_SECONDS", 0.1)
    monkeypatch.setattr("hindsched.analysis.worst.pool.evaluate", run_for_ever)
    with pytest.raises(SolveFailed, match=r"no candidate was evaluated .* \(time\)"):
        hs.worst("oasis", "fifo", preset="one-slot", time_limit=0.2, workers=0)


def test_starts_that_take_for_ever_to_read_are_stopped(monkeypatch):
    monkeypatch.setattr(limits, "OVERRUN_SECONDS", 0.1)
    monkeypatch.setattr(api, "find_starts", run_for_ever)
    with pytest.raises(limits.LimitReached, match="once the starts were read"):
        hs.worst("oasis", "fifo", preset="one-slot", time_limit=0.2, workers=0)


def test_shrinking_that_never_ends_leaves_the_instance_as_it_was_found(monkeypatch):
    monkeypatch.setattr(api, "_shrink", run_for_ever)
    witness = hs.worst("oasis", "fifo", preset="one-slot", time_limit=4, target=THETA, workers=0)
    assert witness.proven == THETA
    assert "shrinking" not in witness.search


def test_a_proof_that_never_ends_is_said(monkeypatch):
    monkeypatch.setattr(limits, "OVERRUN_SECONDS", 0.1)
    monkeypatch.setattr(api, "make_witness", run_for_ever)
    with pytest.raises(limits.LimitReached, match=r"^a ratio of .*: raise the time limit$"):
        hs.worst("oasis", "fifo", preset="one-slot", time_limit=3, target=1.5, workers=0)


@pytest.mark.skipif(not polish.can_polish(), reason="needs the package cma")
def test_a_search_without_time_to_load_cma_ends_before_it(monkeypatch):
    """Its modules load for seconds, in which no limit acts."""
    monkeypatch.setitem(sys.modules, "cma", None)
    monkeypatch.delitem(sys.modules, "cma")
    monkeypatch.setattr(polish, "SECONDS_TO_LOAD", 1000.0)
    witness = hs.worst("gang", "easy", time_limit=20, workers=0, shrink=False)
    assert "cma" not in sys.modules
    assert witness.search["ended"] == "time"
    assert witness.search["generations"] == search.POLISH_EVERY


def test_compiling_kernels_takes_no_time_from_the_search(monkeypatch):
    numba = compiler_clock._Compiler()
    waits = iter([2.0])

    def evaluated_while_numba_compiles(*given):
        numba(SimpleNamespace(is_start=True))
        time.sleep(next(waits, 0.0))
        numba(SimpleNamespace(is_start=False, is_end=True))
        return evaluate(*given)

    monkeypatch.setattr(limits, "OVERRUN_SECONDS", 0.1)
    monkeypatch.setattr(limits, "seconds_of_compiling", numba.seconds)
    monkeypatch.setattr("hindsched.analysis.worst.pool.evaluate", evaluated_while_numba_compiles)
    monkeypatch.setattr(api, "make_witness", lambda problem, data, search, seconds: seconds)
    left = hs.worst("oasis", "fifo", preset="one-slot", time_limit=1.5, target=1.5, workers=0)
    assert left > 0


def test_random_starts_alone_find_it_too():
    witness = hs.worst(
        "oasis", "fifo", preset="one-slot", work_limit=400, starts=["random"], seed=2,
        target=THETA * 0.99, shrink=False,
    )  # fmt: skip
    assert witness.proven >= THETA * 0.99
    assert witness.search["by"] != "gadget 1"


def test_the_folder_is_checked_by_anyone(found, tmp_path):
    witness, folder = found
    checked = check_witness(folder)
    assert checked["ratio"] == checked["claimed"] == witness.proven
    assert set(checked["exact"].values()) == {"feasible"}
    again = hs.verify(hs.read(folder / "instance.json"), folder / "reference.json")
    assert again.objective == THETA
    claim = read_json(folder / "witness.json")
    claim["ratio"]["lower"] = 11.0
    forged = tmp_path / "forged"
    shutil.copytree(folder, forged)
    write_json(claim, forged / "witness.json")
    with pytest.raises(InputError, match=r"the schedules have the ratio 10\.0"):
        check_witness(forged)
    assert (folder / "schedules.png").stat().st_size > 5000
    assert not list(folder.glob("*.part"))


def test_same_seed_same_search_whatever_the_workers(found):
    arguments = {"preset": "one-slot", "work_limit": 20, "starts": ["random"], "shrink": False}
    first, again = (hs.worst("oasis", "fifo", seed=3, **arguments) for _ in range(2))
    side_by_side = hs.worst("oasis", "fifo", seed=3, workers=2, **arguments)
    other = hs.worst("oasis", "fifo", seed=4, **arguments)

    def path(witness):
        steps = [(step["evaluations"], step["ratio"]) for step in witness.search["trace"]]
        return steps, witness.instance.sha256()

    assert path(first) == path(again) == path(side_by_side)
    assert path(first) != path(other)
    assert first.search["evaluations"] == 20


def test_resuming_goes_on_as_if_nothing_had_been(tmp_path):
    arguments = {"preset": "one-slot", "starts": ["random"], "shrink": False, "seed": 1}
    whole = hs.worst("oasis", "fifo", work_limit=32, **arguments)
    hs.worst("oasis", "fifo", work_limit=16, folder=tmp_path, **arguments)
    rest = hs.worst("oasis", "fifo", work_limit=32, folder=tmp_path, resume=True, **arguments)
    assert rest.instance == whole.instance
    assert rest.search["evaluations"] == whole.search["evaluations"] == 32
    with pytest.raises(InputError, match=r"resume\.seed: 2: must be as before: 1"):
        hs.worst(
            "oasis", "fifo", work_limit=32, folder=tmp_path, resume=True, **{**arguments, "seed": 2}
        )


def test_a_killed_search_goes_on_from_its_last_state(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def kill(search):
        if search.generation == 3:
            raise Killed

    monkeypatch.setattr(api, "STATE_SECONDS", 0.0)
    question = {"preset": "machines", "starts": ["random"], "shrink": False, "seed": 5}
    whole = hs.worst("gang", "fifo", work_limit=120, **question)
    with pytest.raises(Killed):
        hs.worst("gang", "fifo", work_limit=120, folder=tmp_path, on_progress=kill, **question)
    assert not (tmp_path / "witness.json").exists()
    rest = hs.worst("gang", "fifo", work_limit=120, folder=tmp_path, resume=True, **question)
    assert rest.instance == whole.instance
    assert rest.search["counts"] == whole.search["counts"]


def test_an_interrupt_keeps_what_was_found_and_resuming_goes_on(tmp_path):
    def press(search):
        signal.raise_signal(signal.SIGINT)

    arguments = {"preset": "one-slot", "starts": ["random"], "seed": 1, "folder": tmp_path}
    stopped = hs.worst("oasis", "fifo", time_limit=600, on_progress=press, **arguments)
    assert stopped.search["ended"] == "interrupted"
    assert stopped.proven > 1
    done = stopped.search["evaluations"]
    rest = hs.worst("oasis", "fifo", work_limit=done + 4, resume=True, shrink=False, **arguments)
    assert rest.search["evaluations"] == done + 4
    assert rest.proven >= stopped.proven


def test_who_earns_nothing_has_no_bound():
    witness = hs.worst("oasis", TakesNobody, preset="one-slot", work_limit=40)
    assert witness.proven == math.inf
    assert witness.search["ended"] == "unbounded"
    assert len(witness.instance.jobs) == 1
    assert json.loads(json.dumps(witness.to_dict()["ratio"]))["lower"] == "inf"


def test_an_algorithm_against_another():
    witness = hs.worst("oasis", TakesNobody, "fifo", preset="one-slot", work_limit=20)
    assert witness.against == witness.reference_by == "fifo"
    assert witness.proven == math.inf
    assert witness.theorem is None
    turned = hs.worst("oasis", "fifo", TakesNobody, preset="one-slot", work_limit=20, shrink=False)
    assert turned.proven == 0


def test_an_algorithm_that_always_fails_is_one_line():
    with pytest.raises(SolveFailed, match="Fails has a ratio on no candidate"):
        hs.worst("oasis", Fails, preset="one-slot", work_limit=20)


def test_a_bound_ends_the_race_of_a_candidate_that_cannot_win():
    space = find_space("batchsched")
    problem = Problem.of(space, "wspt")
    data = space.normal(copied(space.base))
    exact = evaluate(problem, data)
    assert exact.stage == EXACT
    raced = evaluate(problem, data, threshold=1e6)
    assert raced.stage == BOUNDED
    assert exact.score <= raced.score + 1e-9 < 1e6
    assert evaluate(problem, data, threshold=exact.score).stage == EXACT


@pytest.mark.parametrize(
    ("sense", "objective", "reference", "ratio"),
    [("min", 30, 10, 3), ("max", 5, 20, 4), ("max", 0, 0, 1), ("max", -1, 2, math.inf)],
)
def test_quotients(sense, objective, reference, ratio):
    assert quotient(sense, objective, reference) == ratio


def test_shrinking_keeps_the_ratio_and_removes_the_rest():
    space = find_space("oasis", "one-slot")
    problem = Problem.of(space, "fifo")
    data = copied(space.base)
    space.resize(data, "jobs", 4)
    for job, value in zip(data["jobs"], (1.3, 7.9, 9.4, 2), strict=True):
        job["utility"]["intercept"] = value
    data = space.normal(data)
    score = evaluate(problem, data).score
    made, tried = shrink(space, data, lambda item: evaluate(problem, item), 0.99 * score)
    assert evaluate(problem, made).score >= 0.99 * score
    assert len(made["jobs"]) == 2
    assert complexity(space, made) < complexity(space, data)
    assert 0 < tried < 200


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"algorithm": "nobody"}, "algorithm: nobody: must be one of"),
        ({"seed": -1}, "seed: -1: must be an integer"),
        ({"time_limit": 0}, "time_limit: 0: must be a number of seconds above 0"),
        ({"work_limit": 0}, "work_limit: 0: must be a count"),
        ({"keep": 2}, "keep: 2: must be above 0"),
        ({"settings": {"speed": 1}}, "set.speed: 1: must be a range (jobs"),
        ({"starts": ["nowhere.json"]}, "start: nowhere.json: must be gadgets, random"),
        ({"resume": True}, "resume: True: needs the folder"),
        ({"seeds": 0}, "seeds: 0: must be at least 1"),
    ],
)
def test_wrong_questions_are_one_line(arguments, line):
    given = {"algorithm": "fifo", "preset": "one-slot", "work_limit": 5, **arguments}
    with pytest.raises(InputError) as error:
        hs.worst("oasis", **given)
    assert line in str(error.value)

"""The search for the worst instance: known answers, determinism, resuming, witnesses."""

import json
import math
import shutil
from copy import deepcopy

import pytest

import hindsched as hs
from hindsched.analysis.worst import Question, check_witness, complexity, evaluate, shrunk
from hindsched.errors import InputError
from hindsched.instances.io import read_json, write_json
from hindsched.instances.search_space import find_space
from hindsched.online.protocol import Decision, OnlineAlgorithm


class TakesNobody(OnlineAlgorithm):
    """Refuses every job."""

    def start(self, environment):
        pass

    def step(self, slot, arrivals):
        return Decision(rejected=[job.name for job in arrivals])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("witness")
    witness = hs.worst("oasis", "fifo", preset="one-slot", work_limit=64, folder=folder)
    return witness, folder


def test_first_come_first_served_loses_all_but_the_first_value(found):
    witness, _ = found
    assert 5 < witness.proven <= 10
    assert len(witness.instance.jobs) == 2
    assert witness.optimum.is_proven
    assert "not served instead of in slot 1" in witness.explain()


def test_the_folder_is_checked_by_anyone(found, tmp_path):
    witness, folder = found
    checked = check_witness(folder)
    assert checked["ratio"] == checked["claimed"] == witness.proven
    claim = read_json(folder / "witness.json")
    claim["ratio"]["lower"] = 11.5
    forged = tmp_path / "forged"
    shutil.copytree(folder, forged)
    write_json(claim, forged / "witness.json")
    with pytest.raises(InputError, match="the schedules have the ratio"):
        check_witness(forged)


def test_same_seed_same_search_resumed_or_not_whatever_the_workers(tmp_path):
    given = {"preset": "one-slot", "shrink": False, "seed": 3}
    whole = hs.worst("oasis", "fifo", work_limit=24, **given)
    hs.worst("oasis", "fifo", work_limit=16, folder=tmp_path, **given)
    rest = hs.worst(
        "oasis", "fifo", work_limit=24, folder=tmp_path, resume=True, workers=2, **given
    )
    assert rest.instance == whole.instance
    assert rest.search["evaluations"] == whole.search["evaluations"] == 24
    with pytest.raises(InputError, match="must be as before"):
        hs.worst("oasis", "drf", work_limit=24, folder=tmp_path, resume=True, **given)


def test_who_earns_nothing_has_no_bound_and_an_algorithm_against_another():
    witness = hs.worst("oasis", TakesNobody, "fifo", preset="one-slot", work_limit=8, shrink=False)
    assert witness.proven == math.inf
    assert witness.against == witness.reference_by == "fifo"
    assert witness.proven == math.inf
    assert json.loads(json.dumps(witness.to_dict()["ratio"]))["lower"] == "inf"


def test_shrinking_keeps_the_ratio_and_removes_the_rest():
    space = find_space("oasis", "one-slot")
    question = Question(space, "fifo")
    data = deepcopy(space.base)
    space.resize(data, "jobs", 4)
    for job, value in zip(data["jobs"], (1.3, 7.9, 9.4, 2), strict=True):
        job["utility"]["intercept"] = value
    data = space.normal(data)
    least = 0.99 * evaluate(question, data)[0]
    made = shrunk(question, data, least, lambda: False)
    assert evaluate(question, made)[0] >= least
    assert len(made["jobs"]) == 2
    assert complexity(space, made) < complexity(space, data)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"algorithm": "nobody"}, "algorithm: nobody: must be one of"),
        ({"seed": -1}, "seed: -1: must be at least 0"),
        ({"time_limit": 0}, "time_limit: 0: must be a number of seconds above 0"),
        ({"work_limit": 0}, "work_limit: 0: must be at least 1"),
        ({"settings": {"speed": 1}}, "set.speed: 1: must be a range (jobs"),
        ({"resume": True}, "resume: True: needs the folder"),
        ({"seeds": 0}, "seeds: 0: must be at least 1"),
    ],
)
def test_wrong_questions_are_one_line(arguments, line):
    given = {"algorithm": "fifo", "preset": "one-slot", "work_limit": 5, **arguments}
    with pytest.raises(InputError) as error:
        hs.worst("oasis", **given)
    assert line in str(error.value)

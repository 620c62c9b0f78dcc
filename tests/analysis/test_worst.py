"""The search for the worst instance: known answers, determinism, resuming, witnesses."""

import json
import math
import shutil

import numpy as np
import pytest

import hindsched as hs
from hindsched.analysis.local_search import shrink
from hindsched.analysis.worst import Question, check_witness
from hindsched.errors import InputError
from hindsched.instances.base import FAMILIES
from hindsched.instances.io import read_json, write_json
from hindsched.instances.search_space import TIMES, find_space, leaves
from hindsched.online.protocol import Decision, OnlineAlgorithm

ONE_GPU = {"gpus": 1, "jobs.weight": 1, "duration": [1, 50]}


class TakesNobody(OnlineAlgorithm):
    """Refuses every job."""

    def start(self, environment):
        pass

    def step(self, slot, arrivals):
        return Decision(rejected=[job.name for job in arrivals])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("witness")
    witness = hs.worst("gang", "fifo", ranges=ONE_GPU, work_limit=80, folder=folder)
    return witness, folder


def test_first_come_first_served_lets_short_jobs_wait(found):
    witness, _ = found
    assert 1.5 < witness.proven <= 4
    assert witness.optimum.is_proven
    assert " jobs, fifo costs " in witness.explain()


@pytest.mark.parametrize("family", FAMILIES)
def test_candidates_keep_to_their_ranges_and_the_familys_rules(family):
    space = find_space(family).with_ranges({"jobs": [2, 3]})
    random = np.random.default_rng(1)
    data = space.candidate(random)
    for _ in range(30):
        data = space.candidate(random, data)
        assert space.instance(data).family == family
        assert len(data["jobs"]) in (2, 3)
        for path, holder, key in leaves(data):
            if space.varies(path) and path.split(".")[-1] not in TIMES:
                assert space.spans[path].low <= holder[key] <= space.spans[path].high


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
    given = {"shrink": False, "seed": 3}
    whole = hs.worst("gang", "fifo", work_limit=24, **given)
    hs.worst("gang", "fifo", work_limit=16, folder=tmp_path, **given)
    rest = hs.worst("gang", "fifo", work_limit=24, folder=tmp_path, resume=True, workers=2, **given)
    assert rest.instance == whole.instance
    assert rest.search["evaluations"] == whole.search["evaluations"] == 24
    with pytest.raises(InputError, match="must be as before"):
        hs.worst("gang", "sjf", work_limit=24, folder=tmp_path, resume=True, **given)
    with pytest.raises(InputError, match="holds results already"):
        hs.worst("gang", "fifo", work_limit=1, folder=tmp_path, **given)
    write_json([1], tmp_path / "search.json")
    with pytest.raises(InputError, match="must be as before"):
        hs.worst("gang", "fifo", work_limit=24, folder=tmp_path, resume=True, **given)


def test_who_earns_nothing_has_no_bound_and_an_algorithm_against_another():
    witness = hs.worst("oasis", TakesNobody, "fifo", work_limit=32, shrink=False)
    assert witness.against == witness.reference_by == "fifo"
    assert witness.proven == math.inf
    assert json.loads(json.dumps(witness.to_dict()["ratio"]))["lower"] == "inf"


def test_shrinking_keeps_the_ratio_and_removes_the_rest():
    space = find_space("gang").with_ranges(ONE_GPU)
    question = Question(space, "fifo")
    random = np.random.default_rng(0)
    data = max(
        (space.candidate(random) for _ in range(20)),
        key=lambda candidate: question.evaluate(candidate)[0],
    )
    score = question.evaluate(data)[0]
    made = shrink(question, data, score, lambda tried: False)
    assert question.evaluate(made)[0] >= 0.99 * score
    assert question.complexity(made) < question.complexity(data)
    assert {*made["jobs"][0]} <= {"name", "submit", "gpus", "duration", "weight"}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"algorithm": "nobody"}, "algorithm: nobody: must be one of"),
        ({"seed": -1}, "seed: -1: must be at least 0"),
        ({"time_limit": 0}, "time_limit: 0: must be a number of seconds above 0"),
        ({"work_limit": 0}, "work_limit: 0: must be at least 1"),
        ({"settings": {"speed": 1}}, "set.speed: 1: must be a range (jobs"),
        ({"ranges": {"duration": [3, 2]}}, "set.duration: [3, 2]: must be a number or [low"),
        ({"ranges": {"jobs": 0}}, "set.jobs: 0: must be a count of at least 1 or [low, high]"),
        ({"preset": "one-slot"}, "preset: one-slot: gang has the presets small"),
        ({"resume": True}, "resume: True: needs the folder"),
        ({"seeds": 0}, "seeds: 0: must be at least 1"),
    ],
)
def test_wrong_questions_are_one_line(arguments, line):
    given = {"algorithm": "fifo", "work_limit": 5, **arguments}
    with pytest.raises(InputError) as error:
        hs.worst("gang", **given)
    assert line in str(error.value)

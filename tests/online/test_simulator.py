"""The simulator against algorithms that cheat or wait for ever."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

import hindsched as hs
import hindsched.online
from hindsched.errors import InputError, Refused, SolveFailed
from hindsched.instances.catalogue import named_instance
from hindsched.instances.generators.registry import generate
from hindsched.instances.io import parse_instance
from hindsched.limits import time_limit
from hindsched.online.protocol import NOTHING, Capabilities, Decision, OnlineAlgorithm
from hindsched.online.registry import build_algorithm
from hindsched.online.simulator import simulate


@pytest.fixture(scope="module")
def instance():
    """Job j1 arrives in slot 1; `fifo` serves jobs and completes some."""
    return named_instance("oasis-t10-i10-h25-s0")


class Honest(OnlineAlgorithm):
    """Plays what `oasis` plays, with rows of its own that a subclass may tamper with."""

    def start(self, environment):
        self.environment = environment
        self.inner = build_algorithm("oasis", "oasis", {})
        self.inner.start(environment)
        self.given = {}

    def step(self, slot, arrivals):
        decision = self.inner.step(slot, arrivals)
        rows = {job: [dict(row) for row in rows] for job, rows in decision.assignments.items()}
        self.given |= rows
        return Decision(rows, decision.admitted, decision.rejected)


def tampered(change):
    """Class of an algorithm that changes every row before it gives it away."""

    class Tampered(Honest):
        def step(self, slot, arrivals):
            decision = super().step(slot, arrivals)
            for rows in decision.assignments.values():
                for row in rows:
                    change(row, slot)
            return decision

    return Tampered()


def answering(answer):
    """Return an algorithm whose first decision is ``answer(slot, arrivals)``."""

    class Answering(OnlineAlgorithm):
        def start(self, environment):
            pass

        def step(self, slot, arrivals):
            return answer(slot, arrivals) if arrivals else NOTHING

    return Answering()


def counts(value):
    return lambda row, slot: row.update(workers=dict.fromkeys(row["workers"], value))


@pytest.mark.parametrize(
    "change",
    [
        counts(math.nan),
        counts(math.inf),
        counts(1.0),
        counts(True),
        lambda row, slot: row.update({"from": math.nan}),
        lambda row, slot: row.update({"from": float(slot)}),
        lambda row, slot: row.update({"from": str(slot)}),
        lambda row, slot: row.update({"to": row["from"] - 1}),
        lambda row, slot: row.update({"to": 10_000}),
        lambda row, slot: row.pop("from"),
        lambda row, slot: row.pop("to"),
        lambda row, slot: row.update(note="more"),
        lambda row, slot: row.update(workers={"no such server": 1}),
        lambda row, slot: row.update(workers=None),
    ],
)
def test_a_row_that_no_solution_file_holds_is_refused(instance, change):
    with pytest.raises(Refused) as refused:
        simulate(instance, tampered(change))
    assert refused.value.constraint == "row"


def late(slot, jobs):
    row = {"from": slot - 1, "to": slot, "workers": {}, "ps": {}}
    return Decision({jobs[0].name: [row]}) if slot > 1 else NOTHING


def rows(value):
    return lambda slot, jobs: Decision({jobs[0].name: value})


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (late, "by irrevocable at job .*row begins in the past, at"),
        (lambda slot, jobs: None, "by decision at slot .*NoneType is no Decision"),
        (lambda slot, jobs: {"assignments": {}}, "by decision at slot .*dict is no Decision"),
        (lambda slot, jobs: Decision([("j1", [])]), "by decision at slot .*assignments must map"),
        (lambda slot, jobs: Decision(rejected=jobs[0].name), "rejected must be a list"),
        (lambda slot, jobs: Decision(admitted=(1,)), "admitted must be a list of job names"),
        (rows(None), "by row at .*rows must be a list of objects"),
        (rows({"from": 1}), "by row at .*rows must be a list of objects"),
        (rows([["from", 1]]), "by row at .*rows must be a list of objects"),
        (lambda slot, jobs: Decision({"j10": []}), "by no peeking at job j10"),
        (lambda slot, jobs: Decision(admitted=("j10",)), "by no peeking at job j10"),
        (lambda slot, jobs: Decision(rejected=("nobody",)), "by no peeking at job nobody"),
        (
            lambda slot, jobs: Decision(admitted=(jobs[0].name,), rejected=(jobs[0].name,)),
            "by irrevocable",
        ),
    ],
)
def test_a_decision_that_is_none_is_refused(instance, answer, text):
    with pytest.raises(Refused, match=text):
        simulate(instance, answering(answer))


class RejectsAgain(Honest):
    """Rejects in every step what `pick` names among the jobs seen."""

    def __init__(self, pick):
        self.pick = pick
        self.seen = []

    def step(self, slot, arrivals):
        decision = super().step(slot, arrivals)
        picked = tuple(job for job in self.seen if (job in self.given) == self.pick)
        self.seen += [job.name for job in arrivals]
        return Decision(decision.assignments, decision.admitted, (*decision.rejected, *picked))


@pytest.mark.parametrize(
    ("served", "text"), [(True, "the job was accepted"), (False, "the job was rejected before")]
)
def test_what_was_decided_is_not_decided_again(instance, served, text):
    with pytest.raises(Refused, match=f"by irrevocable at .*{text}"):
        simulate(instance, RejectsAgain(served))


class TampersLater(Honest):
    """Empties, and multiplies by 100, the rows that it gave in earlier slots."""

    def step(self, slot, arrivals):
        for rows in self.given.values():
            for row in rows:
                row["workers"] = {name: 100 * n for name, n in row["workers"].items()}
                row["ps"].clear()
            rows.clear()
        return super().step(slot, arrivals)


class ChangesJobs(Honest):
    """Makes each job it is shown tiny, past what frozen records prevent, after deciding on it."""

    def step(self, slot, arrivals):
        decision = super().step(slot, arrivals)
        for job in arrivals:
            job.__dict__["epochs"] = 1
            job.worker.clear()
        return decision


class ChangesTheCluster(Honest):
    """Decides on a cluster of a thousandfold capacity."""

    def start(self, environment):
        for role in ("worker_capacity", "ps_capacity"):
            environment.cluster.__dict__[role] = 1000 * getattr(environment.cluster, role)
        super().start(environment)


@pytest.mark.parametrize("cheat", [TampersLater, ChangesJobs])
def test_what_an_algorithm_does_to_its_objects_changes_nothing(instance, cheat):
    honest = simulate(instance, Honest())
    assert honest.objective > 0
    cheated = simulate(instance, cheat())
    assert cheated.violations == []
    assert cheated.solution.assignments() == honest.solution.assignments()
    assert cheated.objective == honest.objective
    assert instance.sha256() == named_instance("oasis-t10-i10-h25-s0").sha256()


def test_a_changed_cluster_is_only_the_algorithm_s_own(instance):
    """What was decided on a cluster that does not exist meets the real one."""
    before = instance.sha256()
    with pytest.raises(Refused, match=r"by \([45]\)"):
        simulate(instance, ChangesTheCluster())
    assert instance.sha256() == before


def test_the_simulator_has_the_last_word_in_the_report_and_on_what_is_relaxed(instance):
    class Boasts(Honest):
        def step(self, slot, arrivals):
            type(self).relaxes_constraints = True
            return super().step(slot, arrivals)

        def report(self):
            return {"unfinished": "nothing", "mine": 1}

    run = simulate(instance, Boasts())
    assert run.in_feasible_set is True
    assert run.report["unfinished"] != "nothing"
    assert run.report["mine"] == 1


@pytest.mark.parametrize("seed", [-1, 0.5, "0", None, True])
def test_a_seed_that_is_none_is_named(instance, seed):
    with pytest.raises(InputError, match=r"^seed: "):
        simulate(instance, "fifo", seed=seed)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [nested(100_000), object(), {"a": {1, 2}}])
def test_a_row_holds_nothing_that_no_file_could_hold(instance, value):
    with pytest.raises(Refused, match=r"by row at .*nothing that a row could hold"):
        simulate(instance, tampered(lambda row, slot: row.update(workers=value)))


def test_durations_are_not_told_to_a_card_that_turns_in_the_middle():
    class Turns(OnlineAlgorithm):
        card = Capabilities(knows_durations=False)

        def start(self, environment):
            self.has_duration = []

        def step(self, slot, arrivals):
            self.card = Capabilities()
            self.has_duration += [hasattr(job, "duration") for job in arrivals]
            return Decision({job.name: [{"from": slot, "gpus": job.gpus}] for job in arrivals})

    gang = hs.generate("gang", preset="small", seed=1, jobs=3)
    roomy = gang.with_fields(gpus=1000)
    mine = Turns()
    simulate(roomy, mine)
    assert mine.has_duration == [False] * 3


EXAMPLES = {
    "oasis": "oasis-t10-i10-h10-s0",
    "batchsched": "batchsched-ps-j5-s200",
    "astraea": "astraea-j5-s40",
    "edgecloud": "edgecloud-j5-s601",
    "gang": "gang/small/j6-s1",
}
MILLIONS = 3_000_000


def example(family, **changed):
    return hs.named_instance(EXAMPLES[family]).with_fields(**changed)


def lone_job(**changed):
    """A job of batchsched alone, whose work the change may make long."""
    data = example("batchsched").to_dict()
    data["jobs"] = [data["jobs"][0] | {"arrival": 1} | changed]
    data["horizon"] = 3
    return parse_instance(data)


class Waits(OnlineAlgorithm):
    """Plays a schedule of `fifo` from a later slot on, or never."""

    def __init__(self, row, start):
        self.row, self.first = row, start

    def start(self, environment):
        self.name = None

    def step(self, slot, arrivals):
        for job in arrivals:
            self.name = job.name
        if slot != self.first:
            return NOTHING
        length = self.row["to"] - self.row["from"]
        return Decision({self.name: [self.row | {"from": slot, "to": slot + length}]})


@pytest.mark.parametrize("family", ["oasis", "batchsched", "astraea", "edgecloud"])
def test_millions_of_slots_are_refused_before_anything_is_built(family):
    with pytest.raises(InputError, match="3000000 slots: must be at most 1000000 where no limit"):
        simulate(example(family, horizon=MILLIONS), "reoptimise")


def test_events_are_no_slots():
    data = example("gang").to_dict()
    data["horizon"] += 2 * MILLIONS
    for job in data["jobs"]:
        job["submit"] += MILLIONS
        job["deadline"] = None
    assert simulate(parse_instance(data), "fifo").violations == []


def test_what_somebody_asked_for_is_played(monkeypatch):
    monkeypatch.setattr("hindsched.limits.SLOTS_WITHOUT_LIMIT", 3)
    with pytest.raises(InputError, match="must be at most 3 where no limit"):
        simulate(example("oasis"), "fifo")
    with time_limit(600):
        assert simulate(example("oasis"), "fifo").violations == []


def test_only_what_does_nothing_is_stuck(monkeypatch):
    """A job that runs for long is none, nor one that begins late; one that never begins is."""
    monkeypatch.setattr("hindsched.online.simulator.STEPS_WITHOUT_PROGRESS", 5)
    instance = lone_job(epochs=200)
    run = simulate(instance, "drf")
    row = run.solution.to_dict()["jobs"][0]["assignments"][0]
    assert row["to"] - row["from"] > instance.horizon + 5
    horizon = instance.horizon
    assert simulate(instance, Waits(row, start=5 * horizon)).violations == []
    with pytest.raises(SolveFailed, match="left jobs unfinished for"):
        simulate(instance, Waits(row, start=None))


def test_no_algorithm_reads_a_clock() -> None:
    """Nothing of the online floor but the simulator, which times, and processes asks the time.

    `reoptimise` may be given seconds for a solve, and has none unless it is asked.
    """
    root = Path(hindsched.online.__file__).parent
    asking, limited = set(), set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in getattr(node, "names", [])]
            is_import = isinstance(node, ast.Import | ast.ImportFrom)
            if is_import and "time" in (getattr(node, "module", None), *names):
                asking.add(str(path.relative_to(root)))
            if isinstance(node, ast.keyword) and node.arg == "time_limit":
                limited.add(str(path.relative_to(root)))
    assert asking <= {"simulator.py", "external.py"}
    assert limited <= {"engines/reoptimise.py", "oasis/algorithms.py"}
    assert build_algorithm("oasis", "reoptimise").options.time_limit is None


@pytest.mark.parametrize(
    ("algorithm", "settings", "reached", "limit"),
    [
        ("reoptimise", {"nodes": 1, "gap": 0.0}, "limits_reached", "nodes_a_solve"),
        ("dual-price", {"iterations": 1}, "relaxations_without_duals", "iterations_a_relaxation"),
    ],
)
def test_programs_stop_by_counts_and_say_so(algorithm, settings, reached, limit):
    contended = generate("oasis", "small", 1, jobs=6, horizon=6)
    limited, again = (simulate(contended, algorithm, settings=settings) for _ in range(2))
    assert limited.report[reached] > 0
    assert limited.report[limit] == 1
    assert limited.solution.assignments() == again.solution.assignments()

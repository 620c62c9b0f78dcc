"""The simulator against algorithms that cheat: refused by name, or without any effect."""

import math

import pytest

import hindsched as hs
from hindsched.errors import InputError, Refused
from hindsched.instances.catalogue import known_instance
from hindsched.online.protocol import NOTHING, Capabilities, Decision, OnlineAlgorithm
from hindsched.online.registry import build_algorithm
from hindsched.online.simulator import simulate


@pytest.fixture(scope="module")
def instance():
    """Job j1 arrives in slot 1; `fifo` serves jobs and completes some."""
    return known_instance("oasis-t10-i10-h25-s0")


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


def told(answer):
    """Return an algorithm whose first decision is ``answer(slot, arrivals)``."""

    class Told(OnlineAlgorithm):
        def start(self, environment):
            pass

        def step(self, slot, arrivals):
            return answer(slot, arrivals) if arrivals else NOTHING

    return Told()


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


def test_what_breaks_a_constraint_is_refused_by_its_number(instance):
    with pytest.raises(Refused, match="must be an integer in 0"):
        simulate(instance, tampered(counts(-1)))


def test_deciding_in_the_past_is_refused(instance):
    def late(slot, jobs):
        row = {"from": slot - 1, "to": slot, "workers": {}, "ps": {}}
        return Decision({jobs[0].name: [row]}) if slot > 1 else NOTHING

    with pytest.raises(Refused, match=r"by irrevocable at job .*row begins in the past, at"):
        simulate(instance, told(late))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda slot, jobs: None, "NoneType is no Decision"),
        (lambda slot, jobs: {"assignments": {}}, "dict is no Decision"),
        (lambda slot, jobs: Decision([("j1", [])]), "assignments must map"),
        (lambda slot, jobs: Decision(rejected=jobs[0].name), "rejected must be a list"),
        (lambda slot, jobs: Decision(admitted=(1,)), "admitted must be a list of job names"),
    ],
)
def test_a_decision_that_is_none_is_refused(instance, answer, text):
    with pytest.raises(Refused, match=f"by decision at slot .*{text}"):
        simulate(instance, told(answer))


@pytest.mark.parametrize("rows", [None, {"from": 1}, [["from", 1]], "row", [None]])
def test_rows_that_are_no_list_of_objects_are_refused(instance, rows):
    with pytest.raises(Refused, match=r"by row at .*rows must be a list of objects"):
        simulate(instance, told(lambda slot, jobs: Decision({jobs[0].name: rows})))


@pytest.mark.parametrize("kind", ["assignments", "admitted", "rejected"])
@pytest.mark.parametrize("name", ["j10", "no such job"])
def test_a_job_that_has_not_arrived_is_refused(instance, kind, name):
    named = {name: []} if kind == "assignments" else (name,)
    with pytest.raises(Refused, match=f"by no peeking at job {name}"):
        simulate(instance, told(lambda slot, jobs: Decision(**{kind: named})))


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


def test_a_job_is_not_admitted_and_rejected_at_once(instance):
    def both(slot, jobs):
        names = tuple(job.name for job in jobs)
        return Decision(admitted=names, rejected=names)

    with pytest.raises(Refused, match="by irrevocable"):
        simulate(instance, told(both))


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
    assert instance.sha256() == known_instance("oasis-t10-i10-h25-s0").sha256()


def test_a_changed_cluster_is_only_the_algorithm_s_own(instance):
    """What was decided on a cluster that does not exist meets the real one."""
    before = instance.sha256()
    with pytest.raises(Refused, match=r"by \([45]\)"):
        simulate(instance, ChangesTheCluster())
    assert instance.sha256() == before


def test_estimates_given_by_the_caller_stay_the_caller_s(instance):
    class Clears(Honest):
        def start(self, environment):
            super().start(environment)
            environment.estimates.clear()

    from hindsched.online.registry import declared_estimates

    given = declared_estimates(instance)
    copy = dict(given)
    simulate(instance, Clears(), estimates=given)
    assert given == copy


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


class MovesToTheFront(Honest):
    """Hands out rows that refuse to be copied, and in the last slot moves them ahead."""

    class Row(dict):
        def __deepcopy__(self, memo):
            return self

    def start(self, environment):
        super().start(environment)
        self.kept, self.last = [], environment.cluster.horizon

    def step(self, slot, arrivals):
        decision = super().step(slot, arrivals)
        rows = {
            job: [self.Row(row) for row in given] for job, given in decision.assignments.items()
        }
        self.kept += [row for given in rows.values() for row in given]
        if slot == self.last:
            for row in self.kept:
                row.update({"from": 1, "to": 1 + row["to"] - row["from"]})
        return Decision(rows)


def test_rows_of_a_class_that_refuses_to_be_copied_are_copied(instance):
    honest = simulate(instance, Honest())
    cheated = simulate(instance, MovesToTheFront())
    assert cheated.solution.assignments() == honest.solution.assignments()


class TwoFaced(dict):
    """Names no job when asked for its keys, one that has not arrived when asked for its items."""

    def __iter__(self):
        return iter(())

    def items(self):
        return [("j10", [{"from": 9, "to": 9, "workers": {}, "ps": {}}])]


def test_what_counts_of_a_mapping_is_what_was_checked(instance):
    def first(slot, jobs):
        return Decision(TwoFaced())

    with pytest.raises(Refused, match="by no peeking at job j10"):
        simulate(instance, told(first))


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [nested(100_000), object(), {"a": {1, 2}}])
def test_a_row_holds_nothing_that_no_file_could_hold(instance, value):
    with pytest.raises(Refused, match=r"by row at job .*nothing that a row could hold"):
        simulate(instance, tampered(lambda row, slot: row.update(workers=value)))


class SaysItBetweenTimes(Honest):
    """Calls itself clairvoyant in `start` and an online algorithm again before anybody asks."""

    def start(self, environment):
        super().start(environment)
        self.card = Capabilities(clairvoyant=True)

    def foresee(self, jobs):
        raise AssertionError("the future was told")

    def step(self, slot, arrivals):
        self.card = Capabilities()
        return super().step(slot, arrivals)


def test_what_an_algorithm_may_know_is_settled_before_it_starts(instance):
    assert simulate(instance, SaysItBetweenTimes()).mark == ""


def test_durations_are_not_told_to_a_card_that_turns_in_the_middle():
    class Turns(OnlineAlgorithm):
        card = Capabilities(knows_durations=False)

        def start(self, environment):
            self.told = []

        def step(self, slot, arrivals):
            self.card = Capabilities()
            self.told += [hasattr(job, "duration") for job in arrivals]
            return Decision({job.name: [{"from": slot, "gpus": job.gpus}] for job in arrivals})

    gang = hs.generate("gang", preset="small", seed=1, jobs=3)
    roomy = gang.with_fields(gpus=1000)
    mine = Turns()
    simulate(roomy, mine)
    assert mine.told == [False] * 3

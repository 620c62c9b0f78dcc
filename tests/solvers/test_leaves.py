"""What leaves of an oasis program remember, and who hears of their schedules."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Event
from typing import cast

import pytest

import hindsched as hs
from hindsched.errors import SolveFailed
from hindsched.solutions.base import build_solution
from hindsched.solvers.door.kept import keep, keeping, telling
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.families.oasis import methods
from hindsched.solvers.families.oasis.conflicts import Leaves
from hindsched.solvers.methods import auto
from hindsched.solvers.methods.auto import _hear
from hindsched.solvers.methods.duel import Duel
from hindsched.solvers.team import JobUpdates, Member
from hindsched.solvers.tree.method import growing_from

TORN = hs.generate("oasis", "paper", 7, jobs=4, horizon=5, servers=3, max_duration=3)
"""The ends that its program promises first cannot be kept."""


def test_leaves_know_what_is_weaker_than_kept_and_stronger_than_impossible() -> None:
    leaves = Leaves(TORN, SolveOptions())
    everybody = dict.fromkeys(range(4), 5)
    assert leaves.known(everybody) is None
    assert leaves.decide(everybody, None).status is Status.INFEASIBLE
    assert leaves.known({**everybody, 0: 4}) is False
    assert leaves.known({0: 5, 1: 5}) is None
    kept = next(job for job in range(4) if leaves.decide({job: 4}, None).has_point)
    assert leaves.known({kept: 5}) is True
    assert leaves.known({}) is True
    assert leaves.known({kept: 3}) is None
    assert leaves.best is not None
    assert leaves.best.is_feasible()


def test_what_others_learned_is_cut_off_once() -> None:
    leaves, everybody = Leaves(TORN, SolveOptions()), dict.fromkeys(range(4), 5)
    assert leaves.learn(everybody)
    assert not leaves.learn(everybody)
    assert not leaves.learn({**everybody, 0: 4})
    assert leaves.known(everybody) is False
    options = SolveOptions(time_limit=60.0)
    alone = methods.milp(TORN, "standard", options)
    told = methods.milp(TORN, "standard", options, lessons=leaves.impossible)
    assert told.objective == alone.objective
    assert told.stopped_by is alone.stopped_by is StoppedBy.GAP
    assert told.details["conflict_cuts"] == alone.details["conflict_cuts"] + 1


def test_the_program_hears_what_the_tree_beside_it_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[object] = []
    conflict = dict.fromkeys(range(4), 5)

    def prove(duel: Duel, known: Result, member: Member) -> None:
        member.say(JobUpdates(lessons=[conflict]))

    def program(*arguments: object, lessons: list[object], **keywords: object) -> Result:
        until = time.monotonic() + 10
        while not lessons and time.monotonic() < until:
            time.sleep(0.01)
        heard.extend(lessons)
        raise SolveFailed("nothing more to do")

    monkeypatch.setattr(auto, "_prove", prove)
    monkeypatch.setattr(methods, "milp", program)
    hs.solve(TORN, time_limit=20.0, threads=2)
    assert heard == [conflict]


def test_no_leaf_is_decided_twice_while_conflicts_shrink() -> None:
    leaves = Leaves(TORN, SolveOptions())
    everybody = dict.fromkeys(range(4), 5)
    assert leaves.decide(everybody, None).status is Status.INFEASIBLE
    first = leaves.conflicts(everybody, everybody, lambda: False)
    count = leaves.count
    assert count > 1
    assert leaves.conflicts(everybody, everybody, lambda: False) == first
    assert leaves.count == count
    for conflict in first:
        assert leaves.known(conflict) is False


def test_the_program_takes_the_schedules_of_its_smaller_conflicts() -> None:
    heard: list[Result] = []
    options, nobody = SolveOptions(time_limit=60), build_solution(TORN, {})
    with telling(heard.append):
        best = methods.milp(TORN, "standard", options, incumbent=nobody).objective
    found = [result.objective for result in heard]
    assert found[0] == pytest.approx(best)
    assert found == sorted(found, key=float)


def test_who_is_told_hears_at_once_and_only_inside() -> None:
    result = hs.solve(TORN, "milp", time_limit=60)
    heard = []
    with keeping() as kept:
        with telling(heard.append):
            assert keep(result) is result
        keep(result)
    assert heard == [result]
    assert kept == [result, result]


def test_a_tree_closes_nodes_by_what_its_member_hears() -> None:
    best = hs.solve(TORN, time_limit=60).solution
    assert best is not None

    class Told:
        def heard(self) -> list[tuple[None, object]]:
            return [(None, None), (None, best.assignments())]

    interrupted = Event()
    duel = Duel(TORN, "standard", SolveOptions(time_limit=60), interrupted)
    known = replace(duel.run(0.0), solution=None)
    growing = growing_from(duel, known, interrupted)
    tree = growing._tree = growing._next_tree()
    assert tree is not None
    assert tree.objective is None
    _hear(cast(Member, Told()), duel, growing)
    assert tree.objective == best.objective()

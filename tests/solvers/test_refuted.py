"""Nodes that a solver refutes: taken last, no part of what it vouches for, proven all the same."""

from __future__ import annotations

from threading import Event

import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.families.oasis import nodes
from hindsched.solvers.families.oasis.nodes import EndsProgram
from hindsched.solvers.methods import auto
from hindsched.solvers.methods.base import serve_nobody
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.oracles.decisions import COMPLETES, NEVER, BranchDecision
from hindsched.solvers.oracles.restricted import RestrictedOracle
from hindsched.solvers.team import JobUpdates, Team
from hindsched.solvers.tree.branch_and_bound import BranchAndBound
from hindsched.solvers.tree.method import Growing
from hindsched.solvers.tree.node_program import NodeProgram
from tests.solvers.test_branch_and_bound import instance_of

PLATEAU = "oasis/small/t8-j8-h5-d4-s0"
"""All but a plateau of workers in slots, under ends that no schedule keeps, closes in 50 nodes."""


def tree_of(instance, program, nodes, rows="patterns"):
    oracle = build_oracle(instance, rows=rows)
    nobody = serve_nobody(instance, oracle.formulation)
    tree = BranchAndBound(
        oracle, np.zeros(oracle.rows.size), gap=1e-6, incumbent=nobody, program=program
    )
    tree.run(lambda: None if tree.nodes < nodes else 0.0)
    return tree


@pytest.fixture(scope="module")
def plateau():
    return tree_of(hs.named_instance(PLATEAU), EndsProgram, 80)


def test_ends_that_no_leaf_keeps_are_refuted_and_left_for_the_certificate(plateau):
    assert plateau.objective == pytest.approx(99.12124872550405)
    assert within_gap(plateau.objective, plateau.solver_bound, 1e-6)
    assert not plateau.is_closed
    certificate = plateau.certificate()
    assert certificate.bound > plateau.objective + 1  # the solver's word is no part of it
    verified = verify_certificate(plateau.oracle.instance, certificate.to_dict())
    assert verified.bound == certificate.bound


def test_the_sides_of_a_conflict_cover_its_node(plateau):
    """On the way to a refuted node each decision is a conflict's, and its other side stays open."""
    waiting = [plateau.root]
    refuted = []
    while waiting:
        node = waiting.pop()
        waiting += node.children
        refuted += [node] if node.refuted else []
        if node.children:
            assert len(node.children) == 2
            one, two = (child.decisions[-1] for child in node.children)
            assert one.other == two
        if node.refuted:
            assert all(child.refuted for child in node.children)
            assert plateau._program.refuting(node.decisions) == ()
    assert refuted


class Liar(NodeProgram):
    """Says of every node that no solution obeys it."""

    def refuting(self, decisions, shares=None):
        return ()


def test_a_wrong_word_delays_a_certificate_and_does_not_weaken_it():
    instance = instance_of("oasis-t10-i10-h25-s0")
    tree = tree_of(instance, Liar, 3, "groups")
    assert tree.objective == 0.0
    assert tree.solver_bound == pytest.approx(0.0, abs=1e-6)
    assert tree.bound > 182.3587
    nodes = NodeProgram(tree.oracle, 1.0, Event())
    assert nodes.refuting((), None) is None
    assert tree.certificate().bound > 182.3587


def test_the_node_in_hand_counts_as_open():
    """A listener that asks in the middle of the root does not hear that nothing is open."""
    instance = hs.named_instance(PLATEAU)
    oracle = build_oracle(instance, rows="patterns")
    nobody = serve_nobody(instance, oracle.formulation)
    tree = BranchAndBound(oracle, np.zeros(oracle.rows.size), gap=1e-6, incumbent=nobody)
    seen = []

    def ask():
        seen.append(tree.solver_bound)
        return None if tree.nodes < 2 else 0.0

    tree.run(ask)
    assert min(seen) > 99.2


def test_auto_takes_the_solvers_word_and_goes_on_with_the_tree(monkeypatch):
    """On one core the tree closes by the word of its leaves, then without it."""
    monkeypatch.setattr(auto, "SHARE_OF_TREE", 0.5)
    monkeypatch.setattr(auto, "MOST_OF_TREE", 30.0)  # units of work, none of the clock
    asked = []
    run = Growing.run

    def spy(growing, seconds_left):
        found = run(growing, seconds_left)
        asked.append((growing.is_proven, found.proof))
        return found

    monkeypatch.setattr(Growing, "run", spy)
    result = hs.solve(hs.named_instance("oasis/small/t8-j8-h8-d4-s1"), work_limit=8000)
    assert asked[0] == (True, "solver")
    assert asked[-1][1] == "certificate"
    assert result.certificate.bound == pytest.approx(result.objective, rel=2e-6)
    assert result.method == "prices+search+tree"
    assert result.objective == pytest.approx(180.20968583829284)


def test_a_member_tells_what_holds_by_a_solvers_word():
    instance = hs.named_instance(PLATEAU)
    closed = Event()
    team = Team(instance, instance.formulations[0], 1e-6, (), closed)
    with team:
        team.take(JobUpdates(objective=99.0, schedules={}, bound=100.0))
        assert not closed.is_set()
        team.take(JobUpdates(bound=99.0))
        assert closed.is_set()
        assert team.certificate is None


def test_a_conflict_is_asked_only_of_the_ends_that_are_open(plateau):
    conflict = min(plateau._program._leaves.impossible, key=len)
    (job, end), *others = conflict.items()
    decided = [BranchDecision.at_most(other, COMPLETES, latest) for other, latest in others]
    assert plateau._program.refuting(decided) is None
    full = [*decided, BranchDecision.at_most(job, COMPLETES, end)]
    assert plateau._program.refuting(full) == ()


def test_a_refuted_node_is_split_where_a_side_is_closed_at_once(plateau):
    """Such a side waits for nothing: it is a leaf with its own prices, beyond the cutoff."""
    closed = 0
    waiting = [plateau.root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.refuted and node.children and node.children[0].decisions[-1].feature != COMPLETES:
            first = node.children[0]
            own = RestrictedOracle(plateau.oracle, first.decisions)
            bounds = own.bound(first.prices), first.bound
            closed += not first.children and max(bounds) <= plateau._cutoff
    assert closed > 5


def test_nothing_is_closed_at_once_where_a_program_does_not_look():
    oracle = build_oracle(hs.named_instance(PLATEAU), rows="groups")
    program = NodeProgram(oracle, 1.0, Event())
    prices = np.zeros(oracle.rows.size)
    assert program.closing((), [], prices, 1.0, lambda: None) is None


def test_a_young_tree_does_not_learn_for_long(monkeypatch):
    """Making conflicts small takes a share of the tree's time at most."""
    instance = hs.named_instance(PLATEAU)
    program = EndsProgram(build_oracle(instance, rows="patterns"), 100.0, Event())
    time = [0.0]
    monkeypatch.setattr(nodes, "now", lambda: time[0])
    program._begun = 0.0
    monkeypatch.setattr(program, "completions", lambda job: [8, NEVER])
    allowed = []

    def conflicts(ends, last, out_of_time):
        begun = time[0]
        while not out_of_time():
            time[0] += 0.125
        allowed.append(time[0] - begun)
        return []

    monkeypatch.setattr(program._leaves, "conflicts", conflicts)
    for at in (1.0, 1.5, 100.0):
        time[0] = at
        program._learn({0: 8}, 0.5)
    assert allowed == [0.375, 0.125, 2.125]  # a quarter, what is left of it, four times the leaf's

"""The compact program of oasis nodes: a relaxation whose prices bound what decisions leave."""

from __future__ import annotations

import math
from threading import Event

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solvers.families.oasis.compact import CompactProgram
from hindsched.solvers.families.oasis.patterns import PatternOracle
from hindsched.solvers.families.oasis.restricted import IN_SLOT
from hindsched.solvers.oracles.decisions import COMPLETES, NEVER, BranchDecision, Feature
from hindsched.solvers.oracles.restricted import RestrictedOracle


def solved(
    oracle: PatternOracle, decisions: tuple[BranchDecision, ...]
) -> tuple[CompactProgram, float, float, bool]:
    """The program under decisions, its value, and what its prices prove."""
    compact = CompactProgram(oracle, 1e4, Event())
    for own in ((), decisions):  # patterns first: without any nothing can be made to run
        restricted = RestrictedOracle(oracle, own)
        compact.restrict(restricted.limits)
        for _ in range(100):
            found = compact.solve(None)
            assert found is not None
            value, prices, whole = found
            if not compact.add_patterns(prices):
                break
    return compact, value, restricted.bound(prices), whole


@pytest.mark.parametrize("seed", range(4))
def test_prices_prove_what_the_program_says_or_more(seed: int) -> None:
    instance = hs.generate("oasis", seed=seed, jobs=5, servers=3, horizon=6)
    assert isinstance(instance, OasisInstance)
    oracle = PatternOracle(instance)
    optimum = hs.solve(instance, "milp", threads=1)
    assert optimum.solution is not None
    _, value, bound, whole = solved(oracle, ())
    assert whole
    assert optimum.objective is not None
    assert optimum.objective <= bound <= value + 1e-6 * abs(value)
    for name in (job.name for job in instance.jobs):
        job = [own.name for own in instance.jobs].index(name)
        end = optimum.solution.completion(name)
        kept = BranchDecision.at_most(job, COMPLETES, NEVER if end is None else end)
        _, value, bound, whole = solved(oracle, (kept,))
        assert whole
        assert optimum.objective <= bound <= value + 1e-6 * abs(value)


def test_a_decision_is_kept_by_what_runs() -> None:
    instance = hs.generate("oasis", seed=1, jobs=5, servers=3, horizon=6)
    assert isinstance(instance, OasisInstance)
    oracle = PatternOracle(instance)
    compact, _, _, _ = solved(oracle, ())
    job = max(range(5), key=lambda own: 1 - compact.shares(own).get(NEVER, 0.0))
    assert compact.shares(job).get(NEVER, 0.0) < 1
    never = BranchDecision.at_least(job, COMPLETES, NEVER)
    compact, _, _, _ = solved(oracle, (never,))
    assert compact.shares(job) == {NEVER: pytest.approx(1.0)}
    task = oracle.groups.block(job).task
    slot = Feature(IN_SLOT, (task.arrival - 1,))
    runs = BranchDecision.at_least(job, slot, 1)
    compact, _, _, whole = solved(oracle, (runs,))
    assert not whole or NEVER not in compact.shares(job)


def test_contradicting_decisions_have_no_solution() -> None:
    instance = hs.generate("oasis", seed=1, jobs=5, servers=3, horizon=6)
    assert isinstance(instance, OasisInstance)
    oracle = PatternOracle(instance)
    job = 0
    last = max(end for end in CompactProgram(oracle, 1.0, Event()).ends(job) if end != NEVER)
    decisions = (BranchDecision.at_most(job, COMPLETES, last), BranchDecision.at_most(
        job, COMPLETES, oracle.groups.block(job).task.arrival - 1))  # fmt: skip
    _, _, _, whole = solved(oracle, decisions)
    assert not whole


def test_splits_are_where_one_more_ps_is_needed() -> None:
    instance = hs.named_instance("oasis-small-t8-j8-h5-d4-s1")
    assert isinstance(instance, OasisInstance)
    oracle = PatternOracle(instance)
    ends = {0: 8, 3: 5, 4: 4, 5: 8, 6: 8}  # no servers keep these, the program does
    decisions = []
    for job in range(8):
        if job in ends:
            decisions.append(BranchDecision.at_most(job, COMPLETES, ends[job]))
        else:
            decisions.append(BranchDecision.at_least(job, COMPLETES, NEVER))
    compact, value, _, whole = solved(oracle, tuple(decisions))
    assert whole
    assert math.isfinite(value)
    splits = compact.splits()
    assert splits
    for split in splits:
        if split.rank == 0:
            needed = oracle.groups.block(split.block).task.needed
            assert split.feature.name == IN_SLOT
            assert needed[split.at_most + 1] > needed[split.at_most]


def test_tree_proves_that_ends_cannot_be_kept() -> None:
    """By column generation alone this tree had no end: 900 nodes and more."""
    instance = hs.named_instance("oasis-small-t8-j8-h5-d4-s1")
    result = hs.solve(instance, "tree", threads=1, work_limit=6000)
    assert result.proof == "certificate"
    assert result.objective == pytest.approx(309.434495)


def test_auto_goes_on_with_its_tree_once_the_optimum_is_known() -> None:
    instance = hs.named_instance("oasis/small/t8-j8-h5-d4-s1")
    result = hs.solve(instance, "auto", threads=1, work_limit=6000)
    assert result.proof == "certificate"
    if "tree" in result.details:  # the program proved it
        nodes = int(str(result.details["tree"]).split()[0])
        assert nodes > int(str(result.details["nodes"])) > 0


def test_a_gap_of_mixed_schedules_is_closed_by_schedules() -> None:
    """Bound and schedule are 0.02 % apart at once: the compact program alone took 583 nodes."""
    instance = hs.named_instance("oasis-small-t8-j8-h8-d4-s0")
    result = hs.solve(instance, "tree", threads=1, work_limit=6000)
    assert result.proof == "certificate"
    assert result.details["nodes"] < 100


def test_a_program_that_was_interrupted_is_solved_the_next_time() -> None:
    """HiGHS keeps what a callback told it, so that it has to be told to go on."""
    instance = hs.generate("oasis", seed=1, jobs=5, servers=3, horizon=6)
    assert isinstance(instance, OasisInstance)
    oracle, interrupted = PatternOracle(instance), Event()
    compact = CompactProgram(oracle, 1e4, interrupted)
    compact.add_patterns(np.zeros(oracle.rows.size))
    compact.restrict({})
    interrupted.set()
    assert compact.solve(None) is None
    interrupted.clear()
    assert compact.solve(None) is not None

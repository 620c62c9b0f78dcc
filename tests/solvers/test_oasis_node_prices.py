"""Prices of oasis' nodes: only new patterns are written out, and nothing else is different."""

from __future__ import annotations

from threading import Event

import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers.families.oasis.nodes import EndsProgram
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.oracles.decisions import COMPLETES, BranchDecision
from hindsched.solvers.oracles.restricted import RestrictedOracle
from hindsched.solvers.tree import node_program
from hindsched.solvers.tree.columns import Basis
from hindsched.solvers.tree.node_program import NodeProgram


def columns_of(program):
    return [(column.block, column.key) for column in program._master.columns]


@pytest.mark.parametrize("seed", range(4))
def test_columns_and_bounds_are_those_of_asking_every_block(seed, monkeypatch):
    monkeypatch.setattr(node_program, "MOST_COLUMNS", 40)  # columns are dropped, and come back
    instance = hs.generate("oasis", seed=seed, jobs=4, horizon=5)
    oracle = build_oracle(instance, rows="patterns")
    programs = [kind(oracle, 100.0, Event()) for kind in (EndsProgram, NodeProgram)]
    rng = np.random.default_rng(seed)
    kept = []
    dropped = 0
    for number in range(12):
        decisions = [BranchDecision.at_most(0, COMPLETES, 5)] if number % 2 else []
        prices = rng.integers(0, 3, oracle.rows.size) * rng.random(oracle.rows.size)
        asked = RestrictedOracle(oracle, decisions)
        for tried in (prices, prices * 1.01):  # mostly the same patterns
            found = [program._price(asked, tried) for program in programs]
            assert found[0] == found[1]
            assert columns_of(programs[0]) == columns_of(programs[1])
        again = [program._price(asked, tried, found[0][2]) for program in programs]
        assert again[0] == again[1] == (found[0][0], 0, found[0][2])
        kept += columns_of(programs[0])[:2]
        before = len(columns_of(programs[0]))
        for program in programs:
            program._forget(Basis(set(kept), [], []))
        dropped += len(columns_of(programs[0])) < before
    assert dropped > 2


def test_a_job_without_a_schedule_has_no_bound():
    oracle = build_oracle(hs.generate("oasis", seed=1, jobs=3, horizon=4), rows="patterns")
    asked = RestrictedOracle(oracle, [BranchDecision.at_most(1, COMPLETES, 0)])
    program = EndsProgram(oracle, 100.0, Event())
    assert program._price(asked, np.zeros(oracle.rows.size)) == (-np.inf, 0, None)

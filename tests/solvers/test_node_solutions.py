"""Looking for solutions near nodes gets less time the longer it finds nothing better."""

from __future__ import annotations

from threading import Event

import numpy as np
import pytest

import hindsched as hs
from hindsched.solutions.base import Solution
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.search import NeighbourhoodSearch
from hindsched.solvers.tree import node_solutions
from hindsched.solvers.tree.node_solutions import PATIENCE, SHARE_OF_TIME, NodeSolutions


def test_what_finds_nothing_better_gets_a_smaller_share(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = hs.generate("oasis", seed=1)
    oracle, servers = (build_oracle(instance, rows=rows) for rows in ("groups", "servers"))
    prices = np.zeros(oracle.rows.size)
    clock = iter(range(10_000))
    monkeypatch.setattr(node_solutions, "now", lambda: float(next(clock)))
    looking = NodeSolutions(oracle, servers, NeighbourhoodSearch(servers), Event())
    found: list[Solution | None] = [None]
    monkeypatch.setattr(looking, "_look", lambda prices, shares: found[0])

    def looked() -> int:
        """Calls out of forty that may look: each takes one of three ticks of the clock."""
        spent = 0
        for _ in range(40):
            before = looking._spent
            looking(prices, [])
            spent += looking._spent > before
        return spent

    assert looking._share() == SHARE_OF_TIME
    first, second = looked(), looked()
    assert 0 < second < first
    looking._in_vain = int(PATIENCE)
    assert looking._share() == pytest.approx(SHARE_OF_TIME / 2)
    inserting = NeighbourhoodSearch(servers)
    inserting.construct()
    found[0] = inserting.solution()
    looking._spent = 0.0
    looking(prices, [])
    assert looking._share() == SHARE_OF_TIME
    looking(prices, [])
    assert looking._share() < SHARE_OF_TIME  # the same again is nothing better

"""Column generation at a node stops where it cannot close it, if that is all it is for."""

from __future__ import annotations

from threading import Event

import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.tree.node_program import NodeProgram


@pytest.fixture(scope="module")
def program() -> NodeProgram:
    oracle = build_oracle(hs.named_instance("oasis/small/t8-j8-h3-d4-s0"), rows="groups")
    return NodeProgram(oracle, 100.0, Event())


def bounded(program: NodeProgram, cutoff: float, *, only_to_close: bool):  # type: ignore[no-untyped-def]
    prices = np.zeros(program.oracle.rows.size)
    return program._by_columns((), prices, cutoff, lambda: None, only_to_close=only_to_close)


def test_a_node_that_no_prices_close_is_given_up_as_soon_as_that_is_known(
    program: NodeProgram,
) -> None:
    whole = bounded(program, 0.0, only_to_close=False)
    given_up = bounded(program, 0.0, only_to_close=True)
    assert given_up.rounds < whole.rounds
    assert given_up.shares is None
    assert given_up.value is not None
    assert 0.0 < given_up.value <= whole.bound + 1e-6  # no bound at the node passes it
    assert given_up.bound >= whole.bound - 1e-6


def test_a_node_that_prices_close_is_closed_all_the_same(program: NodeProgram) -> None:
    best = bounded(program, 0.0, only_to_close=False).bound
    found = bounded(program, best + 1e-3, only_to_close=True)
    assert found.bound <= best + 1e-3
    assert found.value is None

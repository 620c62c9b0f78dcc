"""A price bound whose blocks are divided over workers: only prices, values and use travel.

Given prices the blocks are independent. Each worker keeps its share of them between iterations; it
gets the prices and answers with the values of its blocks and their total use of the rows. The
bound, which is an exactly rounded sum of the values, is therefore bit for bit that of one process;
so is the search as long as the uses add up without rounding, as whole numbers do. How the workers
are reached is the caller's business (`ShareTeam`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Floats
from hindsched.solvers.oracles.base import BlockOracle, Response


class ShareAnswer(NamedTuple):
    """What a share of the blocks answers to prices: values, and total use of the rows."""

    values: Floats
    use: Floats


class ShareTeam(ABC):
    """Workers that hold shares of blocks.

    Attributes
    ----------
    size : int
        Number of shares that it wants.
    bytes_moved : int
        Bytes of prices sent and of answers received.
    evaluations : int
        How often prices were sent.
    """

    size: int
    bytes_moved: int = 0
    evaluations: int = 0

    @abstractmethod
    def hold(self, shares: Sequence[BlockOracle]) -> None:
        """Give each share to a worker, which keeps it."""

    @abstractmethod
    def ask(self, prices: Floats) -> Sequence[ShareAnswer]:
        """Answers of all shares to prices, in the order of the shares."""


def answer(share: BlockOracle, prices: Floats) -> ShareAnswer:
    """What a worker computes: the best responses of its share."""
    return ShareAnswer(*share.block_values(prices))


class DividedOracle(BlockOracle):
    """An oracle whose blocks are held by a team; values come in the order of the shares.

    Parameters
    ----------
    oracle : BlockOracle
        The whole oracle; it answers for single blocks.
    team : ShareTeam
        Who holds the shares. Blocks are dealt out in turn, so that early and late jobs are spread.
    """

    def __init__(self, oracle: BlockOracle, team: ShareTeam) -> None:
        self.oracle, self.team = oracle, team
        self.sense = oracle.sense  # type: ignore[misc]
        self.instance, self.formulation = oracle.instance, oracle.formulation
        self.layout, self.rows = oracle.layout, oracle.rows
        self.optional, self.exact = oracle.optional, oracle.exact
        count = max(1, min(team.size, oracle.num_blocks))
        team.hold([oracle.of_blocks(slice(first, None, count)) for first in range(count)])

    @property
    def num_blocks(self) -> int:
        """Number of blocks of all shares."""
        return self.oracle.num_blocks

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of one block, found here."""
        return self.oracle.best_response(block, prices, residual)

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all blocks, and the total use."""
        answers = self.team.ask(prices)
        use = np.zeros(self.rows.size)
        for each in answers:  # always in the same order, whoever answered
            use += each.use
        moved = sum(prices.nbytes + each.values.nbytes + each.use.nbytes for each in answers)
        self.team.bytes_moved += moved
        self.team.evaluations += 1
        return np.concatenate([each.values for each in answers]), use

    def price_terms(self, prices: Floats) -> Floats:
        """Terms of the bound that belong to the rows."""
        return self.oracle.price_terms(prices)


_team: ContextVar[ShareTeam | None] = ContextVar("team", default=None)


@contextmanager
def divided_over(team: ShareTeam) -> Iterator[None]:
    """Let the price bounds that are computed inside divide their blocks over a team."""
    token = _team.set(team)
    try:
        yield
    finally:
        _team.reset(token)


def divided(oracle: BlockOracle) -> BlockOracle:
    """The oracle itself, or its blocks divided over the team of `divided_over`."""
    team = _team.get()
    return oracle if team is None else DividedOracle(oracle, team)

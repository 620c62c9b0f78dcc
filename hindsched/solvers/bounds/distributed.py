"""A price bound whose blocks are divided over workers: only prices and use travel.

Given prices the blocks are independent. Each worker keeps its share of them between iterations; it
gets the prices and answers with the share's total use of the rows and with a handful of numbers
that add up to the sum of its blocks' values *exactly*. The bound, which is an exactly rounded sum,
is therefore bit for bit that of one process; so is the search as long as the uses add up without
rounding, as whole numbers do. How the workers are reached is the caller's business (`ShareTeam`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats
from hindsched.solvers.oracles.base import BlockOracle, Response


@dataclass(frozen=True)
class ShareAnswer:
    """What a share of the blocks answers to prices.

    Parameters
    ----------
    terms : ndarray
        Numbers that add up, and whose sizes add up, exactly as the blocks' values do.
    use : ndarray, shape (rows.size,)
        Total use of the rows.
    """

    terms: Floats
    use: Floats


class ShareTeam(ABC):
    """Workers that hold shares of blocks; a share of a worker that dies goes to another.

    Attributes
    ----------
    size : int
        Number of shares that it wants.
    taken_over : int
        How often a share was moved because its worker had died.
    bytes_moved : int
        Bytes of prices sent and of answers received.
    evaluations : int
        How often prices were sent.
    """

    size: int
    taken_over: int = 0
    bytes_moved: int = 0
    evaluations: int = 0

    @abstractmethod
    def hold(self, shares: Sequence[BlockOracle]) -> None:
        """Give each share to a worker, which keeps it."""

    @abstractmethod
    def ask(self, prices: Floats) -> Sequence[ShareAnswer]:
        """Answers of all shares to prices, in the order of the shares."""


def answer(share: BlockOracle, prices: Floats) -> ShareAnswer:
    """What a worker computes: the best responses of its share, added up.

    Parameters
    ----------
    share : BlockOracle
        The oracle of the share.
    prices : ndarray, shape (rows.size,)
        Price of each linking row.
    """
    values, use = share.block_values(prices)
    return ShareAnswer(exact_terms(values), use)


def exact_terms(values: Floats) -> Floats:
    """A few numbers whose sum, and whose sum of sizes, are exactly those of `values`.

    Parameters
    ----------
    values : ndarray
        Any numbers; of infinite ones only they are returned, which say everything.

    Examples
    --------
    >>> exact_terms(np.array([1e16, 1.0, 1.0, -3.0])).tolist()
    [1.0000000000000002e+16, -3.0]
    """
    infinite = values[~np.isfinite(values)]
    if infinite.size:
        return infinite
    terms: list[float] = []
    for sign in (1.0, -1.0):
        rest = np.abs(values[sign * values > 0]).tolist()
        while (total := math.fsum(rest)) > 0:
            if math.fsum([*rest, -total]) < 0:  # rounded up: the rest would change its sign
                total = math.nextafter(total, 0.0)
            terms.append(sign * total)
            rest.append(-total)
    return np.array(terms)


class DividedOracle(BlockOracle):
    """An oracle whose blocks are held by a team; `block_values` has exact terms, not one a block.

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
        """Terms that add up exactly as the blocks' values do, and the total use."""
        answers = self.team.ask(prices)
        use = np.zeros(self.rows.size)
        for each in answers:  # always in the same order, whoever answered
            use += each.use
        moved = sum(prices.nbytes + each.terms.nbytes + each.use.nbytes for each in answers)
        self.team.bytes_moved += moved
        self.team.evaluations += 1
        return np.concatenate([each.terms for each in answers]), use

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

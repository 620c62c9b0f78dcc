"""The oracles of a family: what is asked of one block at prices on the linking rows.

A `PricingOracle` gives the exact best response. It serves three masters, each written once for all
families: the online primal-dual engine, the bounding engines (subgradient and column generation)
and the certificate. A `PlacingOracle` also puts schedules on real servers, in what is left of them;
a `RestrictableOracle` keeps a block's schedules within the decisions of a branching, and a
`BranchingOracle` says by which decisions to split. A family's layout of the rows is of the classes
whose questions it can answer. Only the family knows what a block is; engines see flat vectors.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.base import Instance
from hindsched.solutions.base import Assignment, Solution, build_solution
from hindsched.solvers.oracles import decisions
from hindsched.solvers.oracles.rows import Rows

RELATIVE_ROUNDING = 1e-9
"""Outward rounding of a bound, relative to the sum of the sizes of its terms."""


@dataclass(frozen=True)
class Response:
    """A block's best response."""

    value: float  # ``f - p.Ax`` or ``c + p.Ax``: the optimum over the block's schedules
    objective: float  # ``f`` or ``c`` of the schedule alone
    rows: Ints  # flat indices of the linking rows that it uses
    amounts: Floats  # its use of each of them, ``A x``
    plan: Any = None  # the family's description of the schedule; None: the outside option


class PricingOracle(ABC):
    """Best responses of an instance's blocks.

    Subclasses take an instance (and a formulation) and set the attributes below.
    """

    sense: ClassVar[Literal["max", "min"]]
    instance: Instance
    formulation: str  # which of the family's problems
    layout: str  # of the rows, one of the family's `row_layouts`
    rows: Rows  # the linking rows with their real capacities b
    optional: bool = False  # whether a block may stay out at value 0 (maximising families)
    # whether `best_response` at full capacity is, or errs outward: so it certifies
    exact: bool = True
    # what every solution's objective is a whole multiple of, if there is such a number: the leaves
    # of a tree round their bounds to it
    step: Fraction | None = None
    # rows that the others and the blocks imply, (rows.size,): linear programs leave them out,
    # prices may not
    implied: Bools | None = None

    @property
    def num_blocks(self) -> int:
        """Number of blocks, one a job unless the family says otherwise."""
        return len(self.instance.jobs)

    @property
    def num_decided(self) -> int:
        """Number of blocks that decisions may be on, the first ones: the jobs."""
        return len(self.instance.jobs)

    def block_name(self, block: int) -> str:
        """Name of a block in reports: the job's name."""
        return str(self.instance.jobs[block].name)

    @abstractmethod
    def best_response(self, block: int, prices: Floats) -> Response | None:
        """Best schedule of one block at the price of each row and full capacity; None without."""

    @abstractmethod
    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules that a feasible solution gives the blocks, as use of this layout's rows.

        One entry a block (``value`` is not read); a row may stand several times, its amounts add
        up. None where the block takes the outside option at objective 0. The objectives must add up
        to ``solution.objective()`` and the use must not exceed ``rows.capacity``: callers check.
        """

    def outside(self, block: int) -> Response | None:
        """What a block may do instead of running a schedule: stay out, if that is optional.

        Families that cover what their horizon leaves out by an outside option return that.
        """
        empty = np.zeros(0, dtype=np.int64)
        return Response(0.0, 0.0, empty, np.zeros(0)) if self.optional else None

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Prices of this layout, laid out on the rows of the layout ``"servers"``.

        An aggregated layout repeats the price of a group or cluster on each server in it.
        """
        return prices

    def on_rows(self, rows: Rows) -> PricingOracle:
        """The same oracle on a certificate's rows, in a family whose prices bring rows along."""
        return self

    def on_rows_of_file(self, prices: object) -> PricingOracle:
        """The same oracle on the rows that a file's prices name; `InputError` if they name none."""
        return self

    def prices_of(self, other: PricingOracle, prices: Floats) -> Floats:
        """Prices of the family's default layout `other`, laid out on this layout's rows.

        A layout that is not that of servers says how.
        """
        return other.prices_on_servers(prices)

    def prices_from(self, layout: str, rows: Rows, prices: Floats) -> Floats | None:
        """A certificate's prices on these rows; None if they are of another layout."""
        return prices if layout == self.layout else None

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all blocks, (num_blocks,), and total use of the rows, at full capacity.

        A value is the block's term of the bound: with an outside option, never worse than it.
        Capacity minus use is a subgradient of the bound.
        """
        values = np.zeros(self.num_blocks)
        use = np.zeros(self.rows.size)
        for block, response in enumerate(self.responses(prices)):
            if response is not None:
                values[block] = response.value
                np.add.at(use, response.rows, response.amounts)
        return values, use

    def values(self, prices: Floats) -> Floats:
        """Values of all blocks, as in `block_values`."""
        return self.block_values(prices)[0]

    def responses(self, prices: Floats) -> Sequence[Response | None]:
        """Best responses of all blocks at full capacity; None where a block stays out at 0.

        A mandatory block without a schedule makes the problem infeasible: its value is -inf when
        maximising and +inf when minimising.
        """
        responses: list[Response | None] = []
        for block in range(self.num_blocks):
            response = self.best_response(block, prices)
            if self.optional and (response is None or response.value <= 0):
                response = None
            elif response is None:
                worst = -math.inf if self.sense == "max" else math.inf
                empty = np.zeros(0, dtype=np.int64)
                response = Response(worst, worst, empty, np.zeros(0))
            responses.append(response)
        return responses

    def paid(self, prices: Floats) -> Floats:
        """Prices as they count in a certificate: 0 where no block pays for the row."""
        return prices

    def price_terms(self, prices: Floats) -> Floats:
        """Terms of the bound that belong to the rows: ``p b`` when maximising, ``-p b`` else."""
        terms: Floats = prices * self.rows.capacity
        return terms if self.sense == "max" else -terms

    def bound(self, prices: Floats) -> float:
        """Bound on the optimum at any prices >= 0, rounded outward.

        ``max``: ``p.b + sum_j max(0, max_x [f - p.Ax])``;
        ``min``: ``sum_j min_x [c + p.Ax] - p.b``.
        """
        values, _ = self.block_values(prices)
        return self.round_outward([*self.price_terms(prices).tolist(), *values.tolist()])

    def round_outward(self, terms: Sequence[float], size: float | None = None) -> float:
        """Sum exactly and move away from the optimum by the rounding allowance.

        `size` is the sum of the sizes of all numbers that went into the terms, also of those that
        cancelled each other. None takes the terms themselves: in a block's value only use x price
        can cancel, and of that the rows' own terms have at least as much. Terms beyond what
        floating point can add up prove nothing: the bound is infinite.
        """
        try:
            total = math.fsum(terms)
            if math.isinf(total):  # a mandatory block without a schedule: no solution exists
                return total
            if size is None:
                size = math.fsum(map(abs, terms))
        except (OverflowError, ValueError):  # too large, or infinities of both signs
            return math.inf if self.sense == "max" else -math.inf
        allowance = RELATIVE_ROUNDING * size
        return total + allowance if self.sense == "max" else total - allowance


class PlacingOracle(PricingOracle):
    """An oracle whose schedules stand on real servers: one linking row a server."""

    @abstractmethod
    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule that fits in `residual`, what is left of each row's capacity.

        None means **full** capacity, the only block that certifies a bound.
        """

    @abstractmethod
    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file for a response."""

    def best_insertion(self, block: int, prices: Floats, residual: Floats) -> Response | None:
        """`best_response` on what is left, if it serves the block and beats staying out.

        A family that finds out sooner that staying out is better overrides this.
        """
        response = self.best_response(block, prices, residual)
        if response is None or (self.optional and response.value <= 0):
            return None
        outside = response.plan is None and not response.rows.size
        return None if outside else response

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution in which all jobs, the first blocks, run the given schedules at once.

        None stands for a block that stays out. The caller checks the solution.
        """
        rows = {
            job.name: self.assignments(block, response)
            for block, (job, response) in enumerate(
                zip(self.instance.jobs, responses, strict=False)
            )
            if response is not None
        }
        return self.settled(build_solution(self.instance, rows, self.formulation))

    def settled(self, solution: Solution) -> Solution:
        """Schedules of all jobs with what only all of them together decide."""
        return solution


class RestrictableOracle(PricingOracle):
    """An oracle that keeps blocks within decisions: it checks the leaves of a tree."""

    # what decisions may limit, with axes, in the order in which to branch
    features: Mapping[str, decisions.Axes] = MappingProxyType({})
    # last slot in which what the outside option stands for cannot end; it never does if it is
    # staying out
    outside_ends_after: int = decisions.NEVER - 1

    @abstractmethod
    def restricted_response(
        self, block: int, prices: Floats, limits: decisions.Limits
    ) -> Response | None:
        """Best schedule of one block at full capacity whose features lie within limits, if any.

        As exact as `best_response`: with limits that hold for every schedule it has the same value.
        The outside option is not among the schedules (see `outside`).
        """

    def bound_within(self, prices: Floats, limits: Mapping[int, decisions.Limits]) -> float | None:
        """Bound at `prices` on solutions within limits by block, if the family adds up its own."""
        return None


class BranchingOracle(RestrictableOracle):
    """An oracle by whose schedules a tree is grown."""

    @abstractmethod
    def features_of(self, block: int, response: Response) -> dict[decisions.Feature, int]:
        """Value of every feature of a schedule; one that is absent is 0."""

    @abstractmethod
    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution in which all blocks run the given schedules at once, if servers hold it.

        None stands for a block that stays out. The caller checks the solution.
        """

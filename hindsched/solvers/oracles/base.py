"""The pricing oracle: the exact best response of one block to prices on the linking rows.

One oracle serves three masters, each written once for all families: the online primal-dual engine,
the bounding engines (subgradient and column generation) and the certificate. Only the family knows
what a block is; engines see flat vectors.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.base import Instance, family_module
from hindsched.solutions.base import Assignment, Solution, build_solution
from hindsched.solvers.oracles import decisions as branching
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


class BlockOracle(ABC):
    """Best responses of an instance's blocks.

    Subclasses take an instance (and a formulation) and set the attributes below.
    """

    sense: ClassVar[Literal["max", "min"]]
    instance: Instance
    formulation: str  # which of the family's problems
    layout: str  # of the rows, one of the family's ``ORACLE_ROWS``
    rows: Rows  # the linking rows with their real capacities b
    optional: bool = False  # whether a block may stay out at value 0 (maximising families)
    # whether `best_response` at full capacity is, or errs outward: so it certifies
    exact: bool = True
    # what decisions may limit, with axes, in the order in which to branch; empty if the layout's
    # blocks cannot be restricted
    features: Mapping[str, branching.Axes] = MappingProxyType({})
    # what every solution's objective is a whole multiple of, if there is such a number: the leaves
    # of a tree round their bounds to it
    step: Fraction | None = None
    # rows that the others and the blocks imply, (rows.size,): linear programs leave them out,
    # prices may not
    implied: Bools | None = None
    # last slot in which what the outside option stands for cannot end; it never does if it is
    # staying out
    outside_ends_after: int = branching.NEVER - 1

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
    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of one block at the price of each row; None if it has none that fits.

        It must fit in `residual`, what is left of each row's capacity. None means **full**
        capacity, the only block that certifies a bound.
        """

    def restricted_response(
        self, block: int, prices: Floats, limits: branching.Limits
    ) -> Response | None:
        """Best schedule of one block at full capacity whose features lie within limits, if any.

        As exact as `best_response`: with limits that hold for every schedule it has the same value.
        The outside option is not among the schedules (see `outside`).
        """
        raise TypeError(f"{type(self).__name__} does not restrict its blocks")

    def features_of(self, block: int, response: Response) -> dict[branching.Feature, int]:
        """Value of every feature of a schedule; one that is absent is 0."""
        raise TypeError(f"{type(self).__name__} does not restrict its blocks")

    def outside(self, block: int) -> Response | None:
        """What a block may do instead of running a schedule: stay out, if that is optional.

        Families that cover what their horizon leaves out by an outside option return that.
        """
        empty = np.zeros(0, dtype=np.int64)
        return Response(0.0, 0.0, empty, np.zeros(0)) if self.optional else None

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution in which all blocks run the given schedules at once, if servers hold it.

        None stands for a block that stays out. The caller checks the solution.
        """
        rows = {
            self.block_name(block): self.assignments(block, response)
            for block, response in enumerate(responses)
            if response is not None
        }
        return self.settled(build_solution(self.instance, rows, self.formulation))

    def settled(self, solution: Solution) -> Solution:
        """Schedules of all jobs with what only all of them together decide."""
        return solution

    def best_insertion(self, block: int, prices: Floats, residual: Floats) -> Response | None:
        """`best_response` on what is left, if it serves the block and beats staying out.

        A family that finds out sooner that staying out is better overrides this.
        """
        response = self.best_response(block, prices, residual)
        if response is None or (self.optional and response.value <= 0):
            return None
        outside = response.plan is None and not response.rows.size
        return None if outside else response

    @property
    def places(self) -> bool:
        """Whether the layout's responses stand on real servers, as `assignments` writes them."""
        return type(self).assignments is not BlockOracle.assignments

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file for a response found on real servers."""
        raise TypeError(f"{type(self).__name__} does not place schedules on servers")

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules that a feasible solution gives the blocks, as use of this layout's rows.

        One entry a block (``value`` is not read); a row may stand several times, its amounts add
        up. None where the block takes the outside option at objective 0. The objectives must add up
        to ``solution.objective()`` and the use must not exceed ``rows.capacity``: callers check.
        """
        raise TypeError(f"{type(self).__name__} does not read solutions")

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Prices of this layout, laid out on the rows of the layout ``"servers"``.

        An aggregated layout repeats the price of a group or cluster on each server in it.
        """
        return prices

    def on_rows(self, rows: Rows) -> BlockOracle:
        """The same oracle on a certificate's rows, in a family whose prices bring rows along."""
        return self

    def on_rows_of_file(self, prices: object) -> BlockOracle:
        """The same oracle on the rows that a file's prices name; `InputError` if they name none."""
        return self

    def prices_of(self, other: BlockOracle, prices: Floats) -> Floats:
        """Prices of the family's default layout `other`, laid out on this layout's rows.

        A layout that is not that of servers says how.
        """
        return other.prices_on_servers(prices)

    def prices_from(self, layout: str, rows: Rows, prices: Floats) -> Floats | None:
        """A certificate's prices on these rows; None if they are of another layout."""
        return prices if layout == self.layout else None

    def bound_within(self, prices: Floats, limits: Mapping[int, branching.Limits]) -> float | None:
        """Bound at `prices` on solutions within limits by block, if the family adds up its own."""
        return None

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
        found: list[Response | None] = []
        for block in range(self.num_blocks):
            response = self.best_response(block, prices)
            if self.optional and (response is None or response.value <= 0):
                response = None
            elif response is None:
                worst = -math.inf if self.sense == "max" else math.inf
                empty = np.zeros(0, dtype=np.int64)
                response = Response(worst, worst, empty, np.zeros(0))
            found.append(response)
        return found

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


class RestrictedOracle(BlockOracle):
    """A node of a branching as an instance of the same problem: blocks that obey decisions.

    The outside option is a response like any other. At any prices its bound is one on every
    solution that obeys the decisions. Full capacity only.
    """

    def __init__(self, oracle: BlockOracle, decisions: Sequence[branching.BranchDecision]) -> None:
        self.oracle = oracle
        self.decisions = tuple(decisions)
        self.limits = branching.limits_of(decisions)
        self.sense = oracle.sense  # type: ignore[misc]
        self.instance, self.formulation = oracle.instance, oracle.formulation
        self.layout, self.rows, self.features = oracle.layout, oracle.rows, oracle.features
        self.exact, self.step, self.implied = oracle.exact, oracle.step, oracle.implied
        self.optional = False  # staying out is a response like any other

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return self.oracle.num_blocks

    def block_name(self, block: int) -> str:
        """Name of a block in reports."""
        return self.oracle.block_name(block)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of a block that obeys the decisions, or its outside option."""
        if residual is not None:
            raise ValueError("blocks are restricted at full capacity only")
        limits = self.limits.get(block, {})
        found = self.oracle.restricted_response(block, prices, limits)
        outside = self.oracle.outside(block)
        if outside is None or not self._keeps_outside(limits):
            return found
        if found is None:
            return outside
        sign = 1.0 if self.sense == "max" else -1.0
        return found if sign * found.value > sign * outside.value else outside

    def keeps(self, block: int, values: Mapping[branching.Feature, int] | None) -> bool:
        """Whether a schedule with these features (None: the outside option) obeys."""
        limits = self.limits.get(block, {})
        if values is None:
            return self._keeps_outside(limits)
        for feature, (low, high) in limits.items():  # noqa: SIM110  # twice as fast as `all`
            if not low <= values.get(feature, 0) <= high:
                return False
        return True

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values and total use; without decisions by the family's own compiled call."""
        if not self.decisions:
            return self.oracle.block_values(prices)
        return super().block_values(prices)

    def bound(self, prices: Floats) -> float:
        """Bound at `prices` on the solutions that obey the decisions, rounded outward.

        Infinite where no solution does, as where decisions on one feature contradict each other.
        """
        if any(low > high for own in self.limits.values() for low, high in own.values()):
            return -math.inf if self.sense == "max" else math.inf
        found = self.oracle.bound_within(prices, self.limits)
        return super().bound(prices) if found is None else found

    def price_terms(self, prices: Floats) -> Floats:
        """Terms of the bound that belong to the rows."""
        return self.oracle.price_terms(prices)

    def round_outward(self, terms: Sequence[float], size: float | None = None) -> float:
        """Sum, rounded outward as the family does; then inward to what an objective can be."""
        total = self.oracle.round_outward(terms, size)
        if self.step is None or not math.isfinite(total):
            return total
        number = Fraction(total) / self.step
        whole = math.floor(number) if self.sense == "max" else math.ceil(number)
        worse = -math.inf if self.sense == "min" else math.inf
        found = float(whole * self.step)
        beyond = found > whole * self.step if self.sense == "min" else found < whole * self.step
        return math.nextafter(found, worse) if beyond else found

    def _keeps_outside(self, limits: branching.Limits) -> bool:
        """Whether the outside option is kept.

        Staying out has no completion and 0 of everything else. One that stands for schedules beyond
        the priced slots may have any features but a completion in those.
        """
        contradict = any(low > high for low, high in limits.values())
        _, latest = branching.window_of(limits, branching.COMPLETES)
        if contradict or latest <= self.oracle.outside_ends_after:
            return False
        return not self.oracle.optional or all(
            low == 0 for feature, (low, _) in limits.items() if feature != branching.COMPLETES
        )


def build_oracle(
    instance: Instance, formulation: str | None = None, *, rows: str | None = None
) -> BlockOracle:
    """Build the oracle of an instance's family, by default of its default formulation.

    `rows` is a layout of the linking rows by the family's own name (``ORACLE_ROWS`` of its module,
    the default first, or what its ``first_rows(formulation)`` says): certificates use one
    aggregated over identical servers where that costs nothing; ``"servers"`` has one row a server,
    for schedules.
    """
    layouts = row_layouts(instance.family)
    if rows is not None and rows not in layouts:
        raise InputError("rows", rows, f"must be {' or '.join(layouts)}")
    module = family_module("solvers.families", instance.family, "oracle")
    chosen = instance.check_formulation(formulation)
    if rows is None:
        first: Callable[[str], str] = getattr(module, "first_rows", lambda _: layouts[0])
        rows = first(chosen)
    oracle: BlockOracle = module.build(instance, chosen, rows)
    return oracle


def row_layouts(family: str) -> tuple[str, ...]:
    """Names of a family's layouts of the linking rows, the default first."""
    return tuple(family_module("solvers.families", family, "oracle").ORACLE_ROWS)

"""Certificates: a bound on the offline optimum as a price vector that anyone can check.

A bound here is nothing but prices on the linking rows. Whoever has the instance and the family's
pricing oracle recomputes it in seconds (`certificates/file.py`), without a solver and without
trusting the engine that found the prices: this module imports none.

The bound is valid only because (a) the oracle answers at full capacity, (b) it is exact or errs
outward (``PricingOracle.exact``), (c) what a horizon leaves out is covered by an outside option at
least as good, (d) the right sides are the real capacities, and (e) sums are rounded outward. The
first two are enforced here, the others are properties of a family's oracle and tested there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Solution
from hindsched.solvers.oracles.base import RELATIVE_ROUNDING, PricingOracle
from hindsched.solvers.oracles.rows import Rows

CERTIFICATE_FORMAT = "hindsched-certificate/1"
Kind = Literal["lagrangian", "lp-dual", "tree", "sequences"]
KINDS: tuple[str, ...] = get_args(Kind)
KEYS = (
    "format", "family", "instance", "instance_sha256", "formulation", "layout", "kind", "sense",
    "bound", "prices",
)  # fmt: skip
"""Keys of a certificate file, in the order they are written; older files have no ``layout``."""


@dataclass(frozen=True)
class Certificate:
    """A proven bound on an instance's optimum and the prices that prove it."""

    family: str
    instance: str  # its name
    instance_sha256: str  # hash of its canonical JSON
    formulation: str  # which of the family's problems is bounded
    layout: str  # which of the family's row layouts the prices use
    # where the prices came from: a bounding engine or the duals of a linear program, which are
    # checked alike; ``tree`` is a `TreeCertificate`, with prices for every leaf of a branching;
    # ``sequences`` a `SequencesCertificate`, with prices for every layer of an enumeration
    kind: Kind
    sense: Literal["max", "min"]  # upper bound on a maximum or lower bound on a minimum
    bound: float  # the bound at `prices`, rounded outward
    # price of each linking row, in units of the objective per unit of the row, (rows.size,)
    prices: Floats = field(repr=False)
    rows: Rows = field(repr=False)  # the linking rows in the layout that the prices use

    def to_dict(self) -> JsonObject:
        """JSON data of the certificate file."""
        values = (
            CERTIFICATE_FORMAT, self.family, self.instance, self.instance_sha256, self.formulation,
            self.layout, self.kind, self.sense, self.bound, self.prices_data(),
        )  # fmt: skip
        return dict(zip(KEYS, values, strict=True))

    @property
    def num_leaves(self) -> int | None:
        """Leaves of a tree; None for a single price vector."""
        return None

    def prices_data(self) -> object:
        """JSON data of the file's ``prices``: non-zero prices by row set."""
        return self.rows.to_file(self.prices)

    def as_prices(self, instance: Instance) -> tuple[Certificate, str | None]:
        """Return a certificate that is one price vector, and a line that says what was left out."""
        return self, None

    def is_better_than(self, other: Certificate | None) -> bool:
        """Whether this bound is closer to the optimum than `other`'s."""
        if other is None:
            return True
        return self.bound < other.bound if self.sense == "max" else self.bound > other.bound


def certify(oracle: PricingOracle, prices: Floats, kind: Kind = "lagrangian") -> Certificate:
    """Turn prices, finite and not negative, into a certificate: their bound, rounded outward.

    `SolveFailed` if a mandatory job has no schedule at all: the problem is infeasible, not bounded.
    """
    check_certifies(oracle)
    prices = np.array(prices, dtype=float)
    if prices.shape != (oracle.rows.size,):
        raise InputError("prices", prices.shape, f"must have the shape ({oracle.rows.size},)")
    wrong = ~np.isfinite(prices) | (prices < 0)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        where = f"prices {oracle.rows.label(first)}"
        raise InputError(where, prices[first], "must be finite and not negative")
    prices = oracle.paid(prices)
    return assemble(oracle, prices, oracle.bound(prices), kind)


def check_certifies(oracle: PricingOracle) -> None:
    """Refuse an oracle whose best responses may fall short of the block's optimum."""
    if not oracle.exact:
        rule = "its pricing oracle is not exact, so its prices prove no bound"
        raise InputError("formulation", oracle.formulation, rule)


def check_same_problem(solution: Solution, certificate: Certificate) -> None:
    """Refuse a solution and a certificate that are not of one instance and formulation."""
    if solution.instance.sha256() != certificate.instance_sha256:
        wrong = certificate.instance_sha256
        raise InputError("instance_sha256", wrong, "must be that of the solution's instance")
    if solution.formulation != certificate.formulation:
        rule = f"the solution's formulation is {solution.formulation}"
        raise InputError("formulation", certificate.formulation, rule)


def check_claim(
    oracle: PricingOracle, prices: Floats, bound: float, claimed: float, where: str = "bound",
    proof: str = "the prices",
) -> None:  # fmt: skip
    """Refuse a claimed bound that is better than what is proven.

    A weaker one is true. One that is better by up to half of the outward rounding is still proven,
    with a margin far above how differently another machine adds floats.
    """
    excess = bound - claimed if oracle.sense == "max" else claimed - bound
    if excess <= 0:
        return
    values = oracle.values(prices)
    size = float(np.abs(oracle.price_terms(prices)).sum() + np.abs(values).sum())
    if not excess <= RELATIVE_ROUNDING / 2 * size:
        raise InputError(where, claimed, f"{proof} prove {bound!r}")


def assemble(oracle: PricingOracle, prices: Floats, bound: float, kind: Kind) -> Certificate:
    """The certificate of a bound that prices prove; one that is infinite is refused."""
    if not math.isfinite(bound):
        raise SolveFailed(f"{oracle.instance.name}: a job has no schedule, so nothing is bounded")
    prices = prices.copy()
    prices.flags.writeable = False
    about = oracle.instance
    return Certificate(
        about.family, about.name, about.sha256(), oracle.formulation, oracle.layout, kind,
        oracle.sense, bound, prices, oracle.rows,
    )  # fmt: skip

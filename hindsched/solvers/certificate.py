"""Certificates: a bound on the offline optimum as a price vector that anyone can check.

A bound here is nothing but prices on the linking rows. Whoever has the instance and the family's
pricing oracle recomputes it in seconds (`verify_certificate`), without a solver and without
trusting the engine that found the prices: this module imports none.

The bound is valid only because (a) the oracle answers at full capacity, (b) it is exact or errs
outward (``BlockOracle.exact``), (c) what a horizon leaves out is covered by an outside option at
least as good, (d) the right sides are the real capacities, and (e) sums are rounded outward. The
first two are enforced here, the others are properties of a family's oracle and tested there.

Row layouts. A family may price the same capacities in several layouts (one row a server, one row
a group of identical servers, ...); the file names its own. Older files name row sets and labels
only: the layout is the first of the family's ``ORACLE_ROWS`` that knows all of them and reproduces
the bound. Prices that fit two layouts are harmless: a bound recomputed in *any* layout is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.io import read_json, write_json
from hindsched.solutions.base import Solution, check_belongs
from hindsched.solvers.pricing.base import (
    RELATIVE_ROUNDING,
    BlockOracle,
    build_oracle,
    row_layouts,
)
from hindsched.solvers.pricing.rows import Rows

CERTIFICATE_FORMAT = "hindsched-certificate/1"
Kind = Literal["lagrangian", "lp-dual", "tree"]
KINDS: tuple[str, ...] = get_args(Kind)
KEYS = (
    "format", "family", "instance", "instance_sha256", "formulation", "layout", "kind", "sense",
    "bound", "prices",
)  # fmt: skip
"""Keys of a certificate file, in the order they are written; older files have no ``layout``."""


@dataclass(frozen=True)
class Certificate:
    """A proven bound on an instance's optimum and the prices that prove it.

    Parameters
    ----------
    family, instance, instance_sha256 : str
        Which instance: its family, name and the hash of its canonical JSON.
    formulation : str
        Which of the family's problems is bounded.
    layout : str
        Which of the family's row layouts the prices use.
    kind : {"lagrangian", "lp-dual", "tree"}
        Where the prices came from: a bounding engine or the duals of a linear program, which are
        checked alike; ``tree`` is a `TreeCertificate`, with prices for every leaf of a branching.
    sense : {"max", "min"}
        Upper bound on a maximum or lower bound on a minimum.
    bound : float
        The bound at `prices`, rounded outward.
    prices : ndarray, shape (rows.size,)
        Price of each linking row, in units of the objective per unit of the row.
    rows : Rows
        The linking rows in the layout that the prices use.
    """

    family: str
    instance: str
    instance_sha256: str
    formulation: str
    layout: str
    kind: Kind
    sense: Literal["max", "min"]
    bound: float
    prices: Floats = field(repr=False)
    rows: Rows = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
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

    def prices_data(self) -> Any:
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


@dataclass(frozen=True)
class VerifiedBound:
    """What `verify_certificate` recomputed from the oracle alone.

    Parameters
    ----------
    certificate : Certificate
        The certificate with the recomputed bound.
    claimed : float
        The bound that the file states; equal to the recomputed one within rounding.
    """

    certificate: Certificate
    claimed: float

    @property
    def bound(self) -> float:
        """The recomputed bound, rounded outward."""
        return self.certificate.bound

    @property
    def layout(self) -> str:
        """Which of the family's row layouts the file uses."""
        return self.certificate.layout


class Run(Protocol):
    """What `certificate_of_run` needs of an online run (a ``SimulationResult``)."""

    @property
    def instance(self) -> Instance:
        """The instance that was simulated."""

    @property
    def solution(self) -> Solution:
        """The decisions."""

    @property
    def prices(self) -> Mapping[str, Any] | None:
        """The algorithm's final prices by row set."""


def certify(oracle: BlockOracle, prices: Floats, kind: Kind = "lagrangian") -> Certificate:
    """Turn prices into a certificate: compute the bound from the oracle, rounded outward.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle of the instance, in the layout of `prices`.
    prices : ndarray, shape (oracle.rows.size,)
        Any finite prices, non-negative except on equalities.
    kind : {"lagrangian", "lp-dual"}
        Where they came from.

    Raises
    ------
    InputError
        If a price is negative or not finite, or the oracle is not exact.
    SolveFailed
        If a mandatory job has no schedule at all: the problem is infeasible, not bounded.
    """
    check_certifies(oracle)
    prices = np.array(prices, dtype=float)
    if prices.shape != (oracle.rows.size,):
        raise InputError("prices", prices.shape, f"must have the shape ({oracle.rows.size},)")
    wrong = ~np.isfinite(prices) | ((prices < 0) & ~oracle.rows.free)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        where = f"prices {oracle.rows.label(first)}"
        raise InputError(where, prices[first], "must be finite and not negative")
    return _assemble(oracle, prices, oracle.bound(prices), kind)


def check_certifies(oracle: BlockOracle) -> None:
    """Refuse an oracle whose best responses may fall short of the block's optimum."""
    if not oracle.exact:
        rule = "its pricing oracle is not exact, so its prices prove no bound"
        raise InputError("formulation", oracle.formulation, rule)


def certificate_of_run(run: Run) -> Certificate:
    """Certificate from the prices that an online algorithm itself posted at the end of its run.

    Parameters
    ----------
    run : SimulationResult
        A run whose algorithm reports prices by row set, in one of the family's layouts.

    Raises
    ------
    InputError
        If the algorithm has no prices, or they fit no layout of the family.
    """
    if run.prices is None:
        raise InputError("certificate", "(absent)", "the algorithm must post prices")
    arrays = {name: np.asarray(values, dtype=float) for name, values in run.prices.items()}
    layouts = row_layouts(run.instance.family)
    for layout in sorted(layouts, key=lambda name: name != "servers"):
        oracle = build_oracle(run.instance, run.solution.formulation, rows=layout)
        shapes = {row_set.name: row_set.shape for row_set in oracle.rows.sets}
        if all(shapes.get(name) == array.shape for name, array in arrays.items()):
            return certify(oracle, oracle.rows.pack(arrays))
    fits = f"must be row sets of a layout of {run.instance.family}: {', '.join(layouts)}"
    raise InputError("prices", ", ".join(arrays), fits)


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate file."""
    write_json(certificate.to_dict(), path)


def read_certificate(path: str | Path, instance: Instance) -> Certificate:
    """Read a certificate file of `instance` and recompute its bound.

    Raises
    ------
    InputError
        If it is no certificate, belongs to another instance, or its prices do not prove the bound
        it states.
    """
    return verify_certificate(instance, read_json(path), str(path)).certificate


def verify_certificate(instance: Instance, data: Any, where: str = "certificate") -> VerifiedBound:
    """Recompute a certificate's bound from the instance and the pricing oracle alone.

    Parameters
    ----------
    instance : Instance
        The instance that the certificate is said to belong to.
    data : dict
        JSON data of a certificate file.
    where : str
        What to call the data in an error that concerns it as a whole.

    Raises
    ------
    InputError
        If anything in the file is not what the instance says, or the bound that it states is not
        the bound of its prices within rounding.
    """
    check_belongs(data, CERTIFICATE_FORMAT, instance, where)
    for key in KEYS:
        if key not in data and key != "layout":
            raise InputError(key, "(absent)", "is required")
    for key in data:
        if key not in KEYS:
            raise InputError(key, data[key], "unknown field")
    if data["instance"] != instance.name:
        raise InputError("instance", data["instance"], f"must be {instance.name}")
    if not isinstance(data["formulation"], str):
        raise InputError("formulation", data["formulation"], "must be a string")
    if data["kind"] not in KINDS:
        raise InputError("kind", data["kind"], f"must be one of {', '.join(KINDS)}")
    claimed = data["bound"]
    if isinstance(claimed, bool) or not isinstance(claimed, int | float):
        raise InputError("bound", claimed, "must be a number")
    if not math.isfinite(claimed):
        raise InputError("bound", claimed, "must be finite")
    formulation = instance.check_formulation(data["formulation"])
    if "layout" not in data:
        return VerifiedBound(_verify_in_any(instance, formulation, data, claimed), float(claimed))
    layouts = row_layouts(instance.family)
    if data["layout"] not in layouts:
        raise InputError("layout", data["layout"], f"must be {' or '.join(layouts)}")
    oracle = build_oracle(instance, formulation, rows=data["layout"])
    oracle = oracle.on_rows_of_file(data["prices"])
    return VerifiedBound(_prove(oracle, _read_prices(oracle, data), data, claimed), float(claimed))


def check_same_problem(solution: Solution, certificate: Certificate) -> None:
    """Refuse a solution and a certificate that are not of one instance and formulation.

    Raises
    ------
    InputError
        Naming what differs.
    """
    if solution.instance.sha256() != certificate.instance_sha256:
        wrong = certificate.instance_sha256
        raise InputError("instance_sha256", wrong, "must be that of the solution's instance")
    if solution.formulation != certificate.formulation:
        rule = f"the solution's formulation is {solution.formulation}"
        raise InputError("formulation", certificate.formulation, rule)


def agrees(oracle: BlockOracle, prices: Floats, bound: float, claimed: float) -> bool:
    """Whether a claimed bound is the bound of the prices within the rounding of its terms."""
    values, _ = oracle.block_values(prices)
    size = float(np.abs(oracle.price_terms(prices)).sum() + np.abs(values).sum())
    return abs(bound - claimed) <= 2 * RELATIVE_ROUNDING * (1 + size)


def oracle_of(certificate: Certificate, instance: Instance) -> BlockOracle:
    """The oracle in the certificate's own layout."""
    oracle = build_oracle(instance, certificate.formulation, rows=certificate.layout)
    return oracle.on_rows(certificate.rows)


def _verify_in_any(
    instance: Instance, formulation: str, data: Mapping[str, Any], claimed: float
) -> Certificate:
    """Verify an older file in the first layout that reproduces its bound.

    If none does, the complaint is that of the last layout that can read the prices.
    """
    unread: InputError | None = None
    unproven: InputError | None = None
    for layout in row_layouts(instance.family):
        try:
            oracle = build_oracle(instance, formulation, rows=layout)
            oracle = oracle.on_rows_of_file(data["prices"])
            prices = _read_prices(oracle, data)
        except InputError as error:
            unread = unread or error
            continue
        try:
            return _prove(oracle, prices, data, claimed)
        except InputError as error:
            unproven = error
    complaint = unproven or unread
    assert complaint is not None, "every family has a layout"
    raise complaint


def _read_prices(oracle: BlockOracle, data: Mapping[str, Any]) -> Any:
    """Prices of the rows, or of a tree's leaves."""
    if data["kind"] != "tree":
        return oracle.rows.from_file(data["prices"])
    from hindsched.solvers.bounds.tree_certificate import read_leaves

    return read_leaves(oracle, data["prices"])


def _prove(
    oracle: BlockOracle, prices: Any, data: Mapping[str, Any], claimed: float
) -> Certificate:
    """Recompute the bound of what `_read_prices` read."""
    check_certifies(oracle)
    if data["sense"] != oracle.sense:
        raise InputError("sense", data["sense"], f"must be {oracle.sense}")
    if data["kind"] == "tree":
        from hindsched.solvers.bounds.tree_certificate import verify_leaves

        return verify_leaves(oracle, prices, claimed)
    bound = oracle.bound(prices)
    if not agrees(oracle, prices, bound, claimed):
        raise InputError("bound", claimed, f"the prices prove {bound!r}")
    return _assemble(oracle, prices, bound, data["kind"])


def _assemble(oracle: BlockOracle, prices: Floats, bound: float, kind: Kind) -> Certificate:
    if not math.isfinite(bound):
        raise SolveFailed(f"{oracle.instance.name}: a job has no schedule, so nothing is bounded")
    prices = prices.copy()
    prices.flags.writeable = False
    return Certificate(
        family=oracle.instance.family,
        instance=oracle.instance.name,
        instance_sha256=oracle.instance.sha256(),
        formulation=oracle.formulation,
        layout=oracle.layout,
        kind=kind,
        sense=oracle.sense,
        bound=bound,
        prices=prices,
        rows=oracle.rows,
    )

"""The certificate file: written, read, and its bound recomputed from the pricing oracle alone.

Row layouts. A family may price the same capacities in several layouts (one row a server, one row
a group of identical servers, ...); the file names its own. Older files name row sets and labels
only: the layout is the first of the family's ``ORACLE_ROWS`` that knows all of them and proves the
bound. Prices that fit two layouts are harmless: a bound recomputed in *any* layout is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.io import read_json, write_json
from hindsched.solutions.base import check_belongs
from hindsched.solvers.certificates.certificate import (
    CERTIFICATE_FORMAT,
    KEYS,
    KINDS,
    Certificate,
    assemble,
    check_certifies,
    check_claim,
)
from hindsched.solvers.certificates.tree import read_leaves, verify_leaves
from hindsched.solvers.door.options import DEFAULT_GAP
from hindsched.solvers.oracles.base import BlockOracle, build_oracle, row_layouts


@dataclass(frozen=True)
class VerifiedBound:
    """What `verify_certificate` recomputed from the oracle alone."""

    certificate: Certificate  # with the recomputed bound
    claimed: float  # what the file states: not better, beyond rounding

    @property
    def bound(self) -> float:
        """The recomputed bound, rounded outward."""
        return self.certificate.bound

    @property
    def claims_less(self) -> bool:
        """Whether the file states a bound that is weaker than what its prices prove."""
        excess = abs(self.bound - self.claimed)
        return excess > DEFAULT_GAP * max(abs(self.bound), abs(self.claimed))

    @property
    def layout(self) -> str:
        """Which of the family's row layouts the file uses."""
        return self.certificate.layout


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate file.

    Examples
    --------
    >>> import hindsched as hs
    >>> result = hs.solve(hs.generate("oasis", seed=2), "bound", time_limit=1)
    >>> hs.write_certificate(result.certificate, "proof.json")
    """
    write_json(certificate.to_dict(), path)


def read_certificate(path: str | Path, instance: Instance) -> Certificate:
    """Read a certificate file of `instance` and recompute its bound.

    Raises
    ------
    InputError
        If it is no certificate, belongs to another instance, or its prices do not prove the bound
        it states.

    Examples
    --------
    >>> import hindsched as hs
    >>> instance = hs.generate("oasis", seed=2)
    >>> proof = hs.solve(instance, "bound", time_limit=1).certificate
    >>> hs.write_certificate(proof, "proof.json")
    >>> hs.read_certificate("proof.json", instance).bound == proof.bound
    True
    """
    return verify_certificate(instance, read_json(path), str(path)).certificate


def verify_certificate(instance: Instance, data: Any, where: str = "certificate") -> VerifiedBound:
    """Recompute the bound of a certificate file's JSON data from the instance and the oracle alone.

    Anything in the file that is not what the instance says is refused, as is a better bound than
    its prices prove, beyond rounding; a weaker one is true (`VerifiedBound.claims_less`).
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
    layouts = row_layouts(instance.family)
    if "layout" in data:
        if data["layout"] not in layouts:
            raise InputError("layout", data["layout"], f"must be {' or '.join(layouts)}")
        layouts = (data["layout"],)
    complaint: InputError | None = None  # of the last layout that can read the prices, if any can
    for layout in layouts:
        try:
            oracle = build_oracle(instance, formulation, rows=layout)
            oracle = oracle.on_rows_of_file(data["prices"])
            if data["kind"] == "tree":
                prices: Any = read_leaves(oracle, data["prices"])
            else:
                prices = oracle.rows.from_file(data["prices"])
        except InputError as error:
            complaint = complaint or error
            continue
        try:
            return VerifiedBound(_prove(oracle, prices, data, claimed), float(claimed))
        except InputError as error:
            complaint = error
    assert complaint is not None, "every family has a layout"
    raise complaint


def _prove(
    oracle: BlockOracle, prices: Any, data: Mapping[str, Any], claimed: float
) -> Certificate:
    """Recompute the bound of prices, or of a tree's leaves."""
    check_certifies(oracle)
    if data["sense"] != oracle.sense:
        raise InputError("sense", data["sense"], f"must be {oracle.sense}")
    if data["kind"] == "tree":
        return verify_leaves(oracle, prices, claimed)
    prices = oracle.paid(prices)
    bound = oracle.bound(prices)
    check_claim(oracle, prices, bound, claimed)
    return assemble(oracle, prices, bound, data["kind"])

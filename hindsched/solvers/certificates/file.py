"""The certificate file, and trees: written, read, and recomputed from the pricing oracle alone.

Row layouts. A family may price the same capacities in several layouts (one row a server, one row
a group of identical servers, ...); the file names its own, or means the first of the family's
`row_layouts`. Prices that fit two are harmless: a bound recomputed in *any* layout is a bound.

Certificates of kind ``tree``. One price vector proves the Lagrangian bound and nothing better. A
tree splits the solutions by decisions on single jobs ("j3 completes by slot 7", "j3 completes in
slot 8 or later or never") and bounds every leaf by prices of its own, with best responses that obey
the leaf's decisions. Every solution obeys the decisions of one leaf, so the worst leaf bounds the
optimum; where it meets the objective of a solution, the two files together prove that solution
optimal. Verifying needs the family's restricted oracle and nothing of how the tree was found:

- the decisions must cover the root: the first decisions of all leaves are the two sides of one
  split ("at most k" and "at least k + 1" of one feature of one job), and so on down each side;
- a leaf's bound is recomputed at full capacity from its prices, rounded outward, or its decisions
  leave some job without any schedule, which the oracle says itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.io import read_json, write_json
from hindsched.solutions.base import check_belongs
from hindsched.solvers.base import build_oracle, row_layouts
from hindsched.solvers.bounds.lagrangian import Subgradient
from hindsched.solvers.certificates import certificate as base
from hindsched.solvers.certificates.sequences import verify_sequences
from hindsched.solvers.door.options import DEFAULT_GAP
from hindsched.solvers.oracles.base import PricingOracle, RestrictableOracle
from hindsched.solvers.oracles.decisions import Axes, BranchDecision, from_file, to_file
from hindsched.solvers.oracles.restricted import RestrictedOracle

EXPLAINING_STEPS = 150
"""Subgradient steps from the leaves' prices to prices that explain a gap without branching."""
LEAF_KEYS = ("decisions", "bound", "prices")
"""Keys of a leaf in the file, in the order they are written."""
Decisions = tuple[BranchDecision, ...]


@dataclass(frozen=True)
class VerifiedBound:
    """What `verify_certificate` recomputed from the oracle alone."""

    certificate: base.Certificate  # with the recomputed bound
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


@dataclass(frozen=True)
class Leaf:
    """Solutions that obey some decisions, and what prices prove of them."""

    decisions: Decisions  # from the root down
    prices: Floats = field(repr=False)  # price of each linking row, (rows.size,)
    # what they prove, rounded outward; None where no solution obeys the decisions because a job has
    # no schedule left
    bound: float | None


@dataclass(frozen=True)
class TreeCertificate(base.Certificate):
    """A bound that is proven leaf by leaf: ``bound`` and ``prices`` are those of the worst."""

    leaves: tuple[Leaf, ...] = field(repr=False)  # they cover the root
    features: Mapping[str, Axes] = field(repr=False)  # axes of what decisions limit
    blocks: tuple[str, ...] = field(repr=False)  # their names

    @property
    def num_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaves)

    def prices_data(self) -> list[dict[str, Any]]:
        """Leaves as JSON data: the file's ``prices``."""
        written = []
        for leaf in self.leaves:
            decisions = to_file(leaf.decisions, self.features, self.blocks)
            prices = {} if leaf.bound is None else self.rows.to_file(leaf.prices)
            written.append(dict(zip(LEAF_KEYS, (decisions, leaf.bound, prices), strict=True)))
        return written

    def as_prices(self, instance: Instance) -> tuple[base.Certificate, str]:
        """Return the best bound found from the leaves' prices alone, and a line that says so.

        A leaf's prices are good for its own solutions; some subgradient steps make the best good
        for all.
        """
        oracle = oracle_of(self, instance)
        tried = {leaf.prices.tobytes(): leaf.prices for leaf in self.leaves}
        sign = 1.0 if self.sense == "max" else -1.0
        search = Subgradient(oracle, min(tried.values(), key=lambda p: sign * oracle.bound(p)))
        while search.iterations < EXPLAINING_STEPS and not search.converged:
            search.step(self.bound)
        alone = base.certify(oracle, search.best.prices)
        note = (
            f"the certificate is a tree of {len(self.leaves)} leaves that proves {self.bound:.10g};"
            f" explained is {alone.bound:.10g}, the best that prices found from its leaves' prove"
            " without branching"
        )
        return alone, note


def certify_tree(
    oracle: RestrictableOracle, leaves: Sequence[tuple[Sequence[BranchDecision], Floats]]
) -> TreeCertificate:
    """Turn a tree's leaves (decisions from the root down, prices) into a certificate.

    They must cover the root. `SolveFailed` if no leaf has a schedule for every job: the problem is
    infeasible, not bounded.
    """
    base.check_certifies(oracle)
    check_leaves_cover([tuple(decisions) for decisions, _ in leaves], "leaves")
    bounded = [_bound_leaf(oracle, tuple(path), prices) for path, prices in leaves]
    return _assemble_tree(oracle, bounded)


def write_certificate(certificate: base.Certificate, path: str | Path) -> None:
    """Write a certificate file.

    Examples
    --------
    >>> import hindsched as hs
    >>> result = hs.solve(hs.generate("oasis", seed=2), "bound", time_limit=1)
    >>> hs.write_certificate(result.certificate, "proof.json")
    """
    write_json(certificate.to_dict(), path)


def read_certificate(path: str | Path, instance: Instance) -> base.Certificate:
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
    check_belongs(data, base.CERTIFICATE_FORMAT, instance, where)
    for key in base.KEYS:
        if key not in data and key != "layout":
            raise InputError(key, "(absent)", "is required")
    for key in data:
        if key not in base.KEYS:
            raise InputError(key, data[key], "unknown field")
    if data["instance"] != instance.name:
        raise InputError("instance", data["instance"], f"must be {instance.name}")
    if not isinstance(data["formulation"], str):
        raise InputError("formulation", data["formulation"], "must be a string")
    if data["kind"] not in base.KINDS:
        raise InputError("kind", data["kind"], f"must be one of {', '.join(base.KINDS)}")
    claimed = data["bound"]
    if isinstance(claimed, bool) or not isinstance(claimed, int | float):
        raise InputError("bound", claimed, "must be a number")
    if not math.isfinite(claimed):
        raise InputError("bound", claimed, "must be finite")
    formulation = instance.check_formulation(data["formulation"])
    if data["kind"] == "sequences":
        if data["sense"] != instance.sense:
            raise InputError("sense", data["sense"], f"must be {instance.sense}")
        return VerifiedBound(verify_sequences(instance, data), float(claimed))
    layouts, is_tree, rows = row_layouts(instance.family), data["kind"] == "tree", data["prices"]
    layout = data.get("layout", layouts[0])
    if layout not in layouts:
        raise InputError("layout", layout, f"must be {' or '.join(layouts)}")
    oracle = build_oracle(instance, formulation, rows=layout).on_rows_of_file(rows)
    prices: Any = _read_leaves(oracle, rows) if is_tree else oracle.rows.from_file(rows)
    base.check_certifies(oracle)
    if data["sense"] != oracle.sense:
        raise InputError("sense", data["sense"], f"must be {oracle.sense}")
    prove = _prove_leaves if is_tree else _prove_prices
    return VerifiedBound(prove(oracle, prices, claimed, data["kind"]), float(claimed))


def oracle_of(certificate: base.Certificate, instance: Instance) -> PricingOracle:
    """The oracle in the certificate's own layout."""
    oracle = build_oracle(instance, certificate.formulation, rows=certificate.layout)
    return oracle.on_rows(certificate.rows)


def _prove_prices(
    oracle: PricingOracle, prices: Any, claimed: float, kind: Any
) -> base.Certificate:
    """Recompute the bound of one price vector."""
    prices = oracle.paid(prices)
    bound = oracle.bound(prices)
    base.check_claim(oracle, prices, bound, claimed)
    return base.assemble(oracle, prices, bound, kind)


def _read_leaves(oracle: PricingOracle, rows: Any) -> Any:
    """Decisions, prices and stated bounds of the leaves that are a tree's ``prices``."""
    if not isinstance(rows, list) or not rows:
        raise InputError("prices", rows, "must be the list of leaves of a tree")
    if not isinstance(oracle, RestrictableOracle) or not oracle.features:
        raise InputError("kind", "tree", "the blocks of this family cannot be restricted")
    blocks, read = _block_names(oracle), list[tuple[Decisions, Floats, Any]]()
    for number, row in enumerate(rows):
        where = f"prices[{number}]"
        if not isinstance(row, dict) or set(row) != set(LEAF_KEYS):
            raise InputError(where, row, f"must have exactly the keys {', '.join(LEAF_KEYS)}")
        decisions = from_file(row["decisions"], oracle.features, blocks, f"{where}.decisions")
        prices = oracle.rows.from_file(row["prices"], f"{where}.prices")
        read.append((decisions, prices, row["bound"]))
    return read


def _prove_leaves(oracle: Any, read: Any, claimed: float, kind: Any) -> TreeCertificate:
    """Recompute a tree's bound: its leaves cover the root, and none claims more than is proven."""
    check_leaves_cover([decisions for decisions, _, _ in read], "prices")
    leaves = [_bound_leaf(oracle, decisions, prices) for decisions, prices, _ in read]
    for number, (leaf, (_, _, stated)) in enumerate(zip(leaves, read, strict=True)):
        _check_stated(oracle, leaf, stated, f"prices[{number}].bound")
    certificate = _assemble_tree(oracle, leaves)
    restricted = RestrictedOracle(oracle, _weakest_leaf(oracle, leaves).decisions)
    base.check_claim(restricted, certificate.prices, certificate.bound, claimed, proof="the leaves")
    return certificate


def check_leaves_cover(leaves: Sequence[Decisions], where: str) -> None:
    """Refuse leaves that leave solutions out, or of which one lies inside another.

    The error names the first leaf whose decisions are not one side of a split that has both.
    """
    waiting = [(list(range(len(leaves))), 0)]
    while waiting:
        members, depth = waiting.pop()
        if len(members) == 1 and len(leaves[members[0]]) == depth:
            continue
        sides: tuple[list[int], list[int]] = ([], [])
        for member in members:
            here = f"{where}[{member}]"
            if len(leaves[member]) <= depth:
                rule = "must not hold other leaves: its decisions are the first of theirs"
                raise InputError(here, f"{depth} decisions", rule)
            decision, first = leaves[member][depth], leaves[members[0]][depth]
            if decision.split != first.split:
                rule = f"decision {depth + 1} must split what prices[{members[0]}]'s splits"
                raise InputError(here, f"decision {depth + 1}", rule.replace("prices", where))
            sides[decision.is_upper].append(member)
        for side, other in zip(sides, reversed(sides), strict=True):
            if not side:
                rule = f"no leaf has the other side of its decision {depth + 1}"
                raise InputError(f"{where}[{other[0]}]", "(other side absent)", rule)
        waiting += [(side, depth + 1) for side in sides]


def _bound_leaf(oracle: PricingOracle, decisions: Decisions, prices: Floats) -> Leaf:
    bound = RestrictedOracle(oracle, decisions).bound(prices)
    return Leaf(decisions, prices, bound if math.isfinite(bound) else None)


def _check_stated(oracle: PricingOracle, leaf: Leaf, stated: Any, where: str) -> None:
    """Refuse a leaf that states a better bound than it has, or an emptiness that it has not."""
    if stated is None:
        if leaf.bound is not None:
            raise InputError(where, stated, f"every job has a schedule; proven is {leaf.bound!r}")
        if np.any(leaf.prices):
            raise InputError(where, stated, "a leaf without a bound has no prices")
        return
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        raise InputError(where, stated, "must be a number or null")
    if leaf.bound is not None:  # any number is less than what no solution proves
        restricted = RestrictedOracle(oracle, leaf.decisions)
        base.check_claim(restricted, leaf.prices, leaf.bound, float(stated), where)


def _weakest_leaf(oracle: PricingOracle, leaves: Sequence[Leaf]) -> Leaf:
    sign = 1.0 if oracle.sense == "max" else -1.0
    bounded = [leaf for leaf in leaves if leaf.bound is not None]
    if not bounded:
        raise SolveFailed(f"{oracle.instance.name}: no leaf has a schedule for every job")
    return max(bounded, key=lambda leaf: sign * (leaf.bound or 0.0))


def _assemble_tree(oracle: RestrictableOracle, leaves: Sequence[Leaf]) -> TreeCertificate:
    worst = _weakest_leaf(oracle, leaves)
    assert worst.bound is not None
    about = oracle.instance
    return TreeCertificate(
        about.family, about.name, about.sha256(), oracle.formulation, oracle.layout, "tree",
        oracle.sense, worst.bound, worst.prices, oracle.rows,
        leaves=tuple(leaves), features=oracle.features, blocks=_block_names(oracle),
    )  # fmt: skip


def _block_names(oracle: PricingOracle) -> tuple[str, ...]:
    """Names of the blocks that decisions may be on, which come first."""
    return tuple(oracle.block_name(block) for block in range(oracle.num_decided))

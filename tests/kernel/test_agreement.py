"""The kernel and the fast path on random certificates and trees of every family.

Instances are those of the second opinion, whose numbers come close to ties and differ in size by
many orders. The fast path must never prove more than the kernel, and what it proves less is what
it rounds outward.

``make nightly COUNT=3000 SEED=1``: so many instances a family, with about three files each.
"""

from __future__ import annotations

import os
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hindsched.kernel.reading import LIMITS, Refused, limited
from hindsched.solvers.certificates.certificate import oracle_of
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.certificates.tree import Leaf
from hindsched.solvers.oracles.restricted import RestrictedOracle
from tests.kernel.agreement import exact, silent
from tests.second_opinion import instances
from tests.second_opinion.milp import Optimum
from tests.second_opinion.test_second_opinion import Case

pytestmark = pytest.mark.nightly

COUNT = int(os.environ.get("AGREEMENT", "25"))
FIRST = int(os.environ.get("SEED", "1")) * 1_000_000
BETTER, LOOSER = 1e-11, 1e-7
"""Of the size of all terms: what floats may be wrong by, and what rounding outward may take."""
SEARCHED = 1e-11
"""What a slot of mlbroker rounds by, of all that it could pay at its dearest price: its search ends
there, and sums of that size cancel."""
UNKNOWN = Optimum(None)
FOUND = (
    ("oasis", 5_000_106),  # packings of a server that only rounding lets in
    ("batchsched", 7_000_337),  # a worker and a PS that only rounding lets into a server
)
"""Where the fast path once proved less than the kernel."""


def numbers(data: Any) -> list[Any]:
    """All numbers in JSON data."""
    if isinstance(data, dict | list):
        inner = data.values() if isinstance(data, dict) else data
        return [number for part in inner for number in numbers(part)]
    return [] if isinstance(data, str | None) else [data]


def parts(prices: Any) -> list[Any]:
    """Row sets of prices, or of all leaves of a tree."""
    leaves = [leaf["prices"] for leaf in prices] if isinstance(prices, list) else [prices]
    return [rows for leaf in leaves for rows in leaf.values()]


class Pair(Case):
    """One instance, judged twice."""

    def bounded(self, file: dict[str, Any], bound: float, optimum: Optimum) -> None:
        """Compare what the two make of one file."""
        data = exact(file)
        try:
            with limited(LIMITS):
                found = self.kernel.bound(exact(self.instance.to_dict()), data, silent)
        except Refused as refused:
            raise AssertionError(f"the kernel refuses {file}: {refused}") from None
        self.counts[file["kind"]] += 1
        certificate = verify_certificate(self.instance, file).certificate
        loose = Fraction(bound) - found.low if self.maximising else found.high - Fraction(bound)
        oracle, size = oracle_of(certificate, self.instance), 1.0
        leaves = getattr(certificate, "leaves", [Leaf((), certificate.prices, bound)])
        for leaf in (leaf for leaf in leaves if leaf.bound is not None):
            values = RestrictedOracle(oracle, leaf.decisions).values(leaf.prices)
            terms = oracle.price_terms(leaf.prices)
            size = max(size, float(1 + np.abs(terms).sum() + np.abs(values).sum()))
        # in leaves batchsched's outside option stands for whatever begins after the priced slots
        if not (self.family == "batchsched" and file["kind"] == "tree"):
            searched = SEARCHED * self.dearest(file) if self.family == "mlbroker" else 0.0
            looser = loose > LOOSER * size + searched
            if looser and leaves[0].decisions and oracle.step is not None:
                self.counts["a step lower"] += 1  # where rounding up is a matter of a hair
                looser = loose > LOOSER * size + oracle.step
            assert not looser, f"weaker by {float(loose)}: {file}"
        assert loose >= -BETTER * size, f"better by {-float(loose)}: {file}"

    def dearest(self, file: dict[str, Any]) -> float:
        """All amounts of a mlbroker instance at the dearest price, of its own or the file's."""
        prices = numbers([self.data["transfer_usd_per_gb"], self.data["datacenters"]])
        prices += [row["price"] for rows in parts(file["prices"]) for row in rows]
        return float(max(prices)) * float(1 + sum(numbers(self.data["jobs"])))


@pytest.mark.parametrize(("family", "seed"), FOUND)
def test_agrees_where_it_did_not(family: str, seed: int, tmp_path: Path) -> None:
    case = Pair(family, seed, tmp_path)
    assert case.refusal() is None
    formulation = case.random.choice(case.module.FORMULATIONS)
    case.random_prices(formulation, UNKNOWN)
    case.random_tree(formulation, UNKNOWN)


@pytest.mark.parametrize("family", instances.FAMILIES)
def test_no_certificate_proves_more_by_the_fast_path(family: str, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + COUNT):
        case = Pair(family, seed, tmp_path)
        refusal = case.refusal()
        case.path.unlink()
        if refusal is not None:
            counts["refused"] += 1
            continue
        formulation = case.random.choice(case.module.FORMULATIONS)
        case.random_prices(formulation, UNKNOWN)
        case.random_tree(formulation, UNKNOWN)
        counts += case.counts
    print(family, dict(counts))
    assert counts["lagrangian"] >= COUNT
    assert counts["a step lower"] <= 1 + counts["tree"] / 50

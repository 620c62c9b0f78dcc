"""The kernel and the fast path on random certificates and trees of every family.

Instances are those of the second opinion, whose numbers come close to ties and differ in size by
many orders. The fast path must never prove more than the kernel, and what it proves less is what
it rounds outward.

``make agreement COUNT=3000 SEED=1``: so many instances a family, with about three files each.
"""

from __future__ import annotations

import os
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hindsched.kernel.reading import Refused
from hindsched.solvers.certificate import oracle_of
from hindsched.solvers.certificate_file import verify_certificate
from tests.kernel.agreement import exact, silent
from tests.second_opinion import instances
from tests.second_opinion.milp import Optimum
from tests.second_opinion.test_second_opinion import Case

COUNT = int(os.environ.get("AGREEMENT", "25"))
FIRST = int(os.environ.get("SEED", "1")) * 1_000_000
BETTER, LOOSER = 1e-11, 1e-7
"""Of the size of all terms: what floats may be wrong by, and what rounding outward may take."""
UNKNOWN = Optimum(None)


class Pair(Case):
    """One instance, judged twice."""

    def bounded(self, file: dict[str, Any], bound: float, optimum: Optimum) -> None:
        """Compare what the two make of one file."""
        data = exact(file)
        try:
            found = self.kernel.bound(exact(self.instance.to_dict()), data, silent)
        except Refused as refused:
            raise AssertionError(f"the kernel refuses {file}: {refused}") from None
        self.counts[file["kind"]] += 1
        certificate = verify_certificate(self.instance, file).certificate
        loose = Fraction(bound) - found.low if self.maximising else found.high - Fraction(bound)
        if file["kind"] == "tree":
            size = 1 + abs(float(found.low)) + abs(bound)
        else:
            oracle = oracle_of(certificate, self.instance)
            values, _ = oracle.block_values(certificate.prices)
            terms = oracle.price_terms(certificate.prices)
            size = 1 + float(np.abs(terms).sum() + np.abs(values).sum())
            # batchsched's outside option stands for whatever ends after the horizon
            assert loose <= LOOSER * size or self.family == "batchsched", f"{float(loose)}: {file}"
        assert loose >= -BETTER * size, f"better by {-float(loose)}: {file}"


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

"""What the kernel's tests share: random certificates and trees, by the package and the kernel."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hindsched.kernel import astraea, batchsched, edgecloud, gang, mlbroker, oasis, trees
from hindsched.kernel.exact import Interval
from hindsched.kernel.reading import RefusedFile
from hindsched.kernel.verdict import Verdict
from hindsched.solvers.oracles.decisions import BranchDecision, to_file
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import tiny_instances
from tests.strategies.oasis import oasis_instances

KERNELS: dict[str, Any] = {
    "oasis": oasis, "batchsched": batchsched, "astraea": astraea, "edgecloud": edgecloud,
    "gang": gang, "mlbroker": mlbroker,
}  # fmt: skip
INSTANCES = {
    "oasis": oasis_instances(),
    "batchsched": tiny_instances(),
    "astraea": st.integers(1, 2).flatmap(lambda types: astraea_instances(types=types)),
}


def exact(data: Any) -> Any:
    """Data as the kernel reads it from a file."""
    return json.loads(json.dumps(data), parse_float=Fraction)


def checked(family: Any, instance: Any, solution: Any) -> Verdict:
    """The verdict of a family's module on data that were read exactly."""
    formulation = solution.get("formulation", next(iter(family.Problem.formulations)))
    found: Verdict = family.Problem(instance, formulation).check(solution)
    return found


def bound_of(family: Any, instance: Any, certificate: Any) -> Interval:
    """What a certificate proves by a family's module, of data that were read exactly."""
    formulation = certificate.get("formulation", next(iter(family.Problem.formulations)))
    found: Interval = family.Problem(instance, formulation).bound(certificate)
    return found


def random_prices(oracle: Any, seed: int) -> Any:
    """Prices of several sizes, many of them 0, as decimals of few digits."""
    rng = np.random.default_rng(seed)
    size = rng.choice([0.0, 0.01, 0.3, 1.0, 5.0], oracle.rows.size) * rng.choice([0.01, 0.2, 1])
    return np.round(size * rng.random(oracle.rows.size), 3)


def certificate(oracle: Any, prices: Any, bound: Any, **other: Any) -> dict[str, Any]:
    """A Lagrangian certificate as a file has it, with any stated bound."""
    instance = oracle.instance
    return {
        "format": "hindsched-certificate/1", "family": instance.family, "instance": instance.name,
        "instance_sha256": instance.sha256(), "formulation": oracle.formulation,
        "kind": "lagrangian", "sense": oracle.sense, "bound": bound,
        "prices": oracle.rows.to_file(prices), **other,
    }  # fmt: skip


def kernel_bound(instance: Any, data: dict[str, Any]) -> Interval | None:
    """The kernel's bound of a certificate; None where a job has no schedule."""
    try:
        return bound_of(KERNELS[instance.family], exact(instance.to_dict()), exact(data))
    except RefusedFile as refused:
        if "schedule" not in str(refused):
            raise
        return None


def kernel_leaf(oracle: Any, layout: str, decisions: list[BranchDecision], prices: Any) -> Any:
    """The kernel's bound of one leaf of a tree, which alone covers nothing."""
    names = [oracle.block_name(block) for block in range(oracle.num_decided)]
    rows = to_file(decisions, oracle.features, names)
    worst = -1e18 if oracle.sense == "min" else 1e18
    leaf = {"decisions": rows, "bound": worst, "prices": oracle.rows.to_file(prices)}
    data = certificate(oracle, prices, worst, layout=layout, kind="tree") | {"prices": [leaf]}
    cover, trees._check_cover = trees._check_cover, lambda leaves: None
    try:
        return kernel_bound(oracle.instance, data)
    finally:
        trees._check_cover = cover

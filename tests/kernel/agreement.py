"""What the kernel's tests share: the package's own bounds, and the kernel on the same data."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np

from hindsched.kernel import astraea, batchsched, oasis
from hindsched.solvers.pricing.base import build_oracle
from hindsched.solvers.pricing.decisions import NEVER, Decision, Feature, limits_of, to_file
from hindsched.solvers.pricing.restricted import RestrictedOracle
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import tiny_instances
from tests.strategies.oasis import oasis_instances

KERNELS = {"oasis": oasis, "batchsched": batchsched, "astraea": astraea}
INSTANCES = {
    "oasis": oasis_instances(),
    "batchsched": tiny_instances(),
    "astraea": astraea_instances(types=1),
    "astraea2": astraea_instances(types=2),
}
LAYOUTS = {
    "oasis": ("groups", "servers", "patterns"),
    "batchsched": ("cluster", "buckets", "servers"),
    "astraea": ("cluster", "servers"),
}


def exact(data: Any) -> Any:
    """Data as the kernel reads it from a file."""
    return json.loads(json.dumps(data), parse_float=Fraction)


def silent(done: int, of: int, what: str) -> None:
    """No progress."""


def random_prices(oracle: Any, seed: int) -> Any:
    """Prices of several sizes, many of them 0, as decimals of few digits."""
    rng = np.random.default_rng(seed)
    size = rng.choice([0.0, 0.01, 0.3, 1.0, 5.0], oracle.rows.size) * rng.choice([0.01, 0.2, 1])
    return np.round(size * rng.random(oracle.rows.size), 3)


def certificate(oracle: Any, prices: Any, bound: float, **other: Any) -> dict[str, Any]:
    """A Lagrangian certificate as a file has it, with any stated bound."""
    instance = oracle.instance
    return {
        "format": "hindsched-certificate/1", "family": instance.family, "instance": instance.name,
        "instance_sha256": instance.sha256(), "formulation": oracle.formulation,
        "kind": "lagrangian", "sense": oracle.sense, "bound": bound,
        "prices": oracle.rows.to_file(prices), **other,
    }  # fmt: skip


def random_decisions(oracle: Any, seed: int) -> list[Decision]:
    """A few decisions on random features."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(rng.integers(1, 5)):
        block = int(rng.integers(len(oracle.instance.jobs)))
        name = str(rng.choice(list(oracle.features)))
        index = tuple(int(rng.integers(len(labels))) for _, labels in oracle.features[name])
        most = 6 if name in ("completion", "start") else 2
        number = int(rng.integers(0, most))
        if name == "completion" and rng.random() < 0.3:
            number = NEVER - 1
        if rng.random() < 0.5:
            found.append(Decision.at_most(block, Feature(name, index), number))
        else:
            found.append(Decision.at_least(block, Feature(name, index), number + 1))
    return found



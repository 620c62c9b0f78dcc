"""What the tests of the oracles' contract share: tiny problems, prices, and sizes of values."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.io import parse_instance
from hindsched.solvers.base import build_oracle, row_layouts
from hindsched.solvers.oracles.base import PricingOracle
from tests.second_opinion import instances

FAMILIES = tuple(instances.FAMILIES)
MANY = 8
"""Instances a family."""
CLOSE = 1e-9
"""Of the sizes of what is added up."""


@cache
def drawn(family: str) -> list[tuple[Any, Any]]:
    """Random tiny instances that the package accepts, of amounts that are not a hair apart.

    With the file's data, its numbers exact.
    """
    found: list[Any] = []
    seed = 0
    while len(found) < MANY:
        seed += 1
        text = json.dumps(instances.FAMILIES[family](seed))
        try:
            instance = parse_instance(json.loads(text))
        except InputError:
            continue
        if family == "edgecloud" and (  # the cloud alone is too simple, and most others unlimited
            not instance.groups or (len(found) > 2 and instance.cloud.ps == instance.cloud.workers)
        ):
            continue
        if len(instance.jobs) > 1 and instances.Numbers(family, seed).temper in instances.PLAIN:
            found.append((instance, json.loads(text, parse_float=Fraction)))
    return found


def layouts(instance: Any, formulation: str) -> list[str]:
    """Layouts of the rows that a problem has."""
    known = list(row_layouts(instance.family))
    in_pieces = not formulation.startswith("non-preemptive") or "makespan" in formulation
    if "placements" in known and (in_pieces or not instance.is_consolidated):
        known.remove("placements")
    return known


@cache
def problems(family: str) -> list[tuple[Any, PricingOracle]]:
    """Every instance's oracle in every layout."""
    formulations = import_module(f"tests.second_opinion.{family}").FORMULATIONS
    return [
        (instance, build_oracle(instance, formulation, rows=layout))
        for instance, _ in drawn(family)
        for formulation in formulations
        for layout in layouts(instance, formulation)
    ]


def draws_of(*what: Any) -> np.random.Generator:
    """Random numbers that depend on names only."""
    return np.random.default_rng(list(" ".join(map(str, what)).encode()))


def some_prices(oracle: PricingOracle, number: int = 0) -> Any:
    """Prices, many of them 0, at which using everything costs about what the jobs are worth."""
    draws = draws_of(oracle.instance.name, oracle.formulation, oracle.layout, number)
    free, _ = oracle.block_values(np.zeros(oracle.rows.size))
    worth = np.abs(free[np.isfinite(free)]).max(initial=1e-12)
    if oracle.instance.family == "mlbroker":  # rows of no capacity, prices of rented units
        size = worth * (0.05, 0.3, 2.0)[number % 3]
        return size * draws.random(oracle.rows.size) * draws.integers(0, 2, oracle.rows.size)
    size = draws.random(oracle.rows.size) * draws.choice([0, 0.3, 1, 3], oracle.rows.size)
    held = np.where(oracle.rows.capacity > 0, oracle.rows.capacity, 1.0)  # places have none
    prices = worth * size / held / 4
    return as_promised(oracle, np.minimum(prices, 1e50))


def as_promised(oracle: PricingOracle, prices: Any) -> Any:
    """As edgecloud's blocks are promised them: in ``literal`` alike for identical workers."""
    if oracle.instance.family != "edgecloud":
        return prices
    for name, rows in oracle.rows.slices.items():
        if "parameter_servers" in name:  # of residuals only: blocks ignore that PSs are few
            prices[rows] = 0.0
    if oracle.formulation == "literal" and oracle.rows.sets[0].name == "worker_capacity":
        wide = prices[: oracle.rows.sets[0].capacity.size].reshape(oracle.rows.sets[0].shape)
        for workers in oracle.instance.groups.values():
            wide[list(workers)] = wide[workers[0]]
    return prices


def paid(response: Any, prices: Any) -> float:
    """What a response pays for the rows that it uses."""
    return float(prices[response.rows] @ response.amounts)


def size_of(response: Any, prices: Any) -> float:
    """Sizes of the numbers that add up to a value."""
    return abs(response.objective) + float(np.abs(prices[response.rows] * response.amounts).sum())


def sign_of(oracle: PricingOracle) -> int:
    """1 where less is better."""
    return 1 if oracle.sense == "min" else -1


def use_of(oracle: PricingOracle, responses: Any) -> Any:
    """Total use of rows."""
    use = np.zeros(oracle.rows.size)
    for response in responses:
        if response is not None:
            np.add.at(use, response.rows, response.amounts)
    return use


def relaxed(oracle: PricingOracle) -> bool:
    """Whether a value may be better than that of the schedule that comes with it."""
    return oracle.instance.family == "mlbroker"

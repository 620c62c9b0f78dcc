"""What every pricing oracle must be under decisions: of each family, problem and layout."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hindsched.solvers.families.edgecloud.oracle import EdgecloudOracle
from hindsched.solvers.families.mlbroker.oracle import MlbrokerOracle
from hindsched.solvers.oracles.base import RestrictableOracle
from hindsched.solvers.oracles.decisions import (
    COMPLETES,
    NEVER,
    BranchDecision,
    Feature,
    from_file,
    limits_of,
    to_file,
)
from hindsched.solvers.oracles.restricted import RestrictedOracle
from tests.kernel.agreement import certificate, kernel_bound, kernel_leaf
from tests.solvers.pricing.contract import (
    CLOSE,
    FAMILIES,
    MANY,
    draws_of,
    paid,
    problems,
    relaxed,
    sign_of,
    size_of,
    some_prices,
    use_of,
)


def restrictable(family: str) -> list[Any]:
    """Oracles whose blocks take decisions."""
    known = [oracle for _, oracle in problems(family) if isinstance(oracle, RestrictableOracle)]
    return [oracle for oracle in known if oracle.features]


def random_decision(oracle: Any, draws: Any, found: Any) -> BranchDecision:
    """A split next to what a schedule has: most often of a feature that it has."""
    block, response = found
    if isinstance(oracle, MlbrokerOracle):
        name = (
            "tier" if block == len(oracle.instance.jobs) else str(draws.choice(["workers", "ps"]))
        )
        index = tuple(int(draws.integers(len(labels))) for _, labels in oracle.features[name])
        number = int(draws.integers(0, 2))
        if draws.random() < 0.5:
            return BranchDecision.at_most(block, Feature(name, index), number)
        return BranchDecision.at_least(block, Feature(name, index), number + 1)
    features = oracle.features_of(block, response) if response.plan is not None else {}
    if features and draws.random() < 0.5:
        feature = list(features)[int(draws.integers(len(features)))]
    else:
        known = [name for name, axes in oracle.features.items() if all(kept for _, kept in axes)]
        if features and draws.random() < 0.6:
            known = [feature.name for feature in features]
        name = str(draws.choice(known))
        axes = oracle.features[name]
        feature = Feature(name, tuple(int(draws.integers(len(labels))) for _, labels in axes))
    if isinstance(oracle, EdgecloudOracle):
        rows = [row for row, _, _ in oracle.priced.places_of(block)]
        if feature.index and feature.index[0] not in rows:  # of other types: it bars nothing
            feature = COMPLETES
    number = features.get(feature, 0) + int(draws.integers(-1, 2))
    if draws.random() < 0.5:
        return BranchDecision.at_most(block, feature, max(0, number))
    return BranchDecision.at_least(block, feature, max(1, number))


def allowed(features: Any, limits: Any) -> bool:
    """Whether features lie within limits."""
    return all(low <= features.get(f, 0) <= high for f, (low, high) in limits.items())


@pytest.mark.parametrize("family", [f for f in FAMILIES if f != "mlbroker"])
def test_a_split_loses_no_schedule_and_keeps_no_other(family: str) -> None:
    met = {"some": 0, "none": 0}
    for oracle in restrictable(family):
        sign, blocks = sign_of(oracle), range(oracle.num_decided)
        draws = draws_of(oracle.instance.name, oracle.layout)
        known: dict[int, list[Any]] = {block: [] for block in blocks}
        for number in range(4):
            prices = some_prices(oracle, number)
            for block in blocks:
                limits: Any = {}
                decisions: list[BranchDecision] = []
                response = oracle.restricted_response(block, prices, limits)
                plain = oracle.best_response(block, prices)
                outside = oracle.outside(block)
                if response is not None and plain is not None and outside is None:
                    close = pytest.approx(plain.value, rel=1e-9, abs=CLOSE * size_of(plain, prices))
                    assert response.value == close
                for _ in range(5):
                    for features, objective, use in known[block]:
                        if allowed(features, limits):
                            cost = objective + sign * float(prices @ use)
                            size = abs(objective) + float(np.abs(prices * use).sum())
                            assert sign * response.value <= sign * cost + 10 * CLOSE * size
                    met["none" if response is None else "some"] += 1
                    if response is None:
                        break
                    features = oracle.features_of(block, response)
                    assert allowed(features, limits)
                    size = size_of(response, prices)
                    cost = response.objective + sign * paid(response, prices)
                    assert abs(cost - response.value) <= 10 * CLOSE * size
                    known[block].append((features, response.objective, use_of(oracle, [response])))
                    decision = random_decision(oracle, draws, (block, response))
                    _, feature, most = decision.split
                    sides = []
                    for side in (
                        BranchDecision.at_most(block, feature, most),
                        BranchDecision.at_least(block, feature, most + 1),
                    ):
                        within = limits_of([*decisions, side])[block]
                        sides.append(oracle.restricted_response(block, prices, within))
                    best = min(sign * side.value for side in sides if side is not None)
                    assert abs(best - sign * response.value) <= 10 * CLOSE * size
                    decisions.append(decision)
                    limits = limits_of(decisions)[block]
                    response = sides[0 if decision.is_upper else 1]
    assert met["some"] > 50
    assert met["none"] > 3


@pytest.mark.parametrize("family", FAMILIES)
def test_bounds_are_the_exact_kernel_s_rounded_outward(family: str) -> None:
    """Of all blocks, and under decisions; where the kernel finds no schedule there is none."""
    met = {"leaf": 0, "no schedule": 0}
    for instance, oracle in problems(family):
        if not oracle.exact:
            continue
        sign, draws = sign_of(oracle), draws_of(instance.name, oracle.layout, "kernel")
        for number in range(3):
            prices = some_prices(oracle, number)
            found, fast = None, oracle.bound(prices)
            decisions: list[BranchDecision] = []
            if number and isinstance(oracle, RestrictableOracle) and oracle.features:
                for _ in range(number):
                    block = int(draws.integers(oracle.num_decided))
                    response = oracle.restricted_response(block, prices, {})
                    if response is not None:
                        decisions.append(random_decision(oracle, draws, (block, response)))
                node = RestrictedOracle(oracle, decisions)
                node.step, fast = None, node.bound(prices)
                found = kernel_leaf(oracle, oracle.layout, decisions, prices)
                met["leaf"] += 1
            else:
                data = certificate(oracle, prices, -sign * 1e300, layout=oracle.layout)
                found = kernel_bound(instance, data)
            # The kernel knows more of what ends after batchsched's priced slots, of its hosts, and
            # of the uploads to edgecloud's servers.
            plans = [oracle.best_response(block, prices) for block in range(oracle.num_blocks)]
            late = bool(decisions) or any(plan is not None and plan.plan is None for plan in plans)
            is_loose = family == "batchsched" and (late or oracle.layout == "cluster")
            is_loose |= oracle.layout == "types"
            if found is None or math.isinf(fast):
                met["no schedule"] += 1
                assert found is None
                assert math.isinf(fast) or is_loose
                continue
            end = found.low if sign == 1 else found.high
            size = float(np.abs(oracle.price_terms(prices)).sum()) + abs(fast) + abs(float(end))
            if isinstance(oracle, MlbrokerOracle):  # transports and presences cancel
                size += float(prices.sum() + oracle.launches.sum() + oracle.unit_prices.sum())
                size += float(instance.data.sum() * instance.transfer_price.max())
            away = sign * (end - Fraction(fast))
            assert away >= 0
            assert away <= 1e-8 * size or is_loose
    assert met["leaf"] >= 2 * MANY
    assert family in ("oasis", "astraea") or met["no schedule"] > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_limits_that_exclude_each_other_leave_nothing(family: str) -> None:
    for oracle in restrictable(family):
        prices = some_prices(oracle)
        for name, axes in oracle.features.items():
            if not all(labels for _, labels in axes):
                continue
            feature = Feature(name, (0,) * len(axes))
            for block in range(oracle.num_decided):
                assert oracle.restricted_response(block, prices, {feature: (3, 2)}) is None or (
                    family == "mlbroker"
                )


@pytest.mark.parametrize("family", FAMILIES)
def test_an_oracle_under_decisions_has_the_outside_option_that_they_keep(family: str) -> None:
    for oracle in restrictable(family):
        draws = draws_of(oracle.instance.name, oracle.layout, "outside")
        prices, sign = some_prices(oracle, 1), sign_of(oracle)
        for _ in range(6):
            block = int(draws.integers(oracle.num_decided))
            response = oracle.restricted_response(block, prices, {})
            if response is None or relaxed(oracle):
                continue
            decisions = [random_decision(oracle, draws, (block, response)) for _ in range(2)]
            node = RestrictedOracle(oracle, decisions)
            limits = limits_of(decisions)[block]
            kept = oracle.restricted_response(block, prices, limits)
            outside = oracle.outside(block)
            # It has no completion, and of all else nothing, or whatever there is behind the slots.
            runs = [low > 0 for f, (low, _) in limits.items() if f != COMPLETES]
            leaves = limits.get(COMPLETES, (0, NEVER))[1] == NEVER
            leaves &= not (oracle.optional and any(runs))
            leaves &= all(low <= high for low, high in limits.values())  # else nothing is left
            assert node.keeps(block, None) == leaves
            features = oracle.features_of(block, response)
            assert node.keeps(block, features) == allowed(features, limits)
            outside = outside if leaves else None
            ways = [sign * way.value for way in (kept, outside) if way is not None]
            found = node.best_response(block, prices)
            assert (found is None) == (not ways)
            if ways:
                assert sign * found.value == min(ways)
            values, use = node.block_values(prices)
            assert use == pytest.approx(use_of(oracle, node.responses(prices)))
            worst = sign * math.inf
            assert values[block] == (worst if found is None else found.value)
            bound = node.bound(prices)
            terms = [*oracle.price_terms(prices).tolist(), *values.tolist()]
            if not np.isfinite(values).all():
                assert bound == worst
                continue
            step = float(oracle.step or 0)
            away = sign * (math.fsum(terms) - bound)
            assert -step <= away <= 1e-8 * math.fsum(map(abs, terms))
            if step:
                assert bound / step == pytest.approx(round(bound / step))


@pytest.mark.parametrize("family", FAMILIES)
def test_decisions_come_back_from_files(family: str) -> None:
    for oracle in restrictable(family):
        names = [oracle.block_name(block) for block in range(oracle.num_decided)]
        assert len(set(names)) == len(names)
        draws, decisions = draws_of(oracle.layout), []
        for name, axes in oracle.features.items():
            if all(labels for _, labels in axes):
                index = tuple(int(draws.integers(len(labels))) for _, labels in axes)
                for block in range(len(names)):
                    decisions += [
                        BranchDecision.at_most(block, Feature(name, index), block),
                        BranchDecision.at_least(block, Feature(name, index), block + 1),
                    ]
        written = json.loads(json.dumps(to_file(decisions, oracle.features, names)))
        assert list(from_file(written, oracle.features, names, "here")) == decisions

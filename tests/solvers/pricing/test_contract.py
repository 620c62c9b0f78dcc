"""What every pricing oracle must be, said once: of each family, problem and layout of the rows.

A response costs what it says, and no schedule of a job costs less at the same prices: not those of
an independent program's optimum, nor an online algorithm's, nor what other prices brought up. A
split of a feature loses no schedule. Files bring back prices and decisions as they were.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import hindsched as hs
from hindsched.errors import InputError
from hindsched.instances.io import parse_instance
from hindsched.online.registry import algorithms
from hindsched.solutions.base import build_solution
from hindsched.solvers.pricing.base import BlockOracle, build_oracle, row_layouts
from hindsched.solvers.pricing.decisions import (
    COMPLETES,
    NEVER,
    BranchDecision,
    Feature,
    from_file,
    limits_of,
    to_file,
)
from hindsched.solvers.pricing.edgecloud.oracle import EdgecloudOracle
from hindsched.solvers.pricing.mlbroker.oracle import MlbrokerOracle
from hindsched.solvers.pricing.restricted import RestrictedOracle
from tests.kernel.agreement import certificate, kernel_bound, kernel_leaf
from tests.second_opinion import instances
from tests.second_opinion.milp import NotPolishedError

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
        if family == "edgecloud" and not instance.groups:  # the cloud alone is too simple
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
def problems(family: str) -> list[tuple[Any, BlockOracle]]:
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


def some_prices(oracle: BlockOracle, number: int = 0) -> Any:
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


def as_promised(oracle: BlockOracle, prices: Any) -> Any:
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


def sign_of(oracle: BlockOracle) -> int:
    """1 where less is better."""
    return 1 if oracle.sense == "min" else -1


def use_of(oracle: BlockOracle, responses: Any) -> Any:
    """Total use of rows."""
    use = np.zeros(oracle.rows.size)
    for response in responses:
        if response is not None:
            np.add.at(use, response.rows, response.amounts)
    return use


def relaxed(oracle: BlockOracle) -> bool:
    """Whether a value may be better than that of the schedule that comes with it."""
    return oracle.instance.family == "mlbroker"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_response_costs_what_it_says(family: str) -> None:
    for _, oracle in problems(family):
        if "makespan" in oracle.formulation:
            continue
        sign = sign_of(oracle)
        usual = some_prices(oracle)
        for prices in (0 * usual, usual, 300 * usual):  # at the last staying out is the best
            found = [oracle.best_response(block, prices) for block in range(oracle.num_blocks)]
            values, use = oracle.block_values(prices)
            assert values.shape == (oracle.num_blocks,)
            total = np.zeros(oracle.rows.size)
            for block, response in enumerate(found):
                out = oracle.optional and (response is None or response.value <= 0)
                if out:
                    assert values[block] == 0
                    continue
                if response is None:
                    assert values[block] == sign * math.inf
                    continue
                assert oracle.rows.size == 0 or response.rows.max(initial=0) < oracle.rows.size
                size = CLOSE * (1e-300 + size_of(response, prices))
                assert abs(values[block] - response.value) <= size
                cost = response.objective + sign * paid(response, prices)
                if relaxed(oracle):
                    assert response.value <= cost + size
                else:
                    assert abs(response.value - cost) <= size
                    assert (response.amounts != 0).all()
                np.add.at(total, response.rows, response.amounts)
            if not relaxed(oracle):
                scale = np.abs(oracle.rows.capacity).max(initial=1e-300)
                assert np.abs(total - use).max(initial=0.0) <= CLOSE * scale


@pytest.mark.parametrize("family", FAMILIES)
def test_a_bound_is_its_terms_rounded_outward(family: str) -> None:
    for _, oracle in problems(family):
        if "makespan" in oracle.formulation or not oracle.exact:
            continue
        sign = sign_of(oracle)
        for number in range(2):
            prices = some_prices(oracle, number)
            values, _ = oracle.block_values(prices)
            terms = [*(-sign * prices * oracle.rows.capacity).tolist(), *values.tolist()]
            bound = oracle.bound(prices)
            if not np.isfinite(values).all():
                assert bound == sign * math.inf
                continue
            away = sign * (math.fsum(terms) - bound)
            size = math.fsum(map(abs, terms))
            assert away >= 0
            assert 0.5e-9 * size <= away
            assert away <= 2e-9 * size or relaxed(oracle) or family == "gang"


@pytest.mark.parametrize("family", FAMILIES)
def test_some_blocks_are_the_same_blocks(family: str) -> None:
    for instance, oracle in problems(family):
        if type(oracle).of_blocks is BlockOracle.of_blocks:
            with pytest.raises(TypeError, match="does not divide"):
                oracle.of_blocks(slice(0, 1))
            continue
        prices = some_prices(oracle)
        values, use = oracle.block_values(prices)
        total = np.zeros_like(use)
        jobs = len(instance.jobs)
        for part in (slice(0, 1), slice(1, jobs)):
            own = oracle.of_blocks(part)
            assert own.rows.size == oracle.rows.size
            found, used = own.block_values(prices)
            assert found.tolist() == values[part].tolist()
            singles = [own.best_response(block, prices) for block in range(own.num_blocks)]
            whole = [oracle.best_response(block, prices) for block in range(jobs)[part]]
            assert [r and r.value for r in singles] == [r and r.value for r in whole]
            total += used
        assert total == pytest.approx(use, rel=1e-9, abs=1e-12 * max(1, np.abs(use).max()))


@cache
def schedules(family: str) -> list[Any]:
    """Solutions that no pricing oracle had a hand in: of an independent program, of algorithms."""
    module = import_module(f"tests.second_opinion.{family}")
    found = []
    for number, (instance, data) in enumerate(drawn(family)):
        for other, formulation in enumerate(module.FORMULATIONS):
            if (number + other) % 2 and family in ("gang", "mlbroker"):  # these take long
                continue
            statement = module.Statement(data, formulation)
            try:
                optimum = statement.program.optimum()
            except NotPolishedError:
                continue
            if optimum.value is not None:
                rows = {row["name"]: row["assignments"] for row in statement.jobs(optimum.point)}
                found.append(build_solution(instance, rows, formulation))
        for name in list(algorithms(family))[:3]:
            solution = hs.simulate(instance, name).solution
            if not solution.violations():
                found.append(solution)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_no_schedule_of_a_solution_is_better_than_the_best_response(family: str) -> None:
    met = set()
    for solution in schedules(family):
        assert solution.violations() == []
        for layout in layouts(solution.instance, solution.formulation):
            oracle = build_oracle(solution.instance, solution.formulation, rows=layout)
            sign = sign_of(oracle)
            own = oracle.use_of(solution)
            assert len(own) == oracle.num_blocks
            use = use_of(oracle, own)
            room = oracle.rows.capacity
            size = np.maximum(np.abs(room), np.abs(use).max(initial=0.0) * relaxed(oracle))
            assert (use <= room + CLOSE * size).all()
            total = math.fsum(r.objective for r in own if r is not None)
            if "makespan" not in oracle.formulation:
                assert total == pytest.approx(solution.objective(), rel=1e-9)
            for number in range(3):
                prices = some_prices(oracle, number) * (number > 0)
                values, _ = oracle.block_values(prices)
                for value, response in zip(values.tolist(), own, strict=True):
                    if response is None:
                        assert sign * value <= 0
                        continue
                    met.add((layout, number > 0))
                    cost = response.objective + sign * paid(response, prices)
                    size = size_of(response, prices)
                    assert sign * value <= sign * cost + 1e-8 * (size + abs(value))
            again = build_solution(solution.instance, solution.assignments(), solution.formulation)
            assert use_of(oracle, oracle.use_of(again)).tolist() == use.tolist()
    assert {layout for layout, _ in met} == set(row_layouts(family))


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("gang", "mlbroker")])
def test_schedules_inserted_one_by_one_fit_and_are_read_back(family: str) -> None:
    placed = 0
    for _, servers in problems(family):
        if servers.layout == "groups" and family == "oasis":  # what is left of a whole group
            continue
        if not servers.places or servers.layout != "servers":
            with pytest.raises((TypeError, InputError)):
                servers.best_response(0, servers.rows.capacity, servers.rows.capacity)
            continue
        for number in range(3):
            prices = some_prices(servers, number)
            sign, left = sign_of(servers), servers.rows.capacity.copy()
            found = []
            for block in range(servers.num_blocks):
                response = servers.best_insertion(block, prices, left)
                free = servers.best_response(block, prices, left)
                if response is None:
                    none = free is None or (servers.optional and free.value <= 0)
                    assert none or (free.plan is None and not free.rows.size)
                else:
                    whole = servers.best_response(block, prices)
                    assert response.value == free.value
                    size = CLOSE * size_of(response, prices)
                    assert sign * whole.value <= sign * response.value + size
                    use = use_of(servers, [response])
                    assert (use <= left + CLOSE * servers.rows.capacity).all()
                    left -= use
                    placed += 1
                found.append(response)
            if None in found and not servers.optional:
                continue
            solution = servers.place(found)
            assert solution.violations() == []
            objective = math.fsum(r.objective for r in found if r is not None)
            assert solution.objective() == pytest.approx(objective, rel=1e-9)
            back = servers.use_of(solution)
            assert [r is None for r in back] == [r is None for r in found]
            for one, other in zip(back, found, strict=True):
                if one is not None:
                    assert one.objective == pytest.approx(other.objective, rel=1e-9)
                    assert use_of(servers, [one]) == pytest.approx(use_of(servers, [other]))
    assert placed > 3 * MANY


def in_slots(oracle: BlockOracle, use: Any) -> list[float]:
    """Use of resources by slot, of all of oasis' servers on a side."""
    parts = oracle.rows.unpack(use)
    sides = [parts[name].sum(axis=0) for name in ("worker_capacity", "ps_capacity")]
    return [float(amount) for side in sides for amount in side.ravel()]


@pytest.mark.parametrize("family", FAMILIES)
def test_schedules_that_are_placed_together_are_read_back(family: str) -> None:
    placed = 0
    for instance, oracle in problems(family):
        if "makespan" in oracle.formulation:
            continue
        for number in range(3):
            prices = some_prices(oracle, number)
            found = [oracle.best_response(block, prices) for block in range(oracle.num_blocks)]
            if oracle.optional:
                found = [None if r is None or r.value <= 0 else r for r in found]
            elif any(r is None or r.plan is None for r in found):
                continue
            try:
                solution = oracle.place(found)
            except TypeError:
                assert oracle.layout not in ("servers", "workers", "placements", "patterns")
                assert oracle.layout != "groups" or oracle.formulation == "literal"
                continue
            if solution is None:
                continue
            placed += 1
            total = math.fsum(r.objective for r in found if r is not None)
            if not solution.violations():
                assert solution.objective() == pytest.approx(total, rel=1e-9, abs=1e-12)
            own = oracle.use_of(solution)
            for block, job in enumerate(instance.jobs):
                response, back = found[block], own[block]
                assert (response is None) == (back is None)
                if response is None:
                    continue
                if oracle.features:
                    end = oracle.features_of(block, response)[COMPLETES]
                    assert solution.completion(job.name) == end
                assert back.objective == pytest.approx(response.objective, rel=1e-9)
                kept = np.ones(oracle.rows.size, dtype=bool)
                for name in ("parameter_servers", "cloud_parameter_servers", "storage"):
                    kept[oracle.rows.slices.get(name, slice(0, 0))] = family != "edgecloud"
                one, other = (use_of(oracle, [r]) * kept for r in (response, back))
                if family == "oasis":  # what fits no server of its group may run on another one
                    one, other = (in_slots(oracle, one), in_slots(oracle, other))
                assert one == pytest.approx(other, rel=1e-9)
    assert placed > MANY or family == "mlbroker"


def restrictable(family: str) -> list[BlockOracle]:
    """Oracles whose blocks take decisions."""
    return [oracle for _, oracle in problems(family) if oracle.features]


def random_decision(oracle: BlockOracle, draws: Any, found: Any) -> BranchDecision:
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
        rows = oracle.priced.rows_of(oracle.instance.jobs[block])
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
            if number and oracle.features:
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
            is_loose = family == "batchsched" and (late or oracle.layout in ("cluster", "buckets"))
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
            with pytest.raises(ValueError, match="full capacity"):
                node.best_response(block, prices, oracle.rows.capacity)


@pytest.mark.parametrize("family", FAMILIES)
def test_prices_come_back_from_files_under_their_names(family: str) -> None:
    for _, oracle in problems(family):
        rows, prices = oracle.rows, some_prices(oracle, 2)
        written = json.loads(json.dumps(rows.to_file(prices)))
        assert rows.from_file(written).tolist() == prices.tolist()
        on_file = oracle.on_rows_of_file(written)
        own = on_file.prices_from(oracle.layout, oracle.rows, prices)
        assert on_file.bound(own) == pytest.approx(oracle.bound(prices), rel=1e-8)
        if oracle.layout == "intervals":
            continue
        assert oracle.on_rows(rows).rows.size == rows.size
        assert oracle.prices_from(oracle.layout, rows, prices) is not None
        assert oracle.prices_from("another", rows, prices) is None
        names = [json.dumps(rows.label(row)) for row in range(rows.size)]
        assert len(set(names)) == rows.size
        for row in draws_of("row").integers(rows.size, size=5).tolist() if rows.size else ():
            one = np.zeros(rows.size)
            one[row] = 2.5
            label = rows.label(row)
            (found,) = rows.to_file(one)[label.pop("rows")]
            if "slot" in label:
                label["from"] = label["to"] = label.pop("slot")
            assert found == {**label, "price": 2.5}


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


@pytest.mark.parametrize("family", FAMILIES)
def test_prices_of_a_layout_mean_the_same_on_servers(family: str) -> None:
    """A layout that merges servers is a relaxation: never the better bound at the same prices."""
    for instance, oracle in problems(family):
        if "servers" not in row_layouts(family) or oracle.layout == "preemptive":
            continue
        servers = build_oracle(instance, oracle.formulation, rows="servers")
        prices = some_prices(oracle, 1)
        spread = oracle.prices_on_servers(prices)
        assert spread.shape == (servers.rows.size,)
        assert (spread >= 0).all()
        coarser = oracle.coarser()
        if coarser is not None:
            known = some_prices(coarser, 1)
            own = oracle.bound(oracle.prices_of(coarser, known))
            assert own == pytest.approx(coarser.bound(known), rel=1e-7)
            assert dict(coarser.features) == dict(oracle.features)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_layout_that_is_not_there_is_named(family: str) -> None:
    instance, _ = drawn(family)[0]
    with pytest.raises(InputError, match=r"rows: racks: must be"):
        build_oracle(instance, rows="racks")
    oracle = build_oracle(instance)
    assert oracle.layout == row_layouts(family)[0]
    assert instance.horizon < NEVER


@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_have_names_of_their_own(family: str) -> None:
    for instance, oracle in problems(family):
        names = [oracle.block_name(block) for block in range(oracle.num_blocks)]
        assert names[: len(instance.jobs)] == [job.name for job in instance.jobs]
        assert len(set(names)) == len(names)
        assert oracle.num_decided <= oracle.num_blocks
        node = RestrictedOracle(oracle, [])
        assert [node.block_name(block) for block in range(node.num_blocks)] == names
        for block in range(len(instance.jobs), oracle.num_blocks):
            if oracle.layout == "patterns":  # of what it names, in the slot that it names
                prices = some_prices(oracle, 3)
                (rows,) = {
                    (str(label["rows"]), label["group"], label["slot"])
                    for label in map(oracle.rows.label, oracle.best_response(block, prices).rows)
                }
                assert names[block] == f"{rows[0]} {rows[1]} in slot {rows[2]}"

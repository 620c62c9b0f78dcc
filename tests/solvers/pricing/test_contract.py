"""What every pricing oracle must be, said once: of each family, problem and layout of the rows.

A response costs what it says, and no schedule of a job costs less at the same prices: not those of
an independent program's optimum, nor an online algorithm's, nor what other prices brought up. Files
bring back prices as they were. `test_contract_decisions` says the same of what trees decide.
"""

from __future__ import annotations

import json
import math
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.errors import InputError
from hindsched.models.base import subproblem
from hindsched.online.registry import algorithms
from hindsched.solutions.base import build_solution
from hindsched.solvers.base import build_oracle, row_layouts
from hindsched.solvers.door.subproblem import response_of, solve_subproblem
from hindsched.solvers.families.batchsched.oracle import BatchschedServers
from hindsched.solvers.oracles.base import BranchingOracle, PlacingOracle, PricingOracle
from hindsched.solvers.oracles.decisions import COMPLETES, NEVER
from tests.second_opinion.milp import NotPolishedError
from tests.solvers.pricing.contract import (
    CLOSE,
    FAMILIES,
    MANY,
    drawn,
    draws_of,
    layouts,
    paid,
    problems,
    relaxed,
    sign_of,
    size_of,
    some_prices,
    use_of,
)
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import tiny_instances as batchsched_instances
from tests.strategies.edgecloud import tiny_instances as edgecloud_instances
from tests.strategies.oasis import oasis_instances


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


SERVERS: dict[str, tuple[Any, Any]] = {
    "oasis": (oasis_instances(), lambda tiny: build_oracle(tiny, rows="servers")),
    "astraea": (astraea_instances(types=2), lambda tiny: build_oracle(tiny, rows="servers")),
    "batchsched": (batchsched_instances(num_jobs=1), lambda tiny: BatchschedServers(tiny, None, 9)),
    "edgecloud": (
        edgecloud_instances(max_jobs=2, clouds=(None, 0)),
        lambda tiny: build_oracle(tiny, "no-migration", rows="servers"),
    ),
}


@pytest.mark.parametrize("family", SERVERS)
def test_best_responses_are_those_of_the_program_of_the_block(family: str) -> None:
    """HiGHS on the declarative subproblem, on what is left of the servers."""
    strategy, oracle_of = SERVERS[family]

    @given(strategy, st.integers(0, 2**32))
    def check(tiny: Any, seed: int) -> None:
        oracle, draws = oracle_of(tiny), np.random.default_rng(seed)
        prices = draws.choice([0.0, 0.0, 0.5, 1.0, 3.0], oracle.rows.size)
        left = np.floor(oracle.rows.capacity * draws.choice([0, 0.5, 1, 1, 1], oracle.rows.size))
        block = seed % oracle.num_blocks
        found = oracle.best_response(block, prices, left)
        program = subproblem(oracle.instance, block, oracle.formulation)
        solution = solve_subproblem(program, oracle.rows.unpack(prices), oracle.rows.unpack(left))
        exact = response_of(oracle, block, solution, prices)
        assert (found is None) == (exact is None)
        if found is not None and exact is not None:
            assert found.value == pytest.approx(exact.value, abs=1e-6)
            assert (use_of(oracle, [found]) <= left + 1e-9).all()

    check()


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


def told_by_files(oracle: PricingOracle) -> Any:
    """Rows whose use follows from a solution: which PS serves a job of edgecloud is left open."""
    kept = np.ones(oracle.rows.size, dtype=bool)
    for name in ("parameter_servers", "cloud_parameter_servers", "storage"):
        kept[oracle.rows.slices.get(name, slice(0, 0))] = oracle.instance.family != "edgecloud"
    return kept


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("gang", "mlbroker")])
def test_schedules_inserted_one_by_one_fit_and_are_read_back(family: str) -> None:
    placed = 0
    for _, servers in problems(family):
        assert isinstance(servers, PlacingOracle) == (servers.layout == "servers")
        if not isinstance(servers, PlacingOracle):
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
                    kept = told_by_files(servers)
                    own = kept * use_of(servers, [other])
                    assert kept * use_of(servers, [one]) == pytest.approx(own)
    assert placed > 3 * MANY


def in_slots(oracle: PricingOracle, use: Any) -> list[float]:
    """Use of resources by slot, of all of oasis' servers on a side."""
    parts = oracle.rows.unpack(use)
    sides = [parts[name].sum(axis=0) for name in ("worker_capacity", "ps_capacity")]
    return [float(amount) for side in sides for amount in side.ravel()]


@pytest.mark.parametrize("family", [f for f in FAMILIES if f != "mlbroker"])  # the broker pays, too
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
            if not isinstance(oracle, PlacingOracle | BranchingOracle):
                assert oracle.layout not in ("servers", "placements", "patterns")
                assert oracle.layout != "groups" or oracle.formulation == "literal"
                continue
            solution = oracle.place(found)
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
                if isinstance(oracle, BranchingOracle):
                    end = oracle.features_of(block, response)[COMPLETES]
                    assert solution.completion(job.name) == end
                assert back.objective == pytest.approx(response.objective, rel=1e-9)
                one, other = (use_of(oracle, [r]) * told_by_files(oracle) for r in (response, back))
                if family == "oasis":  # what fits no server of its group may run on another one
                    one, other = (in_slots(oracle, one), in_slots(oracle, other))
                assert one == pytest.approx(other, rel=1e-9)
    assert placed > MANY


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
def test_prices_of_a_layout_mean_the_same_on_servers(family: str) -> None:
    """A layout that merges servers is a relaxation: never the better bound at the same prices."""
    for instance, oracle in problems(family):
        if "servers" not in row_layouts(family):
            continue
        servers = build_oracle(instance, oracle.formulation, rows="servers")
        prices = some_prices(oracle, 1)
        spread = oracle.prices_on_servers(prices)
        assert spread.shape == (servers.rows.size,)
        assert (spread >= 0).all()
        if oracle.layout == "patterns":  # which price ways to fill a server as well
            continue
        merged, full = oracle.bound(prices), servers.bound(spread)
        over = full - merged if oracle.sense == "max" else merged - full
        assert merged == full or over <= 1e-9 * (1 + abs(full))  # both infinite: nothing fits


@pytest.mark.parametrize("family", FAMILIES)
def test_a_layout_that_is_not_there_is_named(family: str) -> None:
    instance, _ = drawn(family)[0]
    with pytest.raises(InputError, match=r"rows: racks: must be"):
        build_oracle(instance, rows="racks")
    oracle = build_oracle(instance)
    assert oracle.layout == row_layouts(family)[0]
    assert instance.horizon < NEVER

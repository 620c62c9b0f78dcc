"""The compiled worker-slot program against its numpy twin, on made-up jobs with many ties."""

from __future__ import annotations

import numpy as np
import pytest

from hindsched.solvers.kernels.oasis import worker_slot
from tests import worker_slot_numpy


def made_up(seed: int):
    rng = np.random.default_rng(seed)
    horizon, servers, ps_servers, resources = rng.integers(1, 9), rng.integers(1, 6), 3, 2
    most = int(rng.integers(1, 7))
    price_levels = [np.zeros(1), np.array([0.0, 1.0, 2.0]), rng.uniform(0, 3, 50)][seed % 3]
    worker_prices = rng.choice(price_levels, (servers, resources, horizon))
    ps_prices = rng.choice(price_levels, (ps_servers, resources, horizon))
    arrival = int(rng.integers(1, horizon + 1))
    utilities = np.full(horizon + 1, np.nan)
    falling = np.sort(rng.choice([0.0, 1.0, 5.0, 9.0, *rng.uniform(0, 20, 4)], horizon))[::-1]
    utilities[arrival:] = falling[: horizon + 1 - arrival]
    chunky = seed % 2
    return {
        "worker_prices": worker_prices,
        "ps_prices": ps_prices,
        "worker_residual": rng.integers(0, 5, worker_prices.shape).astype(float),
        "ps_residual": rng.integers(0, 5, ps_prices.shape).astype(float),
        "worker_room": rng.integers(0, 4, servers),
        "ps_room": rng.integers(0, 3, ps_servers),
        "worker_demand": rng.choice([0.0, 1.0, 1.5], resources),
        "ps_demand": rng.choice([0.0, 1.0, 2.0], resources),
        "needed": np.ceil(np.arange(most + 1) * rng.choice([0.0, 0.4, 1.0]) - 1e-9).astype(int),
        "steps": np.floor(np.arange(most + 1) / 0.7).astype(int) if chunky else np.arange(most + 1),
        "total": int(rng.integers(1, 12)),
        "utilities": utilities,
        "arrival": arrival,
    }


def by_kernel(data, limited: bool, floor: float = -np.inf):
    horizon = data["utilities"].size - 1
    workers, ps = (
        worker_slot.Side(
            data[f"{role}_prices"],
            data[f"{role}_residual"],
            np.zeros_like(data[f"{role}_residual"]),
            limited,
            data[f"{role}_room"],
            data[f"{role}_demand"],
        )
        for role in ("worker", "ps")
    )
    names = ("needed", "steps", "total", "utilities", "arrival")
    task = worker_slot.Task(*(data[name] for name in names))
    scratch = worker_slot.Scratch(
        np.empty((horizon + 1, data["total"] + 1)),
        np.empty((horizon + 1, data["needed"].size)),
        np.empty((horizon + 1, 2), dtype=np.int64),
        np.zeros(horizon + 1, dtype=np.int64),
    )
    value, end = worker_slot.best_schedule(workers, ps, task, floor, scratch)
    return value, end, scratch.workers


def by_numpy(data, limited: bool):
    left = {} if limited else {"worker_residual": None, "ps_residual": None}
    return worker_slot_numpy.best_schedule(**{**data, **left})


@pytest.mark.parametrize("limited", [False, True])
def test_kernel_equals_numpy_schedule_for_schedule(limited):
    found = 0
    for seed in range(600):
        data = made_up(seed)
        expected_value, expected_end, expected_workers = by_numpy(data, limited)
        value, end, workers = by_kernel(data, limited)
        assert end == expected_end, seed
        if end == 0:
            assert value == -np.inf
            continue
        found += 1
        assert value == pytest.approx(expected_value, abs=1e-12)
        assert workers[:end].tolist() == expected_workers[:end].tolist(), seed
    assert found > 150


def test_a_floor_changes_nothing_above_it_and_hides_what_is_not():
    for seed in range(200):
        data = made_up(seed)
        value, end, workers = by_kernel(data, False)
        if end == 0:
            continue
        below = by_kernel(data, False, value - 1e-3)
        assert below[:2] == (value, end)
        assert below[2].tolist() == workers.tolist()
        assert by_kernel(data, False, value)[1] == 0

"""Optima that near ties or tiny weights could hide: what is called optimal, and on whose word."""

from __future__ import annotations

import pytest

import hindsched as hs
from hindsched.instances.gang.instance import GangInstance
from hindsched.solvers.door.program import within_gap


def gang(jobs, **cluster):
    """A gang instance of a few jobs."""
    head = {"format": "hindsched/1", "family": "gang", "name": "ties", "horizon": 9}
    return GangInstance.parse({**head, **cluster, "jobs": jobs})


TINY = gang(
    [
        {"name": "j0", "submit": 0, "gpus": 1, "duration": 1.5, "weight": 2e-9},
        {"name": "j1", "submit": 2, "gpus": 1, "duration": 0.5, "weight": 1e-9},
    ],
    slot_seconds=0.5, placement="consolidated",
    servers=[{"name": "s0", "gpus": 1}, {"name": "s1", "gpus": 2}],
)  # fmt: skip
"""Weights below every absolute tolerance of a solver: elastic, the optimum is 1.5e-9."""
UNEQUAL = gang(
    [
        {"name": "j0", "submit": 240, "gpus": 2, "duration": 180, "weight": 1e6},
        {"name": "j1", "submit": 0, "gpus": 4, "duration": 180, "weight": 5e6, "most_gpus": 5},
        {"name": "j2", "submit": 240, "gpus": 1, "duration": 120},
    ],
    slot_seconds=60, gpus=4,
)  # fmt: skip
"""A solver's relative tolerance is worth 17 slots of j2: elastic, the optimum is 1020000060."""


@pytest.mark.parametrize(("instance", "optimum"), [(TINY, 1.5e-9), (UNEQUAL, 1020000060)])
def test_a_bound_that_is_called_certified_is_the_certificates(instance, optimum):
    result = hs.solve(instance, formulation="elastic", time_limit=20)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    assert result.bound <= optimum
    assert result.proof == "certificate"
    assert result.bound == result.certified_bound


def test_a_gap_of_tiny_objectives_is_relative():
    assert not within_gap(3.5e-9, 3.1e-9, 1e-6)
    assert within_gap(3.5e-9, 3.5e-9 * (1 - 1e-7), 1e-6)
    assert within_gap(0.0, -1e-9, 1e-6)
    assert not within_gap(0.0, -1e-7, 1e-6)

"""No algorithm of any family beats the optimum of tiny instances, by the second opinion."""

from __future__ import annotations

import pytest
from hypothesis import given

from hindsched.online.registry import algorithms, build_algorithm
from hindsched.online.simulator import simulate
from tests.second_opinion.settle import optimum
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import tiny_instances as batchsched_instances
from tests.strategies.edgecloud import tiny_instances as edgecloud_instances
from tests.strategies.gang import tiny_instances as gang_instances
from tests.strategies.mlbroker import instances as mlbroker_instances
from tests.strategies.oasis import oasis_instances, regretful_oasis_instances

TINY = {
    "oasis": regretful_oasis_instances() | oasis_instances(),
    "batchsched": batchsched_instances(),
    "astraea": astraea_instances(horizon=8, most_jobs=3, most_servers=2),
    "edgecloud": edgecloud_instances(max_jobs=3, clouds=(None, 1)),
    "mlbroker": mlbroker_instances(centers=3, slots=2, jobs=2, workers=3, kinds=1),
    "gang": gang_instances(),
}
SLOW = ("dorm",)
"""Solves programs at every event; `test_baselines` knows its schedules by hand."""


@pytest.mark.parametrize("family", TINY)
def test_no_algorithm_beats_the_optimum_and_often_none_reaches_it(family):
    names = [
        name for name in algorithms(family)
        if name not in SLOW and not build_algorithm(family, name).relaxes_constraints
    ]  # fmt: skip
    reached = []

    @given(TINY[family])
    def compare(instance):
        best = optimum(instance)
        sign = 1 if instance.sense == "max" else -1
        short = []
        for name in names:
            run = simulate(instance, name)
            if run.in_feasible_set:
                assert run.violations == [], name
                short.append(sign * (best - run.objective))
                assert short[-1] >= -1e-6 * (1 + abs(best)), name
        reached.append(min(short) <= 1e-6 * (1 + abs(best)))

    compare()
    assert any(reached)
    if family == "oasis":  # the larger part of its instances punishes who does not see the future
        assert not all(reached)

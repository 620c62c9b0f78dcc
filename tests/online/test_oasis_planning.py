"""`reoptimise` of oasis: what is left as an instance of its own, against the program of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hindsched as hs
from hindsched.models.base import Commitments
from hindsched.online.oasis.algorithms import OasisReoptimise
from hindsched.solutions.base import build_solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.oasis.rest import rest_of, rows_from
from tests.strategies.oasis import oasis_instances


class Compared(OasisReoptimise):
    """Solves every rest by the program over real servers as well."""

    def start(self, environment: Any) -> None:
        super().start(environment)
        self.solved: list[tuple[float, float]] = []

    def _plan_again(self, slot: int) -> None:
        rolling = self._rolling
        rolling.advance(slot)
        program = rolling.build()
        alone = solve_program(program.model, SolveOptions(gap=1e-7))
        rest = rest_of(rolling.instance, rolling.commitments())
        for index, facts in program.plan.jobs.items():
            name = rolling.instance.jobs[index].name
            own = next(job for job in rest.jobs if job.name == name)
            assert (own.arrival, rest.work_of(own)) == (facts.first, facts.work)
            ends = list(facts.utilities)
            values = list(facts.utilities.values())
            np.testing.assert_allclose(rest.utilities(own)[ends], values, 1e-12)
            assert rest.most_workers(own) == facts.most[ends[-1]]
        assert len(rest.jobs) == len(program.plan.jobs)
        super()._plan_again(slot)
        decided = sum(program.plan.decided.values())
        plan = build_solution(rest, self._plan)
        assert plan.is_feasible()
        assert alone.objective is not None
        self.solved.append((plan.objective() + decided, alone.objective))


def compare(instance: Any) -> int:
    algorithm = Compared()
    run = hs.simulate(instance, algorithm)
    assert run.violations == []
    assert run.report["limits_reached"] == 0
    found, alone = np.array(algorithm.solved).T
    np.testing.assert_allclose(found, alone, rtol=1.1e-4, atol=1e-6)
    return len(found)


@pytest.mark.parametrize("seed", range(4))
def test_every_plan_is_optimal_over_real_servers(seed):
    assert compare(hs.generate("oasis", seed=seed, jobs=7, horizon=7)) >= 3


@given(oasis_instances())
def test_every_plan_is_optimal_on_odd_instances(instance):
    compare(instance)


def test_the_rest_knows_what_was_done_and_who_was_refused():
    instance = hs.generate("oasis", seed=1, jobs=3, horizon=9)
    first, second, third = instance.jobs
    row = {"from": first.arrival, "to": first.arrival, "workers": {"w1": 2}, "ps": {"p1": 1}}
    slot = max(job.arrival for job in instance.jobs) + 1
    rows = {first.name: [row]}
    given_up = frozenset({second.name})
    rest = rest_of(instance, Commitments(now=slot, assignments=rows, rejected=given_up))
    assert [job.name for job in rest.jobs] == [first.name, third.name]
    assert rest.work.tolist() == [instance.work[0] - 2, instance.work[2]]
    assert rest.arrival.tolist() == [slot, slot]
    assert rest.worker_capacity is instance.worker_capacity


def test_rows_are_cut_at_a_slot():
    rows = [{"from": 1, "to": 2, "x": 0}, {"from": 2, "to": 5, "x": 1}, {"from": 6, "to": 6}]
    assert rows_from(rows, 4) == [{"from": 4, "to": 5, "x": 1}, {"from": 6, "to": 6}]
    assert rows[1]["from"] == 2

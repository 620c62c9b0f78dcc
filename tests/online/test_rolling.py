"""The rolling program against the one that is built anew; steps too large for it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import hindsched as hs
from hindsched.errors import InputError
from hindsched.instances.gang.instance import GangInstance
from hindsched.models.base import Commitments, offline_program
from hindsched.online.engines import reoptimise
from hindsched.online.mlbroker.baselines import ReoptimiseWithForecasts
from hindsched.online.oasis import algorithms as of_oasis
from hindsched.solutions.base import build_solution
from hindsched.solvers.bounds.schedule_prices import best_schedules
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.rolling import RollingProgram

STREAMS = {
    "batchsched": {"jobs": 5, "servers": 2},
    "astraea": {"jobs": 6, "horizon": 10},
    "edgecloud": {"jobs": 8},
    "mlbroker": {"jobs": 4},
    "gang": {"preset": "small", "jobs": 7, "gpus": 4, "widths": [1, 2, 3]},
}


SETTLES = ("batchsched", "gang")
"""Runs in which jobs end early enough to leave the program."""


class Compared(RollingProgram):
    """A rolling program that remembers everything, and builds it anew at every step."""

    steps: ClassVar[list[tuple[float, float]]] = []
    settled: ClassVar[list[int]] = []

    def __init__(self, *args, **keywords):
        super().__init__(*args, **keywords)
        self.options = SolveOptions(gap=1e-7)
        self.worth = []
        self.all_jobs, self.all_rows, self.all_locked = [], {}, set()

    def add(self, jobs):
        jobs = list(jobs)
        self.all_jobs += jobs
        super().add(jobs)

    def commit(self, rows=None, *, whole=()):
        for name, new in (rows or {}).items():
            self.all_rows.setdefault(name, []).extend(new)
        self.all_locked.update(whole)
        super().commit(rows, whole=whole)

    def settle(self, names):
        names = list(names)
        jobs = tuple(job for job in self.all_jobs if job.name in names)
        if jobs:
            rows = {job.name: self.all_rows.get(job.name, []) for job in jobs}
            over = build_solution(self.cluster.with_jobs(jobs), rows, self.formulation)
            self.worth.append(over.objective())
        super().settle(names)

    def whole(self, objective):
        """Objective with that of the jobs that are settled."""
        if objective is None:
            return None
        if "makespan" in self.formulation:
            return max([objective, *self.worth])
        return objective + sum(self.worth)

    def solve(self, start=None, options=None):
        everything = Commitments(self.slot, self.all_rows, frozenset(self.all_locked))
        program = offline_program(
            self.cluster.with_jobs(tuple(self.all_jobs)), self.formulation, commitments=everything
        )
        step = super().solve(start, options)
        rebuilt = solve_program(program.model, SolveOptions(gap=1e-7))
        assert step.result.status == rebuilt.status
        Compared.steps.append((self.whole(step.result.objective), rebuilt.objective))
        Compared.settled.append(len(self.all_jobs) - len(self.instance.jobs))
        return step


@pytest.mark.parametrize("family", STREAMS)
def test_it_equals_the_program_built_anew_at_every_step(family, monkeypatch):
    monkeypatch.setattr(reoptimise, "RollingProgram", Compared)
    monkeypatch.setattr(Compared, "steps", [])
    monkeypatch.setattr(Compared, "settled", [])
    for seed in (0, 1):
        run = hs.simulate(hs.generate(family, seed=seed, **STREAMS[family]), "reoptimise")
        assert run.violations == []
    assert len(Compared.steps) >= 4
    hot, rebuilt = np.array(Compared.steps, dtype=float).T
    np.testing.assert_allclose(hot, rebuilt, rtol=1e-5, atol=1e-6)
    if family in SETTLES:
        assert max(Compared.settled) > 0


def test_a_makespan_is_that_of_the_last_job_however_many_are_settled():
    instance = GangInstance.parse(
        {
            "family": "gang", "name": "span", "horizon": 9, "slot_seconds": 1, "gpus": 1,
            "jobs": [
                {"name": name, "submit": submit, "duration": 2, "gpus": 1}
                for name, submit in (("one", 0), ("two", 0), ("later", 5))
            ],
        }
    )  # fmt: skip
    rolling = Compared(instance, "non-preemptive,makespan")
    rolling.add(instance.jobs[:2])
    first = rolling.solve()
    rolling.commit(first.plan.assignments(), whole=["one", "two"])
    rolling.advance(5)
    over = rolling.solve()
    rolling.add(instance.jobs[2:])
    rolling.advance(6)
    last = rolling.whole(rolling.solve().result.objective)
    assert (last, over.program.instance.jobs, first.result.objective) == (7.0, (), 4.0)


SIZES = {
    "oasis": {"jobs": 10, "horizon": 10},
    "batchsched": {"jobs": 6, "servers": 3},
    "astraea": {"jobs": 8, "horizon": 12},
    "edgecloud": {"jobs": 12},
    "mlbroker": {"jobs": 8},
}


@pytest.mark.parametrize("family", SIZES)
def test_large_steps_are_nearly_as_good_as_the_program_and_say_their_gap(family, monkeypatch):
    instance = hs.generate(family, seed=1, **SIZES[family])
    exact = hs.simulate(instance, "reoptimise")
    monkeypatch.setattr(reoptimise, "MOST_COLUMNS", -1)
    monkeypatch.setattr(of_oasis, "MOST_PLACES", -1)
    run = hs.simulate(instance, "reoptimise")
    assert run.violations == []
    assert run.objective == pytest.approx(exact.objective, rel=0.2)
    assert len(run.report["gaps"]) == run.report["solves"] > 1
    assert all(0 <= step["gap"] < 1 for step in run.report["gaps"])


def test_a_step_that_leaves_out_a_job_that_must_run_asks_the_program(monkeypatch):
    instance = hs.generate("edgecloud", seed=1, jobs=12)
    exact = hs.simulate(instance, "reoptimise")
    asked = []

    def without_the_first(oracle, *given, **settings):
        schedules = best_schedules(oracle, *given, **settings)
        asked.append(oracle.optional)
        return replace(schedules, responses=[None, *schedules.responses[1:]])

    monkeypatch.setattr(reoptimise, "MOST_COLUMNS", -1)
    monkeypatch.setattr(reoptimise, "best_schedules", without_the_first)
    run = hs.simulate(instance, "reoptimise")
    assert len(asked) > 1
    assert not any(asked)
    assert run.violations == []
    assert run.objective == pytest.approx(exact.objective, rel=0.05)
    assert all(0 <= step["gap"] < 1 for step in run.report["gaps"])


def test_tier_prices_bound_what_is_left_beside_what_is_given_out(monkeypatch):
    gains = []

    class Checked(ReoptimiseWithForecasts):
        def _count(self, slot, objective, bound, limited):
            super()._count(slot, objective, bound, limited)
            known, given = self._rolling.instance, self._rolling.commitments().assignments
            names = [job.name for job in known.jobs]
            rows = {name: [*given.get(name, ()), *self._plan.get(name, ())] for name in names}
            planned = build_solution(known, rows, "tight").objective()
            best = self._rolling.solve().result
            assert planned - objective + bound <= best.objective * (1 + 1e-9)
            assert best.bound <= planned * (1 + 1e-9)
            gains.append(planned - objective)

    monkeypatch.setattr(reoptimise, "MOST_COLUMNS", -1)
    for seed in range(3):
        run = hs.simulate(hs.generate("mlbroker", seed=seed, jobs=6), Checked())
        assert run.violations == []
    assert max(gains) > 0


@pytest.mark.parametrize("family", hs.families())
def test_a_time_limit_bounds_each_solve(family):
    if "reoptimise" not in hs.algorithms(family):
        return
    instance = hs.generate(family, preset="small", seed=0)
    run = hs.simulate(instance, "reoptimise", settings={"time_limit": 5.0})
    assert run.violations == []
    assert run.report["seconds_a_solve"] == 5.0
    with pytest.raises(InputError, match="time_limit"):
        hs.simulate(instance, "reoptimise", settings={"time_limit": 0})

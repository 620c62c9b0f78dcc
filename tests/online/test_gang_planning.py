"""Plans of gang that are made again at arrivals: any number of slots, and what is fixed stays."""

from __future__ import annotations

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.gang.generator import generate
from hindsched.instances.gang.instance import GangInstance
from hindsched.models.base import Commitments
from hindsched.models.gang.sets import outlook
from hindsched.solutions.base import build_solution
from hindsched.solvers.families.gang.planning import (
    best_plan,
    open_jobs,
    plan_in_order,
)
from hindsched.solvers.families.gang.replay import replay
from hindsched.solvers.kernels.gang.orders import total_cost

BUSY = {"jobs": 50, "gpus": 16, "load": 1.5, "weight": (1, 5), "deadline_factor": (1.2, 3.0)}

BUSY_SERVERS = {**BUSY, "jobs": 30, "servers": 4}
LONG = {"pool": ("paper", 2, BUSY), "servers": ("servers", 3, BUSY_SERVERS)}


def half_begun(instance):
    """What a queue began up to the middle of its starts, that slot, and what is left to plan."""
    known = replay(instance, "fifo")
    now = int(np.quantile(known.starts, 0.5))
    runs = known.assignments()
    begun = {name: rows for name, rows in runs.items() if rows[0]["from"] <= now}
    view = outlook(instance, "non-preemptive", Commitments(now + 1, begun, frozenset(begun)), None)
    left = open_jobs(instance, "non-preemptive", view)
    assert left.fixed > 0
    assert len(view.tasks) > 5
    return begun, now, view, left


@pytest.mark.parametrize("formulation", GangInstance.formulations)
@pytest.mark.parametrize("algorithm", ["reoptimise", "dual-price"])
@pytest.mark.parametrize("place", LONG)
def test_plans_for_hundreds_of_thousands_of_slots_are_feasible(place, algorithm, formulation):
    preset, seed, settings = LONG[place]
    instance = generate(preset, seed, **settings)
    assert instance.is_consolidated == (place == "servers")
    assert instance.serial_end > 100_000
    run = hs.simulate(instance, algorithm, formulation=formulation)
    assert run.violations == []
    counted = run.report["searches" if algorithm == "reoptimise" else "climbs"]
    assert counted == np.unique(instance.submits).size
    again = hs.simulate(instance, algorithm, formulation=formulation)
    assert again.solution.to_dict() == run.solution.to_dict()


def test_a_run_may_begin_with_programs_and_go_on_with_searches():
    instance = hs.generate("gang", preset="small", seed=1, jobs=6)
    late = [job.model_copy(update={"submit": job.submit + 990, "name": f"{job.name}-late"})
            for job in instance.jobs]  # fmt: skip
    run = hs.simulate(instance.with_jobs((*instance.jobs, *late)), "reoptimise",
                      formulation="preemptive")  # fmt: skip
    assert run.violations == []
    assert run.report["solves"] > 0
    assert run.report["searches"] > 0


def test_a_plan_leaves_alone_what_is_fixed_and_only_improves():
    instance = generate("paper", 4, **BUSY)
    begun, now, view, left = half_begun(instance)
    plan = plan_in_order(left, np.arange(len(view.tasks), dtype=float))
    better = best_plan(left, [plan], 5_000)
    for starts in (plan, better):
        rows = dict(begun)
        for task, start in zip(view.tasks, starts.tolist(), strict=True):
            job = instance.jobs[task.job]
            rows[job.name] = [{"from": start + 1, "to": start + job.duration, "gpus": job.gpus}]
            assert start >= now
        assert build_solution(instance, rows).violations() == []
    fixed = left.jobs.submit[: left.fixed]
    cost = [total_cost(left.jobs, np.concatenate([fixed, starts])) for starts in (plan, better)]
    assert cost[1] < cost[0] < 1e30

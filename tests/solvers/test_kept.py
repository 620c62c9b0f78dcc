"""A kept program against the same program built anew, step by step."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest

import hindsched as hs
from hindsched.models import base
from hindsched.solvers.door import kept as module
from hindsched.solvers.door.kept import KeptProgram
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import Status

SIZES = {
    "oasis": {"preset": "small", "jobs": 12},
    "batchsched": {"jobs": 4, "servers": 2, "worker_types": 1, "ps_types": 1},
    "astraea": {"jobs": 6, "horizon": 8},
    "edgecloud": {"preset": "small", "jobs": 7},
    "mlbroker": {"preset": "small"},
    "gang": {"preset": "small", "jobs": 7},
}
STEPS = hypothesis.settings.default.max_examples
LAST = 40


def anew(kept, instance, shares):
    """Optimum of the relaxation built from nothing, its capacities scaled."""
    models = base.family_models(instance.family)
    settings = dict(models.aggregated)
    if models.decisions:
        settings["policy"] = base.ScenarioPolicy(base.ALONE, kept.last)
    program = base.offline_program(instance, relax=True, **settings)
    for name in models.linking:
        rows = program.model.component(name)
        for key, row in {} if rows is None else rows.items():
            slot = key[models.linking_slot] if isinstance(key, tuple) else key
            row.set_value((None, row.body, shares[min(slot, len(shares)) - 1] * row.upper()))
    return solve_program(program.model).objective


@pytest.mark.parametrize("family", SIZES)
def test_it_equals_the_program_built_anew_at_random_steps(family):
    draws, steps, seed = np.random.default_rng(7), 0, 0
    while steps < STEPS:
        instance = hs.generate(family, seed=seed, **SIZES[family])
        kept, known = KeptProgram.relaxation(instance, None, last=LAST), []
        for job in instance.jobs:
            known.append(kept.add(job) and job)
            shares = draws.uniform(0.7, 1.0, LAST)
            kept.scale_capacities(shares)
            reference = anew(kept, instance.with_jobs(tuple(known)), shares)
            if reference is None:  # must run and cannot, where little is left
                continue
            assert kept.solve() == Status.OPTIMAL
            assert kept.objective == pytest.approx(reference, rel=1e-7, abs=1e-7)
            steps += 1
        seed += 1


@pytest.mark.parametrize("family", [family for family in SIZES if family != "mlbroker"])
def test_with_all_jobs_fixed_it_is_worth_what_the_schedule_is(family):
    instance = hs.generate(family, seed=3, **SIZES[family])
    solution = hs.solve(instance, time_limit=5).solution
    last = max(instance.horizon, *(solution.completion(job.name) or 0 for job in instance.jobs))
    kept = KeptProgram.relaxation(instance, None, last=last)
    for job in instance.jobs:
        kept.add(job)
        kept.fix(job.name, solution.assignments().get(job.name, []))
    assert kept.solve() == Status.OPTIMAL
    assert kept.objective == pytest.approx(solution.objective(), rel=1e-6)


def test_one_object_of_highs_serves_a_run_and_a_job_is_compiled_once(monkeypatch):
    compiled, objects = [], []
    compile_program, make = module.compile_program, module.highspy.Highs
    monkeypatch.setattr(
        module, "compile_program", lambda m: compiled.append(m) or compile_program(m)
    )
    monkeypatch.setattr(module.highspy, "Highs", lambda: objects.append(1) or make())
    instance = hs.generate("oasis", preset="small", seed=1)
    hs.simulate(instance, "dual-price")
    assert len(compiled) == len(instance.jobs)
    assert len(objects) == 1

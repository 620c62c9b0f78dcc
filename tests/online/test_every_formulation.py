"""Every algorithm runs in all problems of its family; who stays inside obeys their rules."""

import pytest

import hindsched as hs
from hindsched.instances.io import instance_class

PROBLEMS = [
    (family, f) for family in hs.families() for f in instance_class(family).formulations[1:]
]


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
def test_every_algorithm_runs(family, formulation):
    whole = hs.generate(family, preset="small", seed=1)
    instance = whole.with_jobs(whole.jobs[:3])
    for name in hs.algorithms(family):
        run = hs.simulate(instance, name, formulation=formulation)
        broken = [found for found in run.violations if not found.startswith("(3k)")]
        assert not (run.in_feasible_set and broken), (name, broken)

"""The edgecloud oracle against the program of its block; bounds and searches against optima."""

from __future__ import annotations

import pytest
from hypothesis import given

from hindsched.instances.edgecloud.generator import generate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.families.edgecloud import methods
from hindsched.solvers.families.edgecloud.methods import insertion_schedule, lp_4_plus
from tests.strategies.edgecloud import tiny_instances

FORMULATIONS = ("no-migration", "literal")


@given(tiny_instances())
def test_certified_duals_prove_lp_4_plus(tiny):
    """LP (4)+ <= its duals with exact blocks <= optimum, in both formulations and layouts."""
    for formulation in FORMULATIONS:
        best = solve(tiny, "milp", formulation=formulation).objective
        for layout in ("groups", "types"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(methods, "lp_layout", lambda *_, layout=layout: layout)
                certificate, details = lp_4_plus(tiny, formulation, SolveOptions())
            assert certificate.layout == layout
            assert details["lp_4_plus"] <= certificate.bound + 1e-4
            assert certificate.bound <= best + 1e-6


def test_simple_schedules_are_feasible_on_all_variants():
    found = []
    for settings_ in ({}, {"cloud_workers": 2}, {"cloud_workers": 0}, {"storage_gb": 8}):
        for seed in range(3):
            small = generate("small", seed, chunk_gb=(2, 4), **settings_)
            best = solve(small, "relaxation").bound
            made = insertion_schedule(small, "no-migration")
            if made is not None:
                assert made.violations() == []
                assert made.objective() >= best - 1e-6
                found.append(made)
    assert len(found) >= 10

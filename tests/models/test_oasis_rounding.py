"""Lines below the number of PSs that whole workers need, and the ends that they exclude."""

from __future__ import annotations

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.ends import build_ends_program
from hindsched.models.oasis.rounding import lines_below
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program


def test_lines_are_the_convex_function_below() -> None:
    needed = np.array([0, 1, 1, 1, 2, 2, 4])
    lines = lines_below(needed)
    below = [max(slope * n + at_none for slope, at_none in lines) for n in range(needed.size)]
    assert all(low <= own + 1e-12 for low, own in zip(below, needed, strict=True))
    assert below[0] == 0.0
    assert below[-1] == pytest.approx(4.0)
    slopes = [slope for slope, _ in lines]
    assert slopes == sorted(slopes)


def test_whole_ps_exclude_ends_that_fractions_of_them_allow() -> None:
    instance = hs.generate("oasis", "paper", 11, jobs=4, horizon=5, servers=3, max_duration=3)
    program = build_ends_program(instance)
    exact = SolveOptions(gap=1e-7)
    found = solve_program(program.model, exact)
    best = hs.solve(instance, "milp", time_limit=60).objective
    assert found.bound == pytest.approx(best)
    for row in program.model.eq_6_whole.values():
        row.deactivate()
    assert solve_program(program.model, exact).bound > 1.1 * best


@pytest.mark.parametrize(
    ("name", "optimum"), [("h5-s1", 250.338), ("h10-s0", 287.064), ("h25-s0", 182.359)]
)
def test_the_ends_of_the_paper_s_small_instances_are_attained(name: str, optimum: float) -> None:
    instance = hs.read(f"tests/data/instances/oasis-t10-i10-{name}.json")
    assert isinstance(instance, OasisInstance)
    found = solve_program(build_ends_program(instance).model, SolveOptions())
    assert found.bound == pytest.approx(optimum, abs=1.5e-3)

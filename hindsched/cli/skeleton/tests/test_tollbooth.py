"""What the family finds is right: all choices of starts are tried."""

import itertools
from typing import Any

import pytest

import hindsched as hs
from hindsched.online.checks import check_algorithm


def best_of_all(instance: Any) -> float:
    """Best total toll of all choices of starts."""
    best = 0.0
    for starts in itertools.product(*([None, *instance.starts(job)] for job in instance.jobs)):
        rows = {
            job.name: [instance.row(job, start)]
            for job, start in zip(instance.jobs, starts, strict=True)
            if start is not None
        }
        solution = hs.build_solution(instance, rows)
        if solution.is_feasible():
            best = max(best, solution.objective())
    return best


@pytest.mark.parametrize("seed", range(3))
def test_optima_bounds_and_runs(seed: int) -> None:
    """The optimum is the best of all, bounds are none below it, and runs none above."""
    instance = hs.generate("tollbooth", jobs=4, horizon=5, booths=1, seed=seed)
    best = best_of_all(instance)
    assert hs.solve(instance, "milp", time_limit=60.0).objective == pytest.approx(best)
    bound = hs.solve(instance, "bound", time_limit=5.0).bound
    assert bound is not None
    assert bound >= best - 1e-9
    for name in hs.algorithms("tollbooth"):
        run = hs.simulate(instance, name)
        assert run.violations == []
        assert (run.objective or 0.0) <= best + 1e-9
        check_algorithm(instance, name)

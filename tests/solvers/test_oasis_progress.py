"""What oasis' integer program says on its way."""

import hindsched as hs
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.families.oasis import methods


def test_only_schedules_are_told_as_objectives(monkeypatch):
    """The program of the ends has points that no real server keeps; none of them is a schedule."""
    instance = hs.generate("oasis", seed=3, jobs=5)
    points, told = [], []
    solve = methods.solve_program

    def solve_and_tell(*arguments, on_progress, **options):
        found = solve(*arguments, **options)
        points.append(found.objective)
        on_progress(found.bound, found.objective, 0.0, "the program's point")
        return found

    monkeypatch.setattr(methods, "solve_program", solve_and_tell)
    formulation, options = instance.formulations[0], SolveOptions(work_limit=20)
    best = methods.milp(instance, formulation, options, lambda *news: told.append(news[1]))
    assert max(points) > best.objective * 1.01
    assert max(told) <= best.objective

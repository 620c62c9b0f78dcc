"""What oasis' integer program says on its way."""

import hindsched as hs
from hindsched.solvers.methods.oasis.methods import milp
from hindsched.solvers.options import SolveOptions


def test_only_schedules_are_told_as_objectives():
    """The program of the ends has points that no real server keeps; none of them is a schedule."""
    instance = hs.generate("oasis", seed=3, jobs=5)
    told = []
    options = SolveOptions(work_limit=20)
    found = milp(instance, instance.formulations[0], options, lambda *news: told.append(news[1]))
    assert told
    assert max(told) <= found.objective

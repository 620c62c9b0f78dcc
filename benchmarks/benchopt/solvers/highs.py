"""HiGHS, which comes with the package, on the family's offline program."""

import highspy  # noqa: F401  (benchopt leaves out what cannot be imported)
from benchmark_utils.program import solve_program
from benchopt import BaseSolver


class Solver(BaseSolver):
    """The declarative program as it is: no start, no prices; the bound is the solver's word."""

    name = "HiGHS"
    requirements = ["pip::highspy"]
    parameters = {"seconds": [10.0]}
    test_config = {"seconds": 1.0}

    def set_objective(self, instance):
        self.problem = instance

    def run(self, _):
        self.answer = solve_program(self.problem, "highs", self.seconds)

    def get_result(self):
        return {"answer": self.answer}

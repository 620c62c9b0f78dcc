"""hindsched's own methods."""

from benchmark_utils.judge import Answer
from benchopt import BaseSolver

import hindsched as hs
from hindsched.solvers.door.api import methods


class Solver(BaseSolver):
    """``hs.solve``: search, prices, trees of prices, and programs that begin from them."""

    name = "hindsched"
    parameters = {"method": ["auto", "milp", "bound", "tree"], "seconds": [10.0]}
    test_config = {"method": "auto", "seconds": 1.0}

    def set_objective(self, instance):
        self.problem = instance

    def skip(self, instance):
        if self.method in methods(instance.family):
            return False, None
        return True, f"{instance.family} has no method {self.method}"

    def warm_up(self):
        hs.solve(self.problem, self.method, time_limit=1.0)  # compiles the kernels

    def run(self, _):
        self.result = hs.solve(self.problem, self.method, time_limit=self.seconds)

    def get_result(self):
        found = self.result
        return {"answer": Answer(found.solution, found.certificate, found.bound)}

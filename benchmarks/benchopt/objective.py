"""Close the gap: the best solution of an offline scheduling problem, and the best bound."""

from benchmark_utils.judge import Answer, judge
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Distance of what a solver found from what is on file, checked by the exact kernel."""

    name = "Gap to the best known"
    min_benchopt_version = "1.6"
    sampling_strategy = "run_once"
    test_dataset_name = "library-small"

    def set_data(self, instance, best_objective, best_bound):
        self.instance = instance
        self.best_objective, self.best_bound = best_objective, best_bound

    def get_objective(self):
        return {"instance": self.instance}

    def evaluate_result(self, answer):
        return judge(self.instance, answer, self.best_objective, self.best_bound)

    def get_one_result(self):
        return {"answer": Answer()}

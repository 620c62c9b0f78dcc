"""OR-Tools' CP-SAT on rigid jobs in one pool: intervals under a cumulative constraint."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import benchmark_utils
from benchmark_utils.judge import Answer
from benchopt import BaseSolver

import hindsched as hs

if find_spec("ortools") is None:
    raise ImportError("No module named 'ortools'")
PROGRAM = Path(benchmark_utils.__file__).parent / "cpsat.py"


class Solver(BaseSolver):
    """Each run is a process of its own, see `benchmark_utils.cpsat`; its start counts."""

    name = "CP-SAT"
    requirements = ["pip::ortools"]
    parameters = {"seconds": [10.0]}
    test_config = {"seconds": 1.0, "dataset": {"instance": "gang/library-small/poisson-s10"}}

    def set_objective(self, instance):
        self.problem = instance

    def skip(self, instance):
        if instance.family == "gang" and instance.servers is None:
            return False, None
        return True, "stated for gang in one pool"

    def run(self, _):
        problem, jobs = self.problem, self.problem.jobs
        asked = {
            "gpus": problem.total_gpus,
            "seconds": self.seconds,
            "submits": problem.submits.tolist(),
            "durations": problem.durations.tolist(),
            "widths": [job.gpus for job in jobs],
            "weights": [float(job.weight * problem.slot_seconds) for job in jobs],
        }
        done = subprocess.run(
            [sys.executable, str(PROGRAM)],
            input=json.dumps(asked), capture_output=True, text=True, check=True,
        )  # fmt: skip
        found = json.loads(done.stdout)
        solution = None
        if found["begins"] is not None:
            ends = zip(jobs, found["begins"], asked["durations"], strict=True)
            rows = {
                job.name: [{"from": begin + 1, "to": begin + length, "gpus": job.gpus}]
                for job, begin, length in ends
            }
            solution = hs.build_solution(problem, rows)
        self.answer = Answer(solution, claimed_bound=found["bound"])

    def get_result(self):
        return {"answer": self.answer}

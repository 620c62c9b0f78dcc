"""CP-SAT in a process of its own: ``python cpsat.py``, JSON from standard input to standard output.

OR-Tools and highspy each bring a HiGHS library of the same name and cannot be loaded together.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ortools.sat.python import cp_model


def schedule(problem: dict[str, Any]) -> dict[str, Any]:
    """Minimise the weighted completion time of intervals that share the GPUs.

    Parameters
    ----------
    problem : dict
        ``gpus``, ``seconds`` and lists over the jobs: ``submits, durations, widths, weights``.

    Returns
    -------
    dict
        ``begins``, one a job, or None; ``bound`` on the weighted sum of completion - submission.
    """
    submits, durations = problem["submits"], problem["durations"]
    last = max(submits, default=0) + sum(durations)
    model = cp_model.CpModel()
    begins, spans, costs = [], [], []
    for submit, length, weight in zip(submits, durations, problem["weights"], strict=True):
        begin = model.new_int_var(submit, last - length, "begin")
        begins.append(begin)
        spans.append(model.new_fixed_size_interval_var(begin, length, "span"))
        costs.append(weight * (begin + (length - submit)))
    model.add_cumulative(spans, problem["widths"], problem["gpus"])
    model.minimize(sum(costs))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = problem["seconds"]
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return {
        "begins": [solver.value(begin) for begin in begins] if found else None,
        "bound": solver.best_objective_bound,
    }


if __name__ == "__main__":
    json.dump(schedule(json.load(sys.stdin)), sys.stdout)

"""Rigid jobs by CP-SAT, in a process of its own: its library and HiGHS's do not share one.

Standard input: JSON with ``submits, durations, gpus, total, end, seconds``; output: sum of the
completion times or null, and its lower bound.
"""

import json
import sys

from ortools.sat.python import cp_model

given = json.load(sys.stdin)
model = cp_model.CpModel()
starts, pieces = [], []
for submit, length in zip(given["submits"], given["durations"], strict=True):
    start = model.new_int_var(submit, given["end"], "")
    starts.append(start)
    pieces.append(model.new_fixed_size_interval_var(start, length, ""))
model.add_cumulative(pieces, given["gpus"], given["total"])
model.minimize(sum(starts))
solver = cp_model.CpSolver()
solver.parameters.max_time_in_seconds = given["seconds"]
solver.parameters.num_workers = 1
status = solver.solve(model)
rest = sum(given["durations"])
found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
objective = solver.objective_value + rest if found else None
print(json.dumps([objective, solver.best_objective_bound + rest]))

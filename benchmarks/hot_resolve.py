"""Solving one program again with other prices: hot by arrays, hot by Params, and built anew.

Run it with ``python benchmarks/hot_resolve.py``. The rival of the same run is Pyomo's own interface
to HiGHS on a model that is kept. Times are CPU time a solve, as ratios to the hot solve by Params;
by Params and by arrays the same prices and right sides are given.
"""

from __future__ import annotations

import time

import numpy as np
import pyomo.environ as pyo

from hindsched.solvers.door.persistent import PersistentProgram
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.standard_form import compile_program


def build(jobs, rows):
    rng = np.random.default_rng(0)
    use = rng.integers(0, 7, (rows, jobs)).tolist()
    model = pyo.ConcreteModel()
    model.price = pyo.Param(range(rows), mutable=True, initialize=0.0)
    model.room = pyo.Param(range(rows), mutable=True, initialize=5.0)
    model.x = pyo.Var(range(jobs), bounds=(0, 1))
    model.use = pyo.Expression(
        range(rows),
        rule=lambda m, r: pyo.quicksum(u * m.x[j] for j, u in enumerate(use[r]) if u),
    )
    model.row = pyo.Constraint(range(rows), rule=lambda m, r: m.use[r] <= m.room[r])
    value = pyo.quicksum((2 + j % 5) * model.x[j] for j in range(jobs))
    paid = pyo.quicksum(model.price[r] * model.use[r] for r in range(rows))
    model.objective = pyo.Objective(expr=value - paid, sense=pyo.maximize)
    return model


def measure(jobs, rows, rounds):
    rng = np.random.default_rng(1)
    prices = rng.uniform(0, 0.1, (rounds, rows)).tolist()
    rooms = rng.integers(5, 30, (rounds, rows)).tolist()
    seconds, objectives = {}, {}

    def run(name, solve, model=None):
        started = time.process_time()
        found = []
        for k in range(rounds):
            target = build(jobs, rows) if model is None else model
            for r in range(rows):
                target.price[r].set_value(prices[k][r])
                target.room[r].set_value(rooms[k][r])
            found.append(solve(target))
        seconds[name] = (time.process_time() - started) / rounds
        objectives[name] = found

    def by_pyomo(model):
        pyo.SolverFactory("highs").solve(model)
        return pyo.value(model.objective)

    def hot_solve(model):
        hot.update()
        return hot.solve().objective

    kept = build(jobs, rows)
    hot = PersistentProgram(kept)
    run("hot, Params", hot_solve, kept)
    run("compiled anew", lambda model: solve_program(model).objective, kept)
    run("built anew", lambda model: solve_program(model).objective)
    run("Pyomo's highs", by_pyomo, kept)
    for found in objectives.values():
        np.testing.assert_allclose(found, objectives["hot, Params"], rtol=1e-6)

    arrays = []
    for k in range(rounds):  # what Params stand for, as arrays
        for r in range(rows):
            kept.price[r].set_value(prices[k][r])
            kept.room[r].set_value(rooms[k][r])
        fresh = compile_program(kept)
        arrays.append((fresh.cost, fresh.offset, fresh.row_lower, fresh.row_upper))
    started = time.process_time()
    found = []
    for cost, offset, lower, upper in arrays:
        hot.set_cost(cost, offset)
        hot.set_sides(lower, upper)
        found.append(hot.solve().objective)
    seconds["hot, arrays"] = (time.process_time() - started) / rounds
    np.testing.assert_allclose(found, objectives["hot, Params"], rtol=1e-6)
    return seconds


if __name__ == "__main__":
    for jobs, rows, rounds in ((50, 20, 30), (400, 100, 8)):
        seconds = measure(jobs, rows, rounds)
        base = seconds["hot, Params"]
        print(f"{jobs} columns x {rows} rows, hot by Params {1e3 * base:.2f} ms a solve")
        for name, value in sorted(seconds.items(), key=lambda pair: pair[1]):
            print(f"  {name:15s} x {value / base:6.2f}   {1e3 * value:8.2f} ms")

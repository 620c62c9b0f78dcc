"""A knapsack that keeps a solver busy; the file also begins scripts of its own process."""

import random

import pyomo.environ as pyo


def knapsack(items=80, rows=50, seed=3):
    rng = random.Random(seed)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(items), domain=pyo.Binary)
    model.row = pyo.ConstraintList()
    for _ in range(rows):
        weights = [rng.randint(5, 99) for _ in range(items)]
        used = pyo.quicksum(w * model.x[i] for i, w in enumerate(weights))
        model.row.add(used <= sum(weights) // 3)
    value = pyo.quicksum(rng.randint(40, 60) * model.x[i] for i in range(items))
    model.objective = pyo.Objective(expr=value, sense=pyo.maximize)
    return model

# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The programs themselves: read them, change them, solve them with anything
#
# `hs.model(instance)` gives the offline program that everything else rests on. It prints its
# equations with the paper's numbers, gives its Pyomo model away, and is solved through the same
# door as everything: a point is believed only after its own check.

# %%
import numpy as np
import pyomo.environ as pyo

import hindsched as hs
from hindsched.solvers.oracles.base import build_oracle

instance = hs.generate("oasis", jobs=6, horizon=8, seed=3)
model = hs.model(instance)
print(model)

# %% [markdown]
# ## Printed against strong
#
# `form="printed"` is the program as its paper prints it. A form never changes the optimum; it changes
# the linear relaxation, and that decides how long a solver takes. A formulation is another problem.

# %%
optimum = hs.solve(instance, "milp").objective
for form in ("printed", "cumulative", "strong"):
    relaxed = hs.model(instance, form=form, relax=True).solve()
    print(f"{form:11s} LP {relaxed.objective:8.3f}, {relaxed.objective / optimum - 1:7.2%} above")
    assert relaxed.objective >= optimum - 1e-6

# %%
other = hs.generate("edgecloud", jobs=3, seed=1)
printed = hs.model(other, formulation="literal")  # as printed, edgecloud lets chunks move
print(printed.solve(), hs.model(other).solve(), sep="\n")

# %% [markdown]
# ## A constraint of one's own
#
# The Pyomo model is an ordinary one. A changed model is solved as it is, and the result says so.

# %%
model = hs.model(instance)
before = model.solve()
first = next(iter(before.solution.workers))
position = instance.job_index(first)
model.pyomo.refuse = pyo.Constraint(expr=model.pyomo.job[position].admitted == 0)
after = model.solve()
print(after.changed)
print(f"without {first}: {before.objective:.3f} -> {after.objective:.3f}")
assert after.changed is not None
assert after.objective <= before.objective + 1e-6

# %% [markdown]
# ## Duals against the oracle
#
# The duals of (4) and (5) are prices. With the jobs' best responses at those prices they bound the
# optimum: often better than the relaxation that they come from, and without believing its solver.

# %%
lp = hs.model(instance, form="strong", relax=True).solve()
print(lp.duals["eq_4"].sort_values(ascending=False).head(3), end="\n\n")
print(lp.values["y"].head(3), end="\n\n")
certificate = lp.certificate()
print(f"optimum {optimum:.3f}, certified {certificate.bound:.3f}, relaxation {lp.objective:.3f}")
assert optimum - 1e-6 <= certificate.bound <= lp.objective + 1e-6

# %% [markdown]
# The paper's own dual (19), (20) is a program, too. It has a row for every schedule: best responses
# add those that are broken, until none is.

# %%
dual = hs.model(instance).dual().solve()
print(f"dual optimum {dual.objective:.3f} after {dual.rows} rows, broken rows: {dual.violations}")
assert dual.violations == []
assert dual.objective >= optimum - 1e-6

# %% [markdown]
# ## The subproblem against the dynamic program
#
# One job's block with prices, solved as an integer program, and by the dynamic program that the
# online algorithm runs: the same payoff.

# %%
oracle = build_oracle(instance, rows="servers")
prices = np.random.default_rng(0).uniform(0, 0.01, oracle.rows.size)
for job in (0, 1, 2):
    sub = hs.model(instance).subproblem(job)
    sub.set(oracle.rows.unpack(prices))
    found, response = sub.solve(), oracle.best_response(job, prices)
    print(f"{instance.jobs[job].name}: program {found.objective:.6f}, oracle {response.value:.6f}")
    assert abs(found.objective - response.value) < 1e-5

# %% [markdown]
# ## A solver of one's choice
#
# Any solver that Pyomo knows takes the model; any other one reads the file that `write` makes.

# %%
model = hs.model(instance)
pyo.SolverFactory("appsi_highs").solve(model.pyomo)
print(f"by Pyomo's own interface: {pyo.value(model.pyomo.eq_1):.3f}")
solution = model.program.extract()
print(solution, solution.violations() if solution is not None else "not placed on servers")

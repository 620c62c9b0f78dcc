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
# # A tour: how good was an online scheduler, in hindsight?
#
# An online scheduler decides without knowing which jobs come later. Afterwards one can ask what
# would have been possible: that is an offline optimisation problem, and the quotient of the two
# is the empirical competitive ratio. This tour takes one instance through every part.

# %%
import os

import hindsched as hs

QUICK = os.environ.get("HINDSCHED_QUICK") == "1"

# %% [markdown]
# ## What is given
#
# An instance is frozen data, checked when it is read. This one comes with the package: 10 jobs,
# 10 slots, 25 servers for workers and 25 for parameter servers.

# %%
instance = hs.named_instance("oasis-t10-i10-h25-s0")
print(instance.name, "horizon", instance.horizon, "jobs", len(instance.jobs))
instance.jobs[0]

# %% [markdown]
# ## The offline optimum
#
# `solve` returns a checked solution, a proven bound and, where the method has one, a certificate:
# prices from which anyone can recompute the bound without a solver.

# %%
result = hs.solve(instance, options={"time_limit": 60})
print(result)

# %%
MOST = 70  # workers of the darkest colour, in both pictures of this tour
hs.plot.gantt(result, most=MOST)
# %%
hs.plot.utilisation(result.solution, "gpu")
# %% [markdown]
# ## Online runs
#
# The simulator owns the truth. An algorithm is told of the cluster, then of the jobs as they
# arrive; what it promises cannot be taken back.

# %%
for name in ("oasis", "fifo"):
    run = hs.simulate(instance, name)
    print(f"{name:6s} utility {run.objective:8.3f}, violations: {run.violations}")

# %%
hs.plot.gantt(hs.simulate(instance, "oasis"), most=MOST)
# %% [markdown]
# ## The ratio, as an interval
#
# OPT/ALG when maximising, ALG/OPT when minimising: 1 is perfect. FIFO draws the number of workers of
# a job, so it runs with five seeds here and the mean counts: another number than the one run above.
# Beside the paper's own algorithm stands what its theorem promises on this instance.

# %%
measured = hs.ratio(
    instance, ["oasis", "oasis-chunk", "fifo", "drf"], time_limit=60, progress=False
)
for row in measured.algorithms:
    print(f"{row.algorithm:12s} {row.objective:8.3f}  ratio in {row.ratio.interval}")
oasis = measured.algorithm("oasis")
print("theorem:", oasis.theorem["kind"], oasis.theorem["value"])

# %%
hs.plot.ratios(measured)
# %% [markdown]
# ## A bound that anyone can check
#
# The bounding method gives prices. `verify` recomputes the objective, every constraint and the
# bound from the definition and the prices; it loads no solver. Prices alone prove a little less than
# the solver above, which also branched: their bound lies above the optimum. The picture shows what
# the capacity of each slot is worth at these prices.

# %%
bounded = hs.solve(instance, "bound", options={"time_limit": 20})
checked = hs.verify(instance, result.solution, bounded.certificate)
print("feasible:", checked.is_feasible, " objective:", checked.objective, " bound:", checked.bound)

# %%
hs.plot.prices(bounded.certificate)
# %% [markdown]
# ## Many instances
#
# `compare` runs every algorithm on every instance and gives a tidy frame.

# %%
instances = hs.suite("oasis", "small")[: 2 if QUICK else 8]
comparison = hs.compare(instances, ["oasis", "fifo", "drf"], time_limit=5, seeds=2, progress=False)
frame = comparison.to_frame()
frame[["instance", "algorithm", "seed", "objective", "ratio_lower", "ratio_upper"]]

# %%
hs.plot.ratios(comparison)
# %% [markdown]
# ## Your own algorithm
#
# Derive from `OnlineAlgorithm`: `start` is told of the cluster, `step` of the jobs that arrive in a
# slot. This one shows the paper's algorithm every second job only.

# %%
from hindsched.online.registry import build_algorithm


class EveryOther(hs.OnlineAlgorithm):
    """Rejects every second job and leaves the others to the paper's algorithm."""

    def start(self, environment):
        self.inner = build_algorithm("oasis", "oasis")
        self.inner.start(environment)
        self.count = 0

    def step(self, slot, arrivals):
        kept = []
        for job in arrivals:
            self.count += 1
            if self.count % 2:
                kept.append(job)
        return self.inner.step(slot, tuple(kept))


print("utility", hs.simulate(instance, EveryOther()).objective)

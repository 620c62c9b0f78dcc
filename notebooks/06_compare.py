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
# # One workload, three problems
#
# The families ask different questions of the same jobs: oasis what elastic jobs could have earned,
# batchsched how soon gangs of one size could have finished, astraea what tenants with quotas would
# have paid. Here one workload, as a cluster would log it, is mapped into all three. Objectives
# cannot be compared across them; ratios, who is served, and how long it takes can.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import hindsched as hs
from hindsched.instances.traces.table import build_table

QUICK = os.environ.get("HINDSCHED_QUICK") == "1"
JOBS = 10 if QUICK else 20
SECONDS = 5 if QUICK else 60

# %% [markdown]
# ## The workload
#
# Two teams submit over a morning: many short single-GPU jobs, some long ones on four GPUs.

# %%
draws = np.random.default_rng(7)
workload = pd.DataFrame(
    {
        "job": [f"{'nlp' if n % 3 else 'vision'}-{n}" for n in range(JOBS)],
        "part": ["nlp" if n % 3 else "vision" for n in range(JOBS)],
        "submit_seconds": np.sort(draws.uniform(0, 4 * 3600, JOBS)).round(),
        "duration_seconds": draws.choice([1800.0, 3600.0, 14400.0], JOBS, p=[0.5, 0.3, 0.2]),
        "gpus": draws.choice([1, 2, 4], JOBS, p=[0.5, 0.3, 0.2]),
    }
)
workload.head()

# %%
table = build_table("by hand", Path("workload.csv"), workload)
asked = (workload["duration_seconds"] * workload["gpus"]).sum() / 3600
print(f"{len(table)} jobs ask for {asked:.0f} GPU hours")

# %% [markdown]
# ## Three instances of it
#
# The mapping keeps names and times, and says what it has to make up: a log knows no utility, no
# gradient and no mini-batch time.

# %%
size = {"jobs": JOBS, "seed": 1, "slot_seconds": 1800}
instances = {
    "oasis": hs.from_trace("oasis", table, servers=1, **size),
    "batchsched": hs.from_trace("batchsched", table, servers=3, gpus_per_server=2, **size),
    "astraea": hs.from_trace("astraea", table, servers=2, **size),
}
for family, instance in instances.items():
    assert [job.name for job in instance.jobs] == list(workload["job"])
    print(f"{family}: made up are {'; '.join(instance.provenance['made_up'])}")

# %% [markdown]
# ## What hindsight could have had
#
# Each optimum with its bound, and the paper's own online algorithm beside two
# rivals that are written once for all three.

# %%
SHARED = ["shortest-remaining", "least-attained"]
found = {
    family: hs.ratio(instance, [family, *SHARED], time_limit=SECONDS, seeds=1, progress=False)
    for family, instance in instances.items()
}
rows = [row for item in found.values() for row in item.to_frame().to_dict("records")]
ratios = pd.DataFrame(rows)[["family", "algorithm", "ratio_lower", "ratio_upper"]]
assert (ratios["ratio_lower"].dropna() > 0).all()
ratios

# %% [markdown]
# ## When the same jobs run
#
# The paper's algorithm of each family on the same jobs, in the order of the log.

# %%
runs = {family: hs.simulate(instance, family) for family, instance in instances.items()}
assert all(run.violations == [] for run in runs.values())
figure, axes = plt.subplots(1, 3, figsize=(14, 1.2 + 0.25 * JOBS), layout="constrained")
for ax, (family, run) in zip(axes, runs.items(), strict=True):
    hs.plot.gantt(run, ax=ax, most=4)
    ax.set_title(f"{family}: {run.objective:.6g}", loc="left")
plt.show()

# %% [markdown]
# ## How long each job waits for its result
#
# Completion after submission, in slots of half an hour; a gap is a job that is not served. oasis and
# astraea may refuse jobs, batchsched must finish all of them.

# %%
waits = pd.DataFrame(
    {
        family: {
            row["job"]: None
            if row["completion"] is None
            else row["completion"] - instances[family].jobs[place].arrival
            for place, row in enumerate(run.solution.job_rows())
        }
        for family, run in runs.items()
    }
)
assert waits["batchsched"].notna().all()
waits

# %%
served = waits.notna().sum()
print("served:", served.to_dict(), "of", JOBS)
ax = waits.plot.bar(figsize=(10, 3), ylabel="slots from arrival to completion")
plt.show()

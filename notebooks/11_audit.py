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
# # Audits: how good was somebody else's schedule?
#
# A scheduler's log holds what it did. `hs.audit` says whether that is possible, how far it is from
# the best possible (as an interval that anyone can check), what other policies would have done with
# the same jobs, and where time was lost. `docs/reference/logs.md` lists the formats, `docs/guides/audits.md` judges
# published schedules.

# %%
import os
from importlib.resources import files
from pathlib import Path

import pandas as pd

import hindsched as hs
from hindsched.analysis.audit.gang.page import plot_policies, plot_use

EXAMPLES = Path(str(files("hindsched.instances.traces") / "examples"))
SECONDS = 2 if os.environ.get("HINDSCHED_QUICK") == "1" else 30

# %% [markdown]
# ## A Slurm log
#
# Steps, arrays, a requeue, a suspended job, a job that still runs, a night without an hour: the
# reader says what it made of each row. Slurm's times have no offset, so the zone must be said.

# %%
log = hs.read_log(EXAMPLES / "sacct.txt", "sacct", time_zone="Europe/Berlin", gpus=12)
pd.DataFrame(log.notes.summary())

# %%
slurm = hs.audit(log, time_limit=SECONDS)
print(slurm.sentence())
slurm.to_frame()[["scheduler", "value", "ratio_lower", "ratio_upper", "mean_wait", "pauses"]]

# %%
plot_policies(slurm)

# %%
print(slurm.gap.sentence() if slurm.gap else "no gap")
slurm.jobs()

# %% [markdown]
# ## Your own frame
#
# Sixty jobs in three waves on 8 GPUs, first come, first served, written as any table would be.

# %%
jobs = pd.DataFrame({"job": [f"job-{k}" for k in range(60)]})
jobs["submit"] = [600 * (k // 20) + 7 * k for k in range(60)]
jobs["duration"] = [60 + 37 * k % 900 for k in range(60)]
jobs["gpus"] = [(1, 1, 2, 4, 8)[k % 5] for k in range(60)]
instance = hs.gang(jobs, gpus=8)

# %%
from hindsched.solvers.families.gang.replay import replay

fifo = replay(instance, "fifo")
logged = jobs.assign(start=fifo.starts, end=fifo.completions)
mine = hs.audit(logged, gpus=8, time_limit=SECONDS)
print(mine.sentence())
mine.to_frame()[
    ["scheduler", "value", "ratio_lower", "ratio_upper", "p95_jct", "utilisation"]
].round(3)

# %%
plot_use(mine)

# %%
hs.plot.gantt(mine.schedule.solution)
# %%
assert mine.is_possible
ratio = mine.verdict.ratio
assert 1 <= ratio.lower <= ratio.upper
mine.gap.jobs.head(10) if mine.gap else None

# %% [markdown]
# ## A schedule that cannot have been
#
# Two rows are shifted: a job starts before it is submitted, and more GPUs are held than there are.

# %%
broken = logged.copy()
broken.loc[30, ["start", "end"]] = [10, 10 + int(broken.loc[30, "duration"])]
impossible = hs.audit(broken, gpus=8, policies=["fifo"], time_limit=SECONDS)
print(impossible.sentence())
assert not impossible.is_possible
impossible.breaches.to_frame()

# %% [markdown]
# ## The five schedules of ElasticFlow's Figure 10
#
# Read from the published files where `HINDSCHED_TRACES` names them. Three of the five treat jobs as
# rigid, and their 128 GPUs are never short: every policy is optimal there. The other two change
# widths, and are judged by the GPU-seconds that each of them gave its jobs.

# %%
folder = Path(os.environ.get("HINDSCHED_TRACES", "none")) / "schedules/elasticflow_fig10"
rows = []
for name in ("dlas-gpu", "edf", "ef-accessctrl", "gandiva", "themis") if folder.is_dir() else ():
    found = hs.audit(
        folder / f"{name}.job.csv",
        "elasticflow",
        time_limit=SECONDS,
    )
    rows.append(
        {
            "scheduler": name,
            "mean JCT": found.verdict.value,
            "formulation": found.formulation,
            "ratio": str(found.verdict.ratio),
            "most GPUs": found.breaches.peak,
        }
    )
    assert found.is_possible
pd.DataFrame(rows) if rows else print("HINDSCHED_TRACES names no folder of published schedules")

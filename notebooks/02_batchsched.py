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
# # batchsched (MobiHoc 2020 and journal version): the figures of its evaluation
#
# Each figure is an experiment of `hindsched figure batchsched NUMBER`: a tidy table, and a drawing of
# nothing but that table. Below stand the picture, with the
# paper's own values in grey where its text states them, and a verdict on each of its claims. In quick mode
# (`HINDSCHED_QUICK=1`) the experiments are small versions of the same.

# %%
import os

from hindsched.analysis.figures.base import FULL_SEEDS, QUICK_SEEDS, FigureScale, figures
from hindsched.analysis.figures.claims import verdicts_on

QUICK = os.environ.get("HINDSCHED_QUICK") == "1"
SCALE = FigureScale(QUICK, QUICK_SEEDS if QUICK else FULL_SEEDS)
FIGURES = figures("batchsched")


def experiment(number, value="objective", by="algorithm", within=()):
    """Run a figure's experiment, draw it, print a verdict on each claim and return the means."""
    figure = FIGURES[number]
    print(f"Figure {number}: {figure.title}")
    table = figure.run(SCALE, lambda text: None)
    figure.picture(table)
    for row in verdicts_on("batchsched", number, table):
        print(f"{row['claim']}: {row['measured']} ({row['rule']}): {row['verdict']}")
    axes = table.columns[: 2 if table.columns[0] in ("capacity_fraction", by) else 1]
    index = [name for name in (*within, *axes) if name != by]
    return table.pivot_table(index=index, columns=by, values=value, sort=False)


# %% [markdown]
# ## Figures 2 and 5: against the number of jobs

# %%
two = experiment("2")
two

# %%
five = experiment("5")
five

# %% [markdown]
# The printed batches wait: each sets aside four sub-rounds. The work-conserving variant is far
# better, moving a planned batch to its earliest windows better again, and plain list scheduling
# best of all.

# %%
for table in (two, five):
    assert (table["batchsched-adaptive"] < table["batchsched"]).all()
    assert (table["batchsched-adaptive, left shift"] <= table["batchsched-adaptive"]).all()
    assert (table["wspt"] < table["batchsched-adaptive, left shift"]).all()

# %% [markdown]
# ## Figures 3 and 6: against the number of servers at the same total capacity

# %%
experiment("3")

# %%
experiment("6")

# %% [markdown]
# ## Figures 4 and 11: against F

# %%
experiment("4")

# %%
experiment("11", "weight")

# %% [markdown]
# ## Figure 7: running time in seconds

# %%
experiment("7", "seconds", within=["architecture"])

# %% [markdown]
# ## Figures 8 and 12: weight accepted by A_maxweight
#
# In index order, as printed, A_maxweight accepts less than GreedyRTL; asked by density it comes
# closer. The paper claims the opposite.

# %%
eight = experiment("8", "weight")
eight

# %%
experiment("12", "weight", within=["jobs"])

# %% [markdown]
# ## Figure 9: one worker type forced

# %%
nine = experiment("9", by="scheme")
free = nine.xs("free choice", level="fixed_worker_type")
assert (free <= nine.groupby("capacity_fraction", sort=False).min() * 1.05).all(axis=None)
nine

# %% [markdown]
# ## Figure 10: number of workers forced

# %%
ten = experiment("10")
for _, falls in ten["batchsched-adaptive"].groupby("capacity_fraction"):
    assert falls.is_monotonic_decreasing
ten

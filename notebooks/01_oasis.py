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
# # OASiS (INFOCOM 2018): the figures of its evaluation
#
# Each figure is an experiment of `hindsched figure oasis NUMBER`: a tidy table, and a drawing of
# nothing but that table. Below stand the picture, with the
# paper's own values in grey where its text states them, and a verdict on each of its claims. In
# quick mode (`HINDSCHED_QUICK=1`) the experiments are small versions of the same.

# %%
import os

from hindsched.analysis.figures.base import FULL_SEEDS, QUICK_SEEDS, FigureScale, figures
from hindsched.analysis.figures.claims import verdicts_on

QUICK = os.environ.get("HINDSCHED_QUICK") == "1"
SCALE = FigureScale(QUICK, QUICK_SEEDS if QUICK else FULL_SEEDS)
FIGURES = figures("oasis")


def experiment(number):
    """Run a figure's experiment, draw it, print a verdict on each claim and return the table."""
    figure = FIGURES[number]
    print(f"Figure {number}: {figure.title}")
    table = figure.run(SCALE, lambda text: None)
    figure.picture(table)
    for row in verdicts_on("oasis", number, table):
        print(f"{row['claim']}: {row['measured']} ({row['rule']}): {row['verdict']}")
    return table


# %% [markdown]
# ## Figure 3: total utility against the number of jobs

# %%
three = experiment("3")
three.groupby(["jobs", "scheme"], sort=False)["utility"].mean().unstack()

# %% [markdown]
# The literal lower price L is e^-500 and less at T = 300: prices are 0 until a server is full, and
# OASiS decides greedily. With L floored at a tenth of each job's priority it prices as intended.

# %% [markdown]
# ## Figure 4: timeliness

# %%
four = experiment("4")
four.assign(finished=four["late"].notna()).groupby(["class", "scheme"], sort=False).agg(
    mean=("late", "mean"), variance=("late", "var"), finished=("finished", "mean")
)

# %% [markdown]
# Unfinished jobs have no completion: they are counted apart, since leaving them out would flatter
# a scheme that finishes only the easy ones.

# %% [markdown]
# ## Figure 5: the empirical competitive ratio
#
# The offline optimum is proven or enclosed; the ratio is an interval.

# %%
five = experiment("5")
assert (five["ratio_lower"].dropna() >= 1 - 1e-9).all()
five.groupby(["priority", "max_duration", "lower_floor", "servers"])[
    ["log_upper_over_lower", "ratio_lower", "ratio_upper"]
].mean()

# %%
light = five[(five["max_duration"] == 2) & (five["lower_floor"] == 0)]["ratio_upper"]
heavy = five[(five["max_duration"] > 2) & (five["lower_floor"] == 0)]["ratio_upper"]
print(f"light contention (dmax 2): median {light.median():.2f}, largest {light.max():.2f}")
print(f"heavier contention:        median {heavy.median():.2f}, largest {heavy.max():.2f}")

# %% [markdown]
# ## Figure 6: inaccurate estimates of U / L

# %%
six = experiment("6")
six.groupby(["lower_floor", "jobs", "estimate_percent"])["relative"].mean().unstack()

# %% [markdown]
# ## Figures 8 and 9: the testbed, simulated

# %%
eight = experiment("8")
eight.groupby("scheme", sort=False)["utility"].agg(["mean", "min", "max"])

# %%
nine = experiment("9")
nine.assign(finished=nine["late"].notna()).groupby(["class", "scheme"], sort=False).agg(
    mean=("late", "mean"), variance=("late", "var"), finished=("finished", "mean")
)

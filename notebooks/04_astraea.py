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
# # Astraea (IEEE TC 2022): the figures of its evaluation
#
# Each figure is an experiment of `hindsched figure astraea NUMBER`: a tidy table, and a drawing of
# nothing but that table. Below stand the picture, with the
# paper's own values in grey where its text states them, and a verdict on each of its claims. In
# quick mode (`HINDSCHED_QUICK=1`) the experiments are small versions of the same.

# %%
import os

from hindsched.analysis.figures.base import FULL_SEEDS, QUICK_SEEDS, FigureScale, figures
from hindsched.analysis.figures.claims import verdicts_on

QUICK = os.environ.get("HINDSCHED_QUICK") == "1"
SCALE = FigureScale(QUICK, QUICK_SEEDS if QUICK else FULL_SEEDS)
FIGURES = figures("astraea")


def experiment(number):
    """Run a figure's experiment, draw it, print a verdict on each claim and return the table."""
    figure = FIGURES[number]
    print(f"Figure {number}: {figure.title}")
    table = figure.run(SCALE, lambda text: None)
    figure.picture(table)
    for row in verdicts_on("astraea", number, table):
        print(f"{row['claim']}: {row['measured']} ({row['rule']}): {row['verdict']}")
    return table


# %% [markdown]
# ## Figure 4: total revenue against jobs and servers, linear and power utilities

# %%
for number, x in (("4a", "jobs"), ("4b", "servers"), ("4c", "jobs"), ("4d", "servers")):
    table = experiment(number)
    print(table.groupby([x, "scheme"], sort=False)["revenue"].mean().unstack().round(0))

# %% [markdown]
# Without sharing BatchSche does not wait for whole intervals and has no prices; with mini-batches a
# tenth as long as printed, which is what makes revenue positive at all, there is little contention.

# %% [markdown]
# ## Figures 5 and 6: performance ratio (revenue over the offline optimum)
#
# The optimum is proven or enclosed, so the ratio is an interval. Gandiva_fair and HiveD preempt: they
# are outside the optimum's feasible set and may exceed 1.

# %%
five = experiment("5")
assert (five["performance_upper"].dropna() <= 1 + 1e-9).all()
five.groupby(["scheme", "jobs", "servers"])[["performance_lower", "performance_upper"]].mean()

# %%
six = experiment("6")
six.groupby(["scheme", "in_feasible_set"])[["performance_lower", "performance_upper"]].mean()

# %% [markdown]
# ## Figures 7 and 8: revenue fairness

# %%
seven = experiment("7")
seven.groupby(["tenant", "scheme"], sort=False)["fairness"].mean().unstack()

# %%
eight = experiment("8")
eight.groupby("scheme", sort=False)["variance"].agg(["mean", "min", "max"])

# %% [markdown]
# ## Figures 9 and 10: running time

# %%
nine = experiment("9")
nine.groupby(["jobs", "scheme"])["milliseconds"].mean().unstack()

# %%
ten = experiment("10")
ten.groupby(["servers", "scheme"])["milliseconds"].mean().unstack()

# %% [markdown]
# ## Figure 11: inaccurate maximal prices

# %%
eleven = experiment("11")
eleven.groupby(["jobs", "percent"])["relative"].mean().unstack()

# %% [markdown]
# ## Figure 12: admission control

# %%
twelve = experiment("12")
assert (twelve["ideal_revenue"] > twelve["cost"]).all()
twelve.groupby("phase")[["ideal_revenue", "cost"]].mean()

# %% [markdown]
# ## Figure 13: utilisation and makespan

# %%
thirteen = experiment("13")
thirteen.groupby("scheme", sort=False).agg(
    makespan=("makespan", "mean"), highest=("utilisation", "max")
)

# %% [markdown]
# ## Table 2: the number of tenants

# %%
table_2 = experiment("table-2")
table_2.groupby("tenants")[["revenue_per_job", "variance"]].mean()

# %% [markdown]
# ## The claimed properties, probed
#
# Ten jobs on 4 servers (scarce) and on 16 (ample). An income is the revenue of a tenant's jobs, plus
# what it gains, minus what it pays.

# %%
one = experiment("P1")
one.groupby("load")["outcome"].value_counts(normalize=True).unstack()

# %%
two = experiment("P2")
two.groupby("load")["outcome"].value_counts(normalize=True).unstack()

# %% [markdown]
# No lie about demand or value raises a job's payoff at the posted prices while it stays in its round
# and phase; incomes can rise.

# %%
three = experiment("P3")
about = three["lie"].isin(["half the chunks", "twice the value", "half the value"])
assert (three.loc[about & three["same_phase"], "payoff_gain"] <= 1e-9).all()
three.groupby(["load", "lie"])["outcome"].value_counts(normalize=True).unstack()

# %%
four = experiment("P4")
four.groupby("load")[["contributed", "gained"]].corr()

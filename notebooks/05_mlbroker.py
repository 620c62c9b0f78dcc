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
# # mlBroker (IEEE TPDS): the figures of its evaluation, and why the headline does not reproduce
#
# Each figure is an experiment of `hindsched figure mlbroker NUMBER`: a tidy table, and a drawing of
# nothing but that table. Below stand the picture, with the
# paper's own values in grey where its text states them, and a verdict on each of its claims. In
# quick mode (`HINDSCHED_QUICK=1`) the experiments are small versions of the same.
#
# `mlbroker` is the paper's algorithm. `mlbroker-tight` and `mlbroker-prices` are ours. Ratios are to
# a certified lower bound unless the paper's figure divides by its own relaxation.

# %%
import os

from hindsched.analysis.figures.base import FULL_SEEDS, QUICK_SEEDS, FigureScale, figures
from hindsched.analysis.figures.claims import verdicts_on

QUICK = os.environ.get("HINDSCHED_QUICK") == "1"
SCALE = FigureScale(QUICK, QUICK_SEEDS if QUICK else FULL_SEEDS)
FIGURES = figures("mlbroker")


def experiment(number):
    """Run a figure's experiment, draw it, print a verdict on each claim and return the table."""
    figure = FIGURES[number]
    print(f"Figure {number}: {figure.title}")
    table = figure.run(SCALE, lambda text: None)
    figure.picture(table)
    for row in verdicts_on("mlbroker", number, table):
        print(f"{row['claim']}: {row['measured']} ({row['rule']}): {row['verdict']}")
    return table


# %% [markdown]
# ## The ablation
#
# One change at a time, from the paper's algorithm to ours. Three things cost it its advantage: the
# relaxed big-M bill rewards spreading where the true price is concave; the fractional model sees no
# communication; the largest of K + 1 roundings adds workers.

# %%
ablation = experiment("ablation")
steps = ablation.groupby(["algorithm", "setting"], sort=False)["ratio"].mean().unstack()
steps.round(4)

# %%
assert (ablation["ratio"] >= 1 - 1e-6).all(), "no algorithm is below a valid bound"
for setting in steps:
    assert steps.loc["mlbroker-tight", setting] <= steps.loc["mlbroker (the paper)", setting]

# %% [markdown]
# ## Figure 5: the fractional algorithm against P_f
#
# Both sides with the same relaxation. The ratio is close to 1 because launches are a fraction of a
# per cent of the cost, not because of the regulariser; with launches 100 times dearer some loss
# shows. r1 is between 3 and 9.

# %%
five = experiment("5")
assert (five["ratio"] <= five["r1"]).all()
assert five["r1"].between(3, 9).all()
five.groupby(["case", "epsilon"], sort=False)["ratio"].agg(["mean", "max"]).round(4)

# %% [markdown]
# ## Figure 6: the loss of rounding

# %%
six = experiment("6")
six.groupby(["capacity_gb", "data_gb"])["ratio"].mean().unstack().round(3)

# %% [markdown]
# The denominator is the paper's relaxation, which lies below every schedule's cost: most of this
# "rounding loss" is the relaxation's own.

# %% [markdown]
# ## Figure 7: roundings

# %%
seven = experiment("7")
seven.groupby(["relaxation", "rounding"])[["ratio", "extra_workers", "repairs"]].mean().round(4)

# %% [markdown]
# A_round beats Greedy and loses to Independent Rounding (once repaired) and to Round2 alone.
# Largest remainder is best, and deterministic.

# %% [markdown]
# ## Figures 8 and 11-14: costs against the data size

# %%
eight = experiment("8")
eight.groupby(["data_gb", "algorithm"], sort=False)["ratio"].mean().unstack().round(4)

# %%
for number in ("11", "12", "13", "14"):
    experiment(number)

# %%
parts = ["transfer", "resource", "deployment", "communication"]
eight.groupby("algorithm", sort=False)[parts].mean().round(1)

# %%
means = eight.groupby("algorithm")["ratio"].mean()
print(f"mlbroker {means['mlbroker']:.3f}, central {means['central']:.3f}, ", end="")
print(f"oasis-style {means['oasis-style']:.3f}, mlbroker-tight {means['mlbroker-tight']:.4f}")
assert means["mlbroker-tight"] <= min(means["central"], means["oasis-style"]) + 1e-4
assert means["mlbroker"] > means["central"], "the headline would have reproduced"

# %% [markdown]
# ## Figures 9 and 10: ratios against slots and jobs

# %%
nine = experiment("9")
nine.groupby(["slots", "algorithm"], sort=False)["ratio"].mean().unstack().round(4)

# %%
ten = experiment("10")
ten.groupby(["jobs", "algorithm"], sort=False)["ratio"].mean().unstack().round(4)

# %% [markdown]
# ## Figures 15-17, Tables 4 and 5: the real experiment, simulated
#
# Three clusters of p3.2xlarge and the models of Table 3. Slot length, number of jobs, data and
# thresholds are not in the paper; ours are in the preset `section-6.4`.

# %%
four = experiment("table-4")
columns = [*parts, "total", "instance_hours", "discount_rate"]
four.groupby("algorithm", sort=False)[columns].mean().round(3)

# %%
for number in ("15", "16", "17", "table-5"):
    experiment(number)

# %% [markdown]
# The broker of Section 7 charges halfway between the two unit prices. That covers its costs only
# from twice the threshold on: with two out of three algorithms here it loses money.

# %%
margins = four.groupby("algorithm", sort=False)[["broker_charged", "broker_paid", "broker_margin"]]
margins.mean().round(1)

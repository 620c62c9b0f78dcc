"""Astraea's figures in quick mode: what each table must hold."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import pytest

from hindsched.analysis.figures.base import FigureScale, figures

matplotlib.use("Agg")
FIGURES = figures("astraea")
QUICK = FigureScale(quick=True, seeds=1)


def table_of(number):
    seen = []
    table = FIGURES[number].run(QUICK, seen.append)
    assert seen
    assert len(table)
    plt.close(FIGURES[number].picture(table))
    return table


def test_numbers():
    paper = {"4a", "4b", "4c", "4d", *map(str, range(5, 14)), "table-2"}
    assert set(FIGURES) == paper | {"P1", "P2", "P3", "P4"}


@pytest.mark.parametrize("number", ["4a", "7", "9", "11", "P1", "P2", "P3"])
def test_every_cell_of_the_experiment_is_there(number):
    table = table_of(number)
    keys = {
        "4a": ["jobs", "scheme"],
        "7": ["tenant", "scheme"],
        "9": ["jobs", "scheme"],
        "11": ["jobs", "percent"],
        "P1": ["load", "instance", "tenant"],
        "P2": ["load", "instance", "job"],
        "P3": ["load", "instance", "job", "lie"],
    }[number]
    assert not table.duplicated([*keys, "seed"]).any()


def test_feasible_schemes_never_beat_the_optimum():
    table = table_of("6")
    inside = table[table["in_feasible_set"]]
    assert (inside["performance_upper"] <= 1 + 1e-9).all()
    assert (inside["performance_lower"] <= inside["performance_upper"] + 1e-9).all()
    outside = set(table.loc[~table["in_feasible_set"], "scheme"])
    assert {name.removesuffix(" widest") for name in outside} == {"gandiva-fair", "hived"}


def test_admitted_jobs_earn_more_than_they_cost():
    table = table_of("12")
    assert (table["ideal_revenue"] > table["cost"]).all()


def test_no_lie_about_demand_or_value_pays_within_its_phase():
    """Where Theorem 4 holds: the same round and phase, the payoff at posted prices."""
    table = table_of("P3")
    about = table["lie"].isin(["half the chunks", "twice the value", "half the value"])
    inside = table[about & table["same_phase"]]
    assert len(inside) >= 100
    assert (inside["payoff_gain"] <= 1e-9).all()
    assert (inside["payoff_gain"] < -1).any()
    # Across phases and in income it does not hold.
    assert (table["payoff_gain"] > 1).any()
    assert (table["outcome"] == "more").any()

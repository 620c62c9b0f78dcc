"""Probes of Astraea's claimed properties, in quick mode."""

import pytest

from hindsched.analysis.figures.base import FigureScale
from tests.scripts import script

KEYS = {
    "P1": ["load", "instance", "tenant"],
    "P2": ["load", "instance", "job"],
    "P3": ["load", "instance", "job", "lie"],
    "P4": ["load", "instance", "tenant"],
}
"""The columns that tell a probe's rows apart."""


def table_of(number):
    scale = FigureScale(quick=True, seeds=1)
    return script("properties").PROPERTIES["astraea"][number].run(scale, lambda text: None)


@pytest.mark.parametrize("number", KEYS)
def test_every_row_of_a_probe_is_there(number):
    table = table_of(number)
    assert len(table) > 1
    assert not table.duplicated([*KEYS[number], "seed"]).any()


def test_within_a_round_and_phase_no_lie_about_demand_or_value_raises_the_payoff():
    table = table_of("P3")
    about = table["lie"].isin(["half the chunks", "twice the value", "half the value"])
    assert (table.loc[about & table["same_phase"], "payoff_gain"] <= 1e-9).all()
    assert (about & table["same_phase"]).any()

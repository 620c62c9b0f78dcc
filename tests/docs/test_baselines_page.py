"""Every baseline of every family has a row that says under which setting it is strongest."""

import pytest

from tests.scripts import script

BASELINES = script("baselines")


@pytest.mark.parametrize("family", BASELINES.INSTANCES)
def test_every_baseline_has_a_row(family):
    lines = [line for line in BASELINES.PAGE.read_text().splitlines() if BASELINES.ROW.match(line)]
    rows = {line.split("`")[1]: line for line in lines if line.startswith(f"| {family} |")}
    assert list(rows) == BASELINES.baselines(family)
    for name, row in rows.items():
        choices = [BASELINES.words(settings) for settings in BASELINES.combinations(family, name)]
        if len(choices) < 2:
            assert BASELINES.ALONE in row
        else:
            assert sum(f"`{words}`" in row for words in choices) == len(choices), name

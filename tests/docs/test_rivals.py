"""Every rival of every family has a row that says under which setting it is strongest."""

import pytest

from tests.scripts import script

RIVALS = script("rivals")


@pytest.mark.parametrize("family", RIVALS.INSTANCES)
def test_every_rival_has_a_row(family):
    lines = [line for line in RIVALS.PAGE.read_text().splitlines() if RIVALS.ROW.match(line)]
    rows = {line.split("`")[1]: line for line in lines if line.startswith(f"| {family} |")}
    assert list(rows) == RIVALS.rivals(family)
    for name, row in rows.items():
        choices = [RIVALS.words(settings) for settings in RIVALS.combinations(family, name)]
        if len(choices) < 2:
            assert RIVALS.ALONE in row
        else:
            assert sum(f"`{words}`" in row for words in choices) == len(choices), name

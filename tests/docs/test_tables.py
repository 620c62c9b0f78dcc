"""The measured tables of the families' pages are those that are kept beside their script."""

import pytest

from tests.scripts import ROOT, script


@pytest.fixture(scope="module")
def tables():
    return script("tables")


def test_every_table_on_a_page_is_the_kept_one(tables):
    for name, (page, _) in tables.TABLES.items():
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert tables.with_table(text, name, tables.kept(name)) == text, name


def test_a_short_table_is_measured_as_it_stands(tables):
    """The first cells of the table of OASiS' floors, measured anew."""
    import hindsched as hs

    kept = tables.kept("oasis-floors")
    run = hs.simulate(hs.named_instance(kept[0][1].strip("`")), "oasis")
    assert kept[1][1] == f"{run.objective:.1f}"

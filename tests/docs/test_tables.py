"""The measured tables of the families' pages are those that are kept beside their script."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tables():
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("page_tables", ROOT / "benchmarks/tables.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def test_every_table_on_a_page_is_the_kept_one(tables):
    for name, (page, _) in tables.TABLES.items():
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert tables.with_table(text, name, tables.kept(name)) == text, name


def test_every_kept_table_is_on_a_page(tables):
    assert {path.stem for path in tables.STORED.glob("*.json")} == set(tables.TABLES)


def test_a_short_table_is_measured_as_it_stands(tables):
    """The first cells of the table of OASiS' floors, measured anew."""
    import hindsched as hs

    kept = tables.kept("oasis-floors")
    run = hs.simulate(hs.named_instance(kept[0][1].strip("`")), "oasis")
    assert kept[1][1] == f"{run.objective:.1f}"

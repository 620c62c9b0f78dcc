"""``docs/worst.md`` says what the searches on file found, and they found what they had to."""

import pytest

import hindsched as hs
from hindsched.instances.base import FAMILIES
from hindsched.instances.witnesses import witness_files
from tests.scripts import ROOT, script


@pytest.fixture(scope="module")
def made():
    module = script("worst")
    return module, module.Results(ROOT / "benchmarks/worst_results")


def test_the_page_is_what_the_searches_found(made):
    module, results = made
    assert module.page(results) == (ROOT / "docs/worst.md").read_text(encoding="utf-8")


def test_theory_is_recovered_from_gadgets_and_from_random_starts(made):
    module, results = made
    for case in module.known_cases():
        enough = case.get("enough", module.WITHIN * case["supremum"])
        for how in (module.GADGETS, module.RANDOM):
            found = float(results.get(case, how)["found"])
            assert enough <= found <= case["supremum"] + 1e-9, (case["name"], how)
        draws = results.get(case, module.DRAWS)
        assert draws["evaluations"] >= min(case.get("work", 10_000), draws["reached"])


def test_papers_witnesses_are_worse_than_their_sweeps(made):
    module, results = made
    for case in module.paper_cases():
        row = results.get(case, "both")
        assert float(row["shown"]) > float(results.get(case, "sweep")["worst"]), case["name"]
        assert not row["contradicts"]


def test_every_algorithm_was_searched(made):
    module, results = made
    for case in [*module.paper_cases(), *module.rest_cases()]:
        for how in module.HOWS[case["part"]]:
            assert results.get(case, how) is not None, (case["name"], how)


def test_witnesses_are_the_suite_worst(made):
    module, results = made
    found = {instance.name: instance.to_dict() for instance in module.witnesses(results)}
    stand = {path.stem: path for family in FAMILIES for path in witness_files(family)}
    assert set(found) == set(stand)
    for name, data in found.items():
        assert hs.read(stand[name]).to_dict() == data

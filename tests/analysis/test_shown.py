"""What a notebook shows of an object: one line, or a table, never thousands of characters."""

import pytest

import hindsched as hs
from hindsched.instances.base import FAMILIES
from hindsched.notebook_card import ROWS_SHOWN


@pytest.mark.parametrize("family", [word for word in FAMILIES if hs.algorithms(word)])
def test_instances_and_runs_are_one_line(family):
    instance = hs.generate(family)
    run = hs.simulate(instance, next(iter(hs.algorithms(family))))
    for shown in (instance, run, run.solution):
        assert len(repr(shown)) < 200
        assert "\n" not in repr(shown)
        assert repr(instance.name) in repr(shown)


def test_results_and_comparisons():
    instance = hs.named_instance("oasis-t10-i10-h25-s0")
    result = hs.solve(instance, "bound", options={"time_limit": 1})
    assert repr(result) == f"<{result}>"
    found = hs.compare(
        instance, ["oasis", "fifo"], seeds=1, method="bound", time_limit=1, progress=False
    )
    assert repr(found).splitlines()[0].split() == ["instance", "algorithm", "objective", "ratio"]
    assert repr(found.instances[0]) == str(found.instances[0])
    shown = result._repr_html_()
    assert "prices that anyone can recompute" in shown
    assert f"{result.bound:.6g}" in shown
    proof = result.certificate._repr_html_()
    assert f"the optimum is at most {result.bound:.9g}" in proof
    assert instance.sha256() in proof


@pytest.mark.parametrize("family", [word for word in FAMILIES if hs.algorithms(word)])
def test_notebooks_show_cards_with_the_first_rows(family):
    instance = hs.generate(family)
    run = hs.simulate(instance, next(iter(hs.algorithms(family))))
    for shown in (instance, run, run.solution):
        html = shown._repr_html_()
        assert html.startswith("<div><strong>")
        assert html.count("<table>") == html.count("</table>") == 2
        assert str(instance.jobs[0].name) in html
        hidden = len(instance.jobs) - ROWS_SHOWN
        assert (f"and {hidden} more" in html) == (hidden > 0)
    assert f"{run.objective:.6g}" in run._repr_html_()


def test_a_program_shows_every_component():
    program = hs.model(hs.generate("oasis", jobs=2, horizon=6), form="printed")
    html = program._repr_html_()
    for part in program.to_dict()["components"]:
        assert f"<td>{part['name']}</td>" in html

"""What a notebook shows of an object: one line, or a table, never thousands of characters."""

import pytest

import hindsched as hs
from hindsched.instances.base import FAMILIES


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
    assert found._repr_html_().count("<tr") == 3

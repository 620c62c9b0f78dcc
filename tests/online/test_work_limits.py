"""Rolling programs stop by work, never by the clock, and say when they reached a limit."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hindsched.online
from hindsched.errors import InputError
from hindsched.instances.generators.registry import generate
from hindsched.online.registry import algorithms, settings_of
from hindsched.online.simulator import simulate

FAMILIES = ("oasis", "batchsched", "astraea", "edgecloud", "mlbroker")


def test_no_algorithm_reads_a_clock() -> None:
    """Nothing of the online floor but the simulator, which times, and processes asks the time."""
    root = Path(hindsched.online.__file__).parent
    asking = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in getattr(node, "names", [])]
            module = getattr(node, "module", None)
            if isinstance(node, ast.Import | ast.ImportFrom) and (
                module == "time" or "time" in names
            ):
                asking.add(str(path.relative_to(root)))
            if isinstance(node, ast.keyword) and node.arg == "time_limit":
                asking.add(str(path.relative_to(root)))
    assert asking <= {"simulator.py", "external.py", "processes.py"}


@pytest.mark.parametrize("family", FAMILIES)
def test_no_setting_is_a_time(family: str) -> None:
    for name, factory in algorithms(family).items():
        assert not [key for key in settings_of(factory) if "time" in key or "seconds" in key], name


def test_reoptimise_stops_by_nodes_and_says_so() -> None:
    contended = generate("oasis", "small", 1, jobs=6, horizon=6)
    limited, again = (
        simulate(contended, "reoptimise", settings={"nodes": 1, "gap": 0.0}) for _ in range(2)
    )
    assert limited.report["limits_reached"] > 0
    assert limited.report["nodes_a_solve"] == 1
    assert limited.solution.assignments() == again.solution.assignments()
    with pytest.raises(InputError, match=r"set\.nodes"):
        simulate(contended, "reoptimise", settings={"nodes": 0})


def test_dual_price_stops_by_iterations_and_says_so() -> None:
    tiny = generate("oasis", "small", 1)
    limited = simulate(tiny, "dual-price", settings={"iterations": 1})
    assert limited.report["relaxations_without_duals"] > 0
    assert limited.report["iterations_a_relaxation"] == 1
    assert simulate(tiny, "dual-price").report["relaxations_without_duals"] == 0
    with pytest.raises(InputError, match=r"set\.iterations"):
        simulate(tiny, "dual-price", settings={"iterations": 0})

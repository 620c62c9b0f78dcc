"""The numbers of ``docs/problems/gang.md``, recomputed from the page itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hindsched as hs
from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.models.gang.offline import FORMS, MOST_COLUMNS, MOST_PROGRAM_SLOTS
from hindsched.solvers.families.gang.methods import SMALL_COLUMNS
from tests.brute_force import gang as brute_force

PAGE = Path("docs/problems/gang.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def example():
    """The example's JSON data."""
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    return json.loads(text)


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_has_these_optima_and_bounds(example, kind):
    row = next(line for line in PAGE.splitlines() if re.match(rf"\| `{kind}` \| \d", line))
    *optima, dual, printed = map(float, row.split("|")[2:-1])
    for goal, value in zip(("completion", "makespan", "deadlines"), optima, strict=True):
        assert brute_force.optimum(example, kind, goal) == value
        formulation = kind if goal == "completion" else f"{kind},{goal}"
        found = hs.solve(GangInstance.parse(example), "milp", formulation=formulation)
        assert (str(found.status), found.objective) == ("optimal", pytest.approx(value, abs=1e-9))
    model = hs.model(GangInstance.parse(example), formulation=kind)
    assert model.relax().solve().objective == pytest.approx(dual)
    weaker = hs.model(GangInstance.parse(example), formulation=kind, form="printed")
    assert weaker.relax().solve().objective == pytest.approx(printed, abs=1e-4)


def test_limits_forms_and_names_are_those_of_the_code():
    flat = " ".join(PAGE.split())
    for number in (MOST_PROGRAM_SLOTS, MOST_COLUMNS, SMALL_COLUMNS):
        assert f"{number:,} " in flat
    for form in {form for forms in FORMS.values() for form in forms}:
        assert f"| `{form}`" in PAGE
    for path in re.findall(r"`((?:tests|benchmarks|hindsched)/[\w/.]+)`", PAGE):
        assert Path(path).exists(), path
    for name in re.findall(r"`(families/gang/\w+\.py|solutions/gang/\w+\.py)`", PAGE):
        assert list(Path("hindsched").rglob(name)), name


def test_the_code_on_the_page_runs(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, "docs/problems/gang.md", "exec"), names)
    assert Path("gang.mps").stat().st_size > 0

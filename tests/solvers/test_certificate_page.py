"""The two-job example of ``docs/reference/certificates.md``, recomputed from the page itself."""

import json
import re
from pathlib import Path

import pytest

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import build_solution
from hindsched.solvers.certificates.explain import explain
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.api import solve

PAGE = Path("docs/reference/certificates.md").read_text()


@pytest.fixture(scope="module")
def blocks():
    """Instance, rows and certificate, in the order in which they stand on the page."""
    return [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)][:3]


def test_the_bound_is_what_a_pencil_finds(blocks):
    data, rows, certificate = blocks
    instance = OasisInstance.parse(data)
    worth = {"A": (10, 8), "B": (6, 5)}  # by slot
    price = (1.5, 0)
    best = {job: max(0, *(w - p for w, p in zip(pair, price, strict=True)))
            for job, pair in worth.items()}  # fmt: skip
    assert best == {"A": 8.5, "B": 5}
    bound = sum(price) + sum(best.values())
    assert bound == 15
    verified = verify_certificate(instance, certificate)
    assert certificate["bound"] == 15.000000016
    assert verified.bound == pytest.approx(bound, abs=1e-7)
    assert verified.bound >= bound, "outward"
    solution = build_solution(instance, rows)
    assert solution.violations() == []
    assert solution.objective() == worth["B"][0] + worth["A"][1] == 14
    assert solve(instance, "milp").objective == pytest.approx(15), "the bound is tight"


def test_the_gap_is_split_as_the_page_says(blocks):
    data, rows, certificate = blocks
    instance = OasisInstance.parse(data)
    found = explain(
        build_solution(instance, rows), verify_certificate(instance, certificate).certificate
    )
    assert dict(zip(found.jobs, found.job_terms.tolist(), strict=True)) == pytest.approx(
        {"A": 0.5, "B": 0.5}
    )
    assert found.row_terms.sum() == pytest.approx(0)
    assert found.gap == pytest.approx(1, abs=1e-6)


def test_the_numbers_in_the_text_are_those():
    flat = " ".join(PAGE.split())
    assert "1.5 + 8.5 + 5 = 15" in flat
    assert "15 / 14 = 1.0714" in flat
    assert round(15 / 14, 4) == 1.0714

"""The checker of (3a)-(3o): every rule broken by hand once, and files read back."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hindsched.errors import InputError
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.online.simulator import simulate
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solutions.base import read_solution, write_solution
from tests.astraea_example import worked_example


def row(first, last, workers, ps, **more):
    return {"from": first, "to": last, "workers": workers, "ps": ps, **more}


def build(rows, formulation=None, **changes):
    return AstraeaSolution.from_assignments(worked_example(**changes), rows, formulation)


def numbers(rows, formulation=None):
    return {broken.rule for broken in build(rows, formulation).violations()}


GOOD = row(4, 5, {"s1": 2}, {"s1": 1})


def test_a_feasible_schedule():
    solution = build({"j11": [GOOD]})
    assert solution.violations() == []
    assert solution.completion("j11") == 5
    assert solution.revenue("j11") == 100 - 2 * 2
    assert solution.objective() == 96
    absolute = build({"j11": [GOOD]}, utility_origin="absolute")
    assert absolute.objective() == 100 - 2 * 5


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"j11": [row(3, 4, {"s1": 2}, {"s1": 1})]}, "(3l)"),
        ({"j11": [row(100, 101, {"s1": 2}, {"s1": 1})]}, "(3o)"),
        ({"j11": [row(4, 7, {"s1": 2, "s2": 1}, {"s1": 1})]}, "(3e)"),
        ({"j11": [row(4, 5, {"s1": 2}, {})]}, "(3g)"),
        ({"j11": [row(4, 7, {"s1": 1, "s2": 1}, {"s3": 1})]}, "(3i)"),
        ({"j11": [row(4, 4, {"s1": 2}, {"s1": 1})]}, "(3k)"),
        ({"j11": [row(4, 5, {"s1": 1, "s2": 1}, {"s1": 1})]}, "(3k)"),
        ({"j11": [row(4, 4, {"s1": 2}, {"s1": 1}), row(6, 6, {"s1": 2}, {"s1": 1})]}, "(3l)"),
        ({"j11": [row(4, 4, {"s1": 2}, {"s1": 1}), row(5, 5, {"s2": 2}, {"s2": 1})]}, "(3f)"),
        ({"j11": [row(4, 5, {"s1": 2}, {"s1": 1}), row(5, 5, {"s1": 2}, {"s1": 1})]}, "(3l)"),
        ({"j11": [GOOD], "j21": [GOOD]}, "(3c)"),
        ({"j11": [GOOD], "j21": [GOOD]}, "(3d)"),
        ({"j11": [{**GOOD, "payment": {"workers": 1, "ps": 1}}]}, None),
        ({"j11": [row(4, 7, {"s1": 1, "s2": 1}, {"s1": 1})]}, None),  # (3j): apart, td = 2
    ],
)
def test_each_rule(rows, expected):
    rules = numbers(rows)
    assert (expected in rules) if expected else rules == set()


def test_must_complete_wants_every_job():
    assert numbers({"j11": [GOOD]}, "must-complete") == {"(3k)"}
    assert numbers({}, "optional") == set()


def test_payments_for_what_nobody_offers():
    full = {
        "j11": [row(4, 5, {"s1": 2}, {"s1": 1})],
        "j21": [row(4, 5, {"s2": 2}, {"s2": 1})],
        "j22": [row(4, 33, {"s3": 2}, {"s3": 1})],
    }
    paying = row(4, 6, {"s4": 2}, {"s4": 1}, payment={"workers": 2.0, "ps": 0.0})
    assert numbers({**full, "j12": [paying]}) == set()
    gains = build({**full, "j12": [paying]}).gains()
    rows = build({**full, "j12": [paying]}).tenant_rows()
    assert [(item["tenant"], item["jobs"], item["paid"]) for item in rows] == [
        ("u1", 2, 6), ("u2", 2, 0),
    ]  # fmt: skip
    assert gains == {"u1": 2 + 2 + Fraction(2 * 4, 6), "u2": Fraction(2 * 2, 6)}
    alone = worked_example(("j11",)).to_dict()
    alone["tenants"] = [{"name": "u1", "worker_quota": 2, "ps_quota": 1}]
    alone["servers"] = alone["servers"][:1]
    small = AstraeaInstance.parse(
        {**alone, "jobs": worked_example(("j11", "j12")).to_dict()["jobs"]}
    )
    both = {
        "j11": [row(4, 5, {"s1": 2}, {"s1": 1})],
        "j12": [{**row(4, 6, {"s1": 2}, {"s1": 1}), "payment": {"workers": 2.0, "ps": 1.0}}],
    }
    violations = AstraeaSolution.from_assignments(small, both).violations()
    assert "(2)" in {broken.rule for broken in violations}


@pytest.mark.parametrize(
    ("payment", "where"),
    [
        ({"workers": 1}, "workers and ps"),
        ({"workers": -1, "ps": 0}, "from 0 on"),
        ({"workers": float("inf"), "ps": 0}, "finite"),
        ({"workers": 10**400, "ps": 0}, "at most 1e"),
    ],
)
def test_what_is_no_payment_is_named(payment, where):
    with pytest.raises(InputError, match=where):
        build({"j11": [{**GOOD, "payment": payment}]})


def test_a_file_reads_back_with_payments(tmp_path):
    result = simulate(worked_example(), "astraea", settings={"theta_workers": 16, "theta_ps": 16})
    path = tmp_path / "solution.json"
    write_solution(result.solution, path)
    again = read_solution(path, worked_example())
    assert again.assignments() == result.solution.assignments()
    assert again.gains() == result.solution.gains()
    assert again.objective() == 168
    rows = {item["job"]: item for item in again.job_rows()}
    assert (rows["j12"]["start"], rows["j12"]["completion"], rows["j12"]["value"]) == (10, 12, 82)
    used = sum(item["used"] for item in again.usage_rows())
    assert used == again.use.sum()

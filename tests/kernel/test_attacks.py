"""Files that once proved something wrong or were judged in two ways, and amounts below 0."""

from __future__ import annotations

import copy
import gzip
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hindsched as hs
from hindsched import kernel
from hindsched.instances.base import FAMILIES
from hindsched.kernel.__main__ import check_command
from hindsched.solvers.base import build_oracle
from hindsched.solvers.certificates.certificate import certify
from tests.kernel.agreement import exact

FOLDER = Path(__file__).parents[1] / "data" / "attacks"
BOUNDS = {
    "edgecloud-literal-short-block": 9,
    "mlbroker-cancelled-presence": 129,
    "mlbroker-not-optimal": 128.0001,
    "mlbroker-pinned": 124.70783344495732,
    "mlbroker-tier-price": 7,
    "mlbroker-tiny": 2.3088e-9,
}
"""The optima that bounds which were once accepted exclude."""
SCHEDULES = {
    "batchsched-no-type": "keys of a row",
    "batchsched-payment": "keys of a row",
    "batchsched-rows-add-up": "(2n)",
    "batchsched-short-work": "(2f)",
    "edgecloud-completion": "completion",
    "edgecloud-literal-lane": "(2c)",
    "edgecloud-no-upload": "upload_slots: must name s",
    "edgecloud-unknown-keys": "keys of a row",
    "gang-longer": "(1)",
    "gang-row-of-nothing": "whole number from 1",
    "gang-rows-add-up": "(7)",
    "mlbroker-completion": "completion",
    "mlbroker-half-a-row": "keys of a row",
    "mlbroker-paper-8g": "(8g)",
    "oasis-negative-row": "whole number from 0",
    "oasis-rows-add-up": "two rows of slot 1",
}
"""The rule that a schedule breaks, or why it is none."""
SIGNED = {"slope", "intercept", "target"}


def path_of(name, what, tmp_path):
    """The path of an attack's file, unpacked if it is packed."""
    (path,) = (FOLDER / name).glob(f"{what}.json*")
    if path.suffix == ".gz":
        plain = tmp_path / path.stem
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        return plain
    return path


@pytest.mark.parametrize("name", BOUNDS)
def test_the_kernel_refuses_false_bounds(name, capsys, tmp_path):
    files = [path_of(name, w, tmp_path) for w in ("instance", "solution", "certificate")]
    assert check_command([*map(str, files)]) == 2
    said = capsys.readouterr().out
    assert "states more than what is proven" in said
    instance, _, certificate = (
        json.loads(path.read_text(), parse_float=Fraction) for path in files
    )
    best = Fraction(str(BOUNDS[name])) + Fraction(1, 10**15)
    assert kernel.bound(instance, certificate).high <= best
    for rows in certificate["prices"].values():
        for row in rows:
            row["price"] *= 25
    assert kernel.bound(instance, certificate).high <= best


@pytest.mark.parametrize("name", BOUNDS)
def test_the_fast_path_refuses_false_bounds_and_solves(name, tmp_path):
    """Tiny and huge amounts end in no exception of Python's."""
    problem = hs.read(path_of(name, "instance", tmp_path))
    certificate = path_of(name, "certificate", tmp_path)
    with pytest.raises(hs.InputError, match="the prices prove"):
        hs.read_certificate(certificate, problem)
    if name != "mlbroker-tiny":  # 2000 slots in a loop of Python: seconds
        formulation = json.loads(certificate.read_text())["formulation"]
        result = hs.solve(problem, formulation=formulation)
        assert result.objective == pytest.approx(BOUNDS[name], rel=1e-9)
        assert result.certificate.bound <= BOUNDS[name]


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_is_no_schedule_and_what_breaks_a_rule(name):
    data = [
        json.loads((FOLDER / "judge" / f"{name}.{what}.json").read_text())
        for what in ("instance", "solution")
    ]
    said = SCHEDULES[name]
    if said[0] == "(" or said == "completion":
        verdict = kernel.check(*data)
        assert {violation.rule for violation in verdict.violations} == {said}
        assert verdict.objective is None
    else:
        with pytest.raises(kernel.RefusedFile) as caught:
            kernel.check(*data)
        assert said in str(caught.value)


def numbers(data, path=()):
    """Path of one number of every kind: the first below the same keys."""
    found = {}
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, dict | list):
            inner = numbers(value, (*path, key))
        else:
            inner = [(*path, key)] if type(value) in (int, float) and key != "provenance" else []
        for place in inner:
            found.setdefault(tuple(part for part in place if isinstance(part, str)), place)
    return list(found.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_no_number_may_be_negative_but_those_that_have_a_sign(family):
    instance = hs.generate(family, "small", 0)
    oracle = build_oracle(instance)
    certificate = exact(certify(oracle, np.zeros(oracle.rows.size)).to_dict())
    data = exact(instance.to_dict())
    data.pop("provenance", None)
    kernel.bound(data, certificate, kernel.LIMITS)
    places = [place for place in numbers(data) if place[-1] not in SIGNED]
    assert len(places) > 5
    for place in places:
        changed = copy.deepcopy(data)
        inside = changed
        for part in place[:-1]:
            inside = inside[part]
        inside[place[-1]] = -max(1, inside[place[-1]])
        try:
            kernel.bound(changed, certificate, kernel.LIMITS)
        except kernel.RefusedFile:
            continue
        raise AssertionError(place)

"""No number of an instance may be negative but those that the format gives a sign."""

from __future__ import annotations

import copy
import hashlib
import json

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.base import FAMILIES, canonical_json
from hindsched.kernel.__main__ import main
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.oracles.base import build_oracle

SIGNED = {"slope", "intercept", "target"}


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
def test_a_negative_number_is_refused(family, tmp_path, capsys):
    instance = hs.generate(family, "small", 0)
    oracle = build_oracle(instance)
    certificate = certify(oracle, np.zeros(oracle.rows.size)).to_dict()
    paths = [tmp_path / "instance.json", tmp_path / "certificate.json"]

    def judged(data):
        sha = hashlib.sha256(canonical_json(data).encode()).hexdigest()
        paths[0].write_text(json.dumps(data))
        paths[1].write_text(json.dumps(certificate | {"instance_sha256": sha}))
        code = main([str(path) for path in paths])
        return code, capsys.readouterr().out

    data = instance.to_dict()
    data.pop("provenance", None)
    assert judged(data)[0] == 0
    places = [place for place in numbers(data) if place[-1] not in SIGNED]
    assert len(places) > 5
    for place in places:
        changed = copy.deepcopy(data)
        inside = changed
        for part in place[:-1]:
            inside = inside[part]
        inside[place[-1]] = -max(1, inside[place[-1]])
        code, said = judged(changed)
        assert code == 2, (place, said)
        assert "\nrefused: " in f"\n{said}", (place, said)

"""Files changed at random: one line and a code, never a wrong claim accepted or a traceback."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import random
from pathlib import Path

import pytest

import hindsched
from hindsched.kernel.__main__ import main
from tests.kernel.test_trees import OPTIMA

pytestmark = pytest.mark.nightly

DATA = Path(__file__).parent / "data"
KNOWN = Path(hindsched.__file__).parent / "instances" / "known"
VALUES = [0, 1, -1, 0.5, 1e-9, 1e15, 10**19, 1e300, None, True, "x", "s1", "j1", [], {}, [1]]
ROUNDS = 60


def places(data, path=()):
    """Every place in JSON data."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def mutate(data, draw):
    """Change, delete, double or swap values at one to three places."""
    data = copy.deepcopy(data)
    for _ in range(draw.choice([1, 1, 2, 3])):
        *parents, key = draw.choice(list(places(data)))
        inside = data
        for parent in parents:
            inside = inside[parent]
        value, kind = inside[key], draw.random()
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and kind < 0.5:
            inside[key] = draw.choice([value + 1, value - 1, value * 2, value / 3, -value])
        elif kind < 0.7:
            inside[key] = draw.choice(VALUES)
        elif kind < 0.8:
            del inside[key]
        elif isinstance(inside, list):
            inside.append(copy.deepcopy(value))
        else:
            inside[draw.choice(list(inside))] = copy.deepcopy(value)
    return data


@pytest.mark.parametrize("name", sorted(OPTIMA))
def test_mutations_prove_nothing_wrong(name, tmp_path, capsys):
    draw = random.Random(name)
    instance = json.loads((KNOWN / f"{name}.json").read_text())
    solution, certificate = (
        json.loads(gzip.decompress((DATA / f"{name}.{what}.json.gz").read_bytes()))
        for what in ("solution", "certificate")
    )
    sign, best = 1 if certificate["sense"] == "max" else -1, OPTIMA[name]
    for _ in range(ROUNDS):
        files, which = [instance, solution, certificate], draw.randrange(3)
        files[which] = mutate(files[which], draw)
        if which == 0:
            plain = json.dumps(files[0], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            own = hashlib.sha256(plain.encode()).hexdigest()
            files[1:] = [data | {"instance_sha256": own} for data in files[1:]]
        paths = [tmp_path / f"{i}.json" for i in range(3)]
        for path, data in zip(paths, files, strict=True):
            path.write_text(json.dumps(data))
        code = main([str(path) for path in paths])
        said = capsys.readouterr().out.splitlines()
        assert code in (0, 1, 2)
        assert (code == 2) == said[-1].startswith("refused: ")
        if code == 0 and which:
            assert sign * (files[2]["bound"] - best) > -1e-3
            assert sign * (files[1]["objective"] - best) < 1e-3

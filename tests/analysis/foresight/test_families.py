"""The price of not knowing in every family: order of the values, folders, and bad input."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import hindsched as hs
from hindsched.analysis.foresight.folder import verify_foresight
from hindsched.analysis.foresight.foresight import Foresight
from hindsched.cli.app import run
from hindsched.errors import InputError
from hindsched.instances.base import FAMILIES, Instance

SMALL = {
    "oasis": {"jobs": 3, "horizon": 7}, "batchsched": {"jobs": 3}, "astraea": {"jobs": 3},
    "gang": {"jobs": 4}, "edgecloud": {"jobs": 3, "horizon": 4}, "mlbroker": {"jobs": 3},
}  # fmt: skip


def futures_of(family: str, branches: int = 2) -> list[Instance]:
    return hs.tree(family, at=[1], branches=branches, seed=1, **SMALL[family])


def measured(family: str, policies: str) -> Foresight:
    return hs.foresight(futures_of(family), policies=policies, time_limit=8)


@pytest.mark.parametrize("family", FAMILIES)
def test_who_knows_more_is_never_worse(family: str, tmp_path: Path) -> None:
    run_, commit = measured(family, "run"), measured(family, "commit")
    up = run_.is_maximised
    for found in (run_, commit):
        ends = [found.hindsight, found.best_online]
        for better, worse in itertools.pairwise(ends):
            better, worse = (better, worse) if up else (worse, better)
            assert better.upper is not None
            assert worse.lower is not None
            assert better.upper >= worse.lower * (1 - 1e-6)
        assert found.price.lower is not None
        assert found.price.lower >= 1
        assert found.guarantee.lower is not None
    wide, narrow = run_.best_online, commit.best_online
    if up:
        assert wide.upper >= narrow.lower * (1 - 1e-6)
    else:
        assert wide.lower <= narrow.upper * (1 + 1e-6)
    for found in (run_, commit):
        if bound := found.certified.get("expected"):
            assert bound >= found.best_online.lower if up else bound <= found.best_online.upper
    commit.write(tmp_path)
    assert verify_foresight(tmp_path) == []
    data = json.loads((tmp_path / "foresight.json").read_text())
    for end in ("lower", "upper"):
        data["best_online"][end] *= 1.5
    (tmp_path / "foresight.json").write_text(json.dumps(data))
    assert verify_foresight(tmp_path)


def test_a_policy_that_peeks_is_found(tmp_path: Path) -> None:
    found = hs.foresight(hs.tree("gang", at=[3], seed=0), policies="commit", time_limit=20)
    found.write(tmp_path)
    assert verify_foresight(tmp_path) == []
    path = tmp_path / "certificate-expected.json"
    whole = json.loads(path.read_text())
    far = {"gpus": [{"from": 1, "to": 10**18, "price": 1}]}
    for change, told in (
        ({"weight": 0.9}, "probabilities"), ({"kind": "lagrangian", "prices": far}, "10000"),
        ({"own": [{"job": "j1", "from": 1, "to": 10**18, "price": 1}]}, "cells"),
    ):  # fmt: skip
        changed = {**whole["scenarios"][0], **change}
        path.write_text(json.dumps({**whole, "scenarios": [changed, *whole["scenarios"][1:]]}))
        assert any(told in line for line in verify_foresight(tmp_path)), change
    path.write_text(json.dumps(whole))
    data, total = json.loads((tmp_path / "foresight.json").read_text()), 0.0
    for n, row in enumerate(data["scenarios"]):
        best = json.loads((tmp_path / f"hindsight-{n}.json").read_text())
        (tmp_path / f"policy-{n}.json").write_text(json.dumps(best))
        total += row["probability"] * best["objective"]
    assert total < found.best_online.lower * (1 - 1e-6)  # or the test would be void
    data["best_online"]["upper"] = total
    (tmp_path / "foresight.json").write_text(json.dumps(data))
    assert any("tells" in line for line in verify_foresight(tmp_path))


def test_futures_without_doubt_cost_nothing() -> None:
    instance = hs.generate("gang")
    alone = hs.foresight([instance], algorithms=[], time_limit=10)
    assert alone.price.upper == pytest.approx(1)
    assert "costs nothing" in str(alone)
    twice = hs.foresight([instance, instance.with_fields(name="again")], algorithms=[])
    assert twice.price.upper == pytest.approx(1)
    assert "merged" in str(twice)
    first = instance.jobs[0].model_copy(update={"duration": 3})
    apart = instance.with_fields(name="apart", jobs=(first, *instance.jobs[1:]))
    told = hs.foresight([instance, apart], algorithms=[], time_limit=20)
    assert told.price.upper == pytest.approx(1)
    assert "first slot" in str(told)


def test_whose_estimates_an_algorithm_has_is_said() -> None:
    futures = hs.tree("oasis", at=[2], branches=2)
    found = hs.foresight(futures, algorithms=["oasis"], time_limit=5)
    assert "Estimates that oasis is told in advance are those of all futures" in str(found)
    untold = hs.foresight(hs.tree("gang", at=[2], branches=2), algorithms=["fifo"], time_limit=5)
    assert "Estimates" not in str(untold)


def test_bad_input() -> None:
    one, other = hs.tree("gang", at=[1])
    for probabilities in ([0.5, 0.6], [1.5, -0.5], [0.0, 1.0], [1.0]):
        with pytest.raises(InputError, match="probabilities"):
            hs.foresight([one, other], probabilities)
    for strange in (hs.generate("oasis"), other.with_fields(horizon=99), other.with_fields(gpus=9)):
        with pytest.raises(InputError, match=r"instances\[1\]"):
            hs.foresight([one, strange])
    with pytest.raises(InputError, match="policies"):
        hs.foresight([one, other], policies="guess")
    with pytest.raises(InputError, match="at: "):
        hs.tree("gang", at=[3, 2])
    with pytest.raises(InputError, match="at most"):
        hs.tree("gang", at=[1, 2, 3], branches=100)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "found")
    options = ["--family", "gang", "--branches", "2", "--algorithm", "fifo", "--time-limit", "10"]
    assert run(["foresight", *options, "--json", "-o", folder]) == 0
    assert json.loads(capsys.readouterr().out)["price"]["lower"] >= 1
    assert run(["verify", folder]) == 0
    assert run(["foresight"]) == 2
    assert run(["foresight", *options, "--probability", "0.9"]) == 2


def test_an_algorithm_that_moves_what_it_placed_does_not_commit():
    """A_online decides at arrival where chunks run; when others arrive, it moves them in time."""
    futures = hs.tree("edgecloud", branches=3, seed=66, at=[1], jobs=3, horizon=4)
    found = hs.foresight(futures, algorithms=["edgecloud"], policies="commit", time_limit=20)
    assert found.best_online.lower == pytest.approx(24, rel=1e-6)
    (loss,) = found.losses_by_algorithm
    assert loss.expected == pytest.approx(71 / 3)
    assert loss.own is None

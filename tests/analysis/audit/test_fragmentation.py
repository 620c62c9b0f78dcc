"""What servers and kinds of GPUs cost: worked by hand, its files checked by the kernel."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import hindsched as hs
from hindsched import kernel
from hindsched.cli.app import run
from hindsched.errors import InputError
from hindsched.instances.traces.capacity import said_capacity
from hindsched.solvers.families.gang.prices import certify_without_prices

LOG = pd.DataFrame({
    "job": ["a", "b", "c", "d"], "submit": 0, "start": [0, 7200, 0, 0],
    "end": [7200, 14400, 3600, 3600], "gpus": [2, 2, 1, 1],
    "gpu_kinds": ["V100", "V100", "", "P100|K80"], "user": ["u", "v", "w", "w"],
})  # fmt: skip
SERVERS = "a=1@V100,b=1@V100,c=2@P100"


def test_three_levels_and_the_short_kind(tmp_path: Path) -> None:
    found = hs.audit(LOG, servers=SERVERS, time_limit=6)
    assert found.is_possible
    cost = found.fragmentation
    assert cost is not None
    # in one pool c, d and one of the others run first: 1, 1, 2 and 3 hours
    assert [level.bounds.upper for level in cost.levels] == [
        pytest.approx(3600 * hours / 4) for hours in (7, 8, 8)
    ]
    assert [level.bounds.lower for level in cost.levels] == [3600 * h / 4 for h in (7, 8, 8)]
    assert cost.price().is_point
    short = cost.kinds.iloc[0]
    assert short["kind"] == "V100"
    assert short[["jobs", "waited", "short_hours", "user"]].tolist() == [2, 14400, 2.0, "v"]
    assert short[["worst_from", "worst_to"]].tolist() == ["0", "3600"]
    assert short["users_share"] == 1.0
    assert "Shortest is V100" in cost.sentence()
    assert cost.price().lower == pytest.approx(8 / 7)
    found.write(tmp_path)
    for stem, level in zip(("2-by-kind", "3-on-the-servers"), cost.levels[1:], strict=True):
        instance, certificate, best = (
            json.loads((tmp_path / f"{stem}-{what}.json").read_text())
            for what in ("instance", "certificate", "best")
        )
        bound, judged = kernel.bound(instance, certificate), kernel.check(instance, best)
        assert level.certificate.bound <= bound.low <= judged.objective.low
        assert judged.feasible
    assert "What servers and kinds of GPUs cost" in (tmp_path / "audit.html").read_text()


def test_what_is_proven_of_the_pool_holds_for_its_servers() -> None:
    """Their own certificate proves less, where their own search had no time."""
    cost = hs.audit(LOG.assign(gpu_kinds=""), servers="2x1,1x2", time_limit=4).fragmentation
    pool, fine = cost.levels
    idle = certify_without_prices(fine.instance, "non-preemptive")
    fine = replace(fine, certificate=idle)
    assert fine.bounds.lower == pool.bounds.lower > idle.bound / 4
    assert replace(cost, levels=(pool, fine)).rows()[1]["bound_of"] == "one pool"


def test_servers_without_kinds_have_two_levels() -> None:
    log = LOG.assign(gpu_kinds="")
    cost = hs.audit(log, servers="2x1,1x2", time_limit=4).fragmentation
    assert cost is not None
    assert [level.name for level in cost.levels] == ["one pool", "on the servers"]
    assert cost.kinds.empty
    assert hs.audit(log, gpus=4, time_limit=2).fragmentation is None


@pytest.mark.parametrize(
    ("kinds", "servers", "says"),
    [
        (["A100", "", "", ""], SERVERS, "row 1, column gpu_kinds: A100: 2 GPUs asked for"),
        (["K80", "", "", ""], "4x1", "nobody has said those of the servers"),
    ],
)
def test_what_cannot_be_judged_by_kind_is_said(kinds: Any, servers: str, says: str) -> None:
    found = hs.audit(LOG.assign(gpu_kinds=kinds), servers=servers, time_limit=3)
    assert says in " ".join(found.remarks)


def test_the_command_reads_kinds_by_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LOG.rename(columns={"gpu_kinds": "gpu type"}).to_csv(tmp_path / "log.csv", index=False)
    nodes = "sn,cpu,gpu,model\nn0,64,1,V100\nn1,64,1,V100\nn2,64,2,P100\nn3,64,0,\n"
    (tmp_path / "nodes.csv").write_text(nodes)
    told = ["--servers", str(tmp_path / "nodes.csv"), "--time-limit", "4"]
    command = ["audit", str(tmp_path / "log.csv"), "--column", "gpu_kinds=gpu type", *told]
    assert run(command) == 0
    assert "The price of fragmentation" in capsys.readouterr().out
    for wrong in ("n0,64,x,V100", "n0,64"):
        (tmp_path / "nodes.csv").write_text("sn,cpu,gpu,model\n" + wrong)
        assert run(command) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_servers_and_their_kinds_as_the_user_writes_them() -> None:
    said = said_capacity(None, "2x4@V100,big=8")
    assert said is not None
    assert said.servers == (("server-0", 4), ("server-1", 4), ("big", 8))
    assert said.kinds == ("V100", "V100", "")
    plain = said_capacity(None, [("a", 4), ("b", 4)])
    assert plain is not None
    assert plain.kinds == ()
    for wrong in ("2x4@", "a@V100", "a=8@V=1"):
        with pytest.raises(InputError):
            said_capacity(None, wrong)


def test_a_frame_becomes_an_instance_of_kinds() -> None:
    jobs = LOG.assign(duration=LOG["end"] - LOG["start"]).drop(columns=["start", "end"])
    instance = hs.gang(jobs, servers=[("a", 2, "V100"), ("c", 2, "P100")])
    assert instance.gpu_kinds == {"V100": 2, "P100": 2}
    assert instance.jobs[0].gpu_kinds == ("V100",)
    assert instance.jobs[2].gpu_kinds is None
    with pytest.raises(InputError, match="row 1, column gpu_kinds"):
        hs.gang(jobs, servers=[("a", 1, "V100"), ("c", 9, "P100")])

"""Baselines of the families whose jobs run over time: schedules worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.batchsched.instance import PARAMETER_SERVER
from hindsched.instances.io import parse_instance
from hindsched.online.oasis.dynamics import OasisCluster
from hindsched.online.simulator import simulate
from tests.strategies.batchsched import SLOT_SECONDS
from tests.strategies.batchsched import instance as batchsched_instance
from tests.strategies.edgecloud import instance as edge_instance
from tests.strategies.edgecloud import job as edge_job

HOURS = SLOT_SECONDS / 3600


def oasis(*jobs: tuple[Any, ...], horizon: int = 12) -> Any:
    """Four GPUs; jobs (name, arrival, most workers, slots on so many, intercept, slope)."""
    return parse_instance(
        {
            "format": "hindsched/1", "family": "oasis", "name": "four", "horizon": horizon,
            "slot_seconds": 3600, "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": [{"name": "w1", "capacity": {"gpu": 4}}],
            "ps_servers": [{"name": "p1", "capacity": {"mbps": 1}}],
            "jobs": [
                {
                    "name": name, "arrival": arrival, "epochs": slots, "chunks": workers,
                    "minibatches": 1, "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": 1},
                    "ps": {}, "utility": {"kind": "linear", "intercept": value, "slope": -slope},
                }
                for name, arrival, workers, slots, value, slope in (
                    (*each, 20, 1)[:6] for each in jobs
                )
            ],
        }
    )  # fmt: skip


def gangs(*jobs: tuple[Any, ...], sizes: Any = ([(2, 9)], [(1, 1)], [1])) -> Any:
    """batchsched with two GPUs; jobs (arrival, gang, work, more)."""
    rows = [
        {
            "arrival": a, "weight": 1, "epochs": 1, "chunks": n, "minibatches": work,
            "minibatch_slots": [1.0], "update_slots": [0], "gradient_mb": 0,
            "requested_workers": n, **dict(*more),
        }
        for a, n, work, *more in jobs
    ]  # fmt: skip
    return batchsched_instance(PARAMETER_SERVER, *sizes, rows, horizon=9)


def tenants(servers: list[int], quotas: dict[str, tuple[int, int]], *jobs: Any) -> Any:
    """astraea with servers of (workers, 1 PS); jobs (name, tenant, arrival, work, gang)."""
    return AstraeaInstance.parse(
        {
            "format": "hindsched/1", "family": "astraea", "name": "by-hand", "horizon": 40,
            "slot_seconds": 60, "utility_origin": "arrival",
            "tenants": [
                {"name": name, "worker_quota": workers, "ps_quota": ps}
                for name, (workers, ps) in quotas.items()
            ],
            "servers": [
                {"name": f"s{i}", "workers": workers, "ps": 1} for i, workers in enumerate(servers)
            ],
            "worker_bandwidth_mbps": 1, "ps_bandwidth_mbps": 100,
            "jobs": [
                {
                    "name": name, "tenant": tenant, "arrival": arrival, "epochs": work,
                    "chunks": gang, "minibatches": 1, "minibatch_slots": 1, "update_slots": 0,
                    "gradient_mb": 0, "requested_workers": gang,
                    "utility": {"kind": "linear", "slope": -1, "intercept": 100},
                }
                for name, tenant, arrival, work, gang in jobs
            ],
        }
    )  # fmt: skip


def edge(*jobs: tuple[Any, ...], cloud: int = 50) -> Any:
    """edgecloud with two workers and two PSs; jobs (name, arrival, chunks, slots, gang)."""
    servers = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p", "p"]}]
    uploads = {"a": 0, "cloud": cloud}
    return edge_instance(servers, [
        edge_job(name, arrival, chunks, slots, slots, uploads, requested_workers=gang)
        for name, arrival, chunks, slots, gang in jobs
    ])  # fmt: skip


OPEN, SURE = {"resource_guarantee": False}, {"resource_guarantee": True}
FOUR = (("j1", 1, 3, 2), ("j2", 1, 2, 3), ("j3", 1, 1, 1), ("j4", 2, 4, 1))
OWN = {"a": (2, 1), "b": (2, 1)}
AT_EDGE = (("long", 1, 2, 4, 2), ("short", 2, 1, 2, 1), ("pair", 3, 2, 1, 2))
CASES: dict[str, tuple[Any, str, dict[str, Any], dict[str, Any]]] = {
    "fifo: nobody overtakes": (
        gangs((1, 1, 3), (1, 2, 1), (2, 1, 1)), "fifo", {},
        {"j0": "1-3x1", "j1": "4-4x2", "j2": "5-5x1"},
    ),
    # j0: 2 workers x 4 slots; j1 arrives in 2 with 1 worker x 2 slots: less left, so j0 pauses.
    "tiresias": (
        gangs((1, 2, 4), (2, 1, 2)), "tiresias", {}, {"j0": "1-1x2 4-6x2", "j1": "2-3x1"},
    ),
    # As above, but j0 holds its gang for one slot in vain when it resumes in slot 4.
    "tiresias restores": (
        gangs((1, 2, 4), (2, 1, 2)), "tiresias", {"restore_slots": 1},
        {"j0": "1-1x2 5-7x2", "j1": "2-3x1"},
    ),
    # j0 leaves the first queue after 1 slot x 2 workers >= 2; j1 arrives in 2 and is in the first.
    "tiresias-l": (
        gangs((1, 2, 3), (2, 2, 1)), "tiresias-l", {"limits": [2 * HOURS]},
        {"j0": "1-1x2 3-4x2", "j1": "2-2x2"},
    ),
    # A limit is crossed and nothing else happens.
    "tiresias-l gives way": (
        gangs((1, 2, 4), (1, 2, 1)), "tiresias-l", {"limits": [4 * HOURS]},
        {"j0": "1-2x2 4-5x2", "j1": "3-3x2"},
    ),
    # Alone j0 takes both GPUs; with j1 each has one; j0's last slot of work has both again.
    "drf": (
        gangs((1, 2, 3), (2, 2, 1)), "drf", {}, {"j0": "1-1x2 2-3x1 4-4x2", "j1": "2-3x1"},
    ),
    "drf static": (
        gangs((1, 2, 3), (2, 2, 1)), "drf", {"static": True}, {"j0": "1-3x2", "j1": "4-4x2"},
    ),
    # j0 is opportunistic and takes both GPUs; j1 is guaranteed, needs one, and never waits for it.
    "antman": (
        gangs((1, 2, 3, OPEN), (2, 1, 2, SURE)), "antman", {},
        {"j0": "1-1x2 2-3x1 4-4x2", "j1": "2-3x1"},
    ),
    # j0 is the median of the jobs seen in slot 1, so it is guaranteed and does not give way.
    "antman by weight": (
        gangs((1, 2, 3), (2, 1, 2, {"weight": 5})), "antman", {"rule": "weight"},
        {"j0": "1-3x2", "j1": "4-5x1"},
    ),
    # Equal sizes: the heavier job goes first, and the light one starts when it ends.
    "wspt": (
        gangs((1, 2, 2), (1, 2, 2, {"weight": 5})), "wspt", {}, {"j0": "3-4x2", "j1": "1-2x2"},
    ),
    # One server of three workers, gangs of three, tickets 2 : 1, strides 1.5 and 3: the passes
    # after each run are 4.5, 9 | 9, 9 | 13.5: a, b, a, a, b in turn.
    "gandiva-fair": (
        tenants([3], {"a": (2, 1), "b": (1, 0)}, ("ja", "a", 0, 3, 3), ("jb", "b", 0, 2, 3)),
        "gandiva-fair", {}, {"ja": "1-1x3 3-4x3", "jb": "2-2x3 5-5x3"},
    ),
    # b1 at home on s1 in 1-4; b2 opportunistic on s0 in 1-2, preempted by a1 in 3-4, and back:
    # home is free again in slot 5.
    "hived": (
        tenants([2, 2], OWN, ("b1", "b", 0, 4, 2), ("b2", "b", 0, 3, 2), ("a1", "a", 2, 2, 2)),
        "hived", {}, {"b1": "1-4x2", "b2": "1-2x2 5-5x2", "a1": "3-4x2"},
    ),
    # Batches at 1, 2, 4, each tenant on its own server. tau = 1: a1 runs in slot 2; a2 (2 slots)
    # waits for tau = 2 and runs in 3-4; b1 arrives at 2 and is planned at tau = 4.
    "batchsche of tenants": (
        tenants([2, 2], OWN, ("a1", "a", 0, 1, 2), ("a2", "a", 0, 2, 2), ("b1", "b", 2, 1, 2)),
        "batchsche", {}, {"a1": "2-2x2", "a2": "3-4x2", "b1": "5-5x2"},
    ),
    # long runs in 1; short (2 left) beats long (3 left) in 2; pair (1 left) ties short in 3 and
    # waits, because short came first; long resumes last.
    "srtf": (
        edge(*AT_EDGE), "srtf", {"gangs": "drawn", "cloud": False},
        {"long": "1-1x1 5-7x1", "short": "2-3x1", "pair": "4-4x1"},
    ),
    "all-cloud": (edge(("j", 3, 4, 2, None), cloud=6), "all-cloud", {}, {"j": "9-10x1"}),
    # Batches end in slots 2 and 4; the first is planned on slots 3-4, the second on 5-8. No worker
    # is left there for `same`, so that the next sub-round takes it.
    "batchsche": (
        edge(("early", 1, 1, 2, None), ("late", 3, 4, 2, 2), ("same", 3, 1, 3, None)),
        "batchsche", {}, {"early": "3-4x1", "late": "5-6x1 7-8x1", "same": "9-11x1"},
    ),
}  # fmt: skip
"""Instance, rival, its settings, and the runs of each job: slots and workers."""
PAUSES_AND_CHANGES = {"(2a)", "(3f)", "(3h)", "(3l)"}


@pytest.mark.parametrize("case", CASES)
def test_schedules_by_hand(case: str) -> None:
    instance, rival, settings, expected = CASES[case]
    run = simulate(instance, rival, settings=settings)
    broken = {violation.rule for violation in run.solution.violations()}
    assert broken <= (set() if run.in_feasible_set else PAUSES_AND_CHANGES)
    rows, actual = run.solution.assignments(), {}
    for name in expected:
        runs = {run.solution.run_of(row) for row in rows[name] if "ps" not in row or "to" in row}
        spans = sorted(f"{first}-{last}x{n:g}" for first, last, n in runs if n)
        actual[name] = " ".join(spans)
    assert actual == expected
    in_one_piece = all(" " not in due for due in expected.values())
    assert in_one_piece or rival == "batchsche" or not run.in_feasible_set


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        # j2 does not fit beside j1 and blocks j3; j4 needs the whole server.
        ("fifo", [2, 5, 3, 6]),
        # Slot 1: 2, 1, 1 workers; slot 2 (j3 done, j4 new): 2, 1, 1; slot 4 (j1 done): 2, 2.
        ("drf", [3, 5, 1, 4]),
        # Slot 1 ranks j3 (2) > j2 (5/3) > j1 (1/2); slot 2 j2 (3) > j4 (5/4) > j1; slot 4 j4 > j1.
        ("rrh", [6, 3, 1, 4]),
        ("dorm", None),
    ],
)
def test_baselines_of_oasis_with_fixed_sizes(
    name: str, ends: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of its paper: every job's fixed size is its number of chunks."""
    monkeypatch.setattr(OasisCluster, "fixed_workers", lambda _, record: record.chunks)
    values = ((10, 1), (20, 2), (5, 1), (8, 1))
    jobs = [(*job, *value) for job, value in zip(FOUR, values, strict=True)]
    run = simulate(oasis(*jobs, horizon=10), name)
    actual = [run.solution.completion(job.name) for job in run.instance.jobs]
    assert run.violations == []
    if name == "dorm":  # one running job may change, and the unfairness is at most ceil(0.2 R) = 1
        assert sorted(actual) == [1, 3, 4, 5]  # type: ignore[type-var]
        assert run.report["kept"] == 0
        return
    assert actual == ends
    if name == "rrh":
        assert run.objective == pytest.approx(5 + 16 + 5 + 6)
        nets = {row["job"]: row["net"] for row in run.report["admissions"]}
        assert nets == pytest.approx({"j1": 9, "j2": 13, "j3": 2, "j4": 5})

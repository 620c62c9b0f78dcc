"""What solutions say of hand-made schedules: objectives, completions, rows, use by slot."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import build_solution
from hindsched.solutions.oasis.solution import OasisSolution
from tests.strategies.batchsched import instance as batchsched_instance
from tests.strategies.edgecloud import instance as edgecloud_instance
from tests.strategies.edgecloud import job as edgecloud_job


def row(first, last, workers, ps=None, **more):
    made = {"from": first, "to": last, "workers": workers, **more}
    return made if ps is None else {**made, "ps": ps}


# oasis: one job that arrives in slot 2 and needs 4 worker-slots, at most 3 workers at once


def oasis(**changes):
    job = {
        "name": "j", "arrival": 2, "epochs": 2, "chunks": 3, "minibatches": 1,
        "minibatch_slots": 0.65, "gradient_mb": 0, "worker": {"gpu": 1, "mbps": 2},
        "ps": {"cpu": 1, "mbps": 3},
        "utility": {"kind": "sigmoid", "priority": 10, "decay": 1, "target": 1},
    }  # fmt: skip
    worker_servers = [
        {"name": name, "capacity": {"gpu": gpus, "mbps": 20}}
        for name, gpus in (("w1", 2), ("w2", 3))
    ]
    ps_servers = [
        {"name": name, "capacity": {"cpu": cpus, "mbps": 20}}
        for name, cpus in (("p1", 2), ("p2", 4))
    ]
    return OasisInstance.parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "hand", "horizon": 5,
            "slot_seconds": 60, "resources": ["gpu", "cpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": worker_servers, "ps_servers": ps_servers,
            "jobs": [{**job, **changes}],
        }
    )  # fmt: skip


def test_oasis():
    good = [row(2, 3, {"w1": 1, "w2": 1}, {"p1": 1, "p2": 1})]
    solution = build_solution(oasis(), {"j": good})
    assert solution.violations() == []
    assert solution.completion("j") == 3
    assert solution.objective() == pytest.approx(10 / (1 + 1))
    assert solution.assignments() == {"j": good}
    frame = solution.to_frame()
    assert frame.loc[0, ["work", "worker_slots", "start"]].tolist() == [4, 4, 2]
    used = {(r["slot"], r["role"], r["resource"]): r["used"] for r in solution.usage_rows()}
    assert (used[2, "ps", "mbps"], used[3, "worker", "mbps"]) == (3, 2)
    short = build_solution(oasis(), {"j": [row(2, 2, {"w2": 3}, {"p2": 2})]})
    assert (short.completion("j"), short.objective()) == (None, 0)
    with pytest.raises(ValueError, match="shape"):
        OasisSolution(oasis(), {"j": np.zeros((4, 2))}, {})


def test_the_work_of_oasis_is_rounded_up():
    assert oasis().work.tolist() == [4]  # 2 x 3 x 1 x 0.65 = 3.9
    assert oasis(minibatch_slots=0.5 + 1e-12).work.tolist() == [4], "a hair above 3"
    assert oasis(gradient_mb=15).work.tolist() == [16]  # 2 x 15 x 8 / 2 / 60 = 2 more a mini-batch


def test_batchsched():
    job = {"arrival": 2, "weight": 3, "epochs": 1, "chunks": 2, "minibatches": 2,
           "gradient_mb": 0.5, "minibatch_slots": [0.75, 0.75]}  # fmt: skip
    cluster = [(2, 3), (2, 3)], [(1, 1), (1, 2)]
    made = batchsched_instance(
        PARAMETER_SERVER, *cluster, [1, 1], [{**job, "update_slots": [0.25, 0.25]}]
    )
    good = row(2, 3, {"s0": 2}, {"s0": 1}, worker_type="w0", ps_type="p0")
    solution = build_solution(made, {"j0": [good]})
    assert solution.violations() == []
    assert (solution.completion("j0"), solution.objective()) == (3, 3 * (2 + 2))
    assert solution.assignments() == {"j0": [good]}
    parts = [{**good, "to": 2}, {**good, "from": 3}]  # one window
    assert build_solution(made, {"j0": parts}).violations() == []
    ring = batchsched_instance(RING_ALLREDUCE, *cluster, [], [{**job, "reduce_slots": 0.25}])
    alone = row(2, 4, {"s0": 2}, worker_type="w0")
    assert build_solution(ring, {"j0": [alone]}).violations() == []


# edgecloud


def pair():
    servers = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p"]}]
    return edgecloud_instance(servers, [edgecloud_job("j", 2, 2, 3, 2, {"a": 1, "cloud": 6})])


def test_edgecloud():
    """Chunk 1 in 3-4 and 6, chunk 2 in 3-5: one preemption, completion 6, JCT 6 - 2 + 1."""
    runs = [(1, 1, 3, 4), (1, 1, 6, 6), (2, 2, 3, 5)]
    rows = [{"chunk": c, "server": "a", "worker": w, "from": f, "to": t} for c, w, f, t in runs]
    solution = build_solution(pair(), {"j": [*rows, {"ps": "a", "from": 3, "to": 6}]})
    assert solution.violations() == []
    assert solution.objective() == 5
    facts = solution.job_rows()[0]
    assert (facts["start"], facts["completion"], facts["preemptions"]) == (3, 6, 1)
    assert (facts["upload_slots"], facts["cloud_chunks"], facts["value"]) == (2, 0, 5)
    assert facts["communication_slots"] == pytest.approx(2 * (3 - 2))
    busy = {cell["slot"]: cell["used"] for cell in solution.usage_rows()}
    assert busy == {3: 2, 4: 2, 5: 1, 6: 1}


def test_all_cloud_needs_the_cloud_ps():
    rows = [{"chunk": c, "server": "cloud", "from": 8, "to": 9} for c in (1, 2)]
    good = build_solution(pair(), {"j": [*rows, {"ps": "cloud", "from": 8, "to": 9}]})
    assert good.violations() == []
    assert [good.job_rows()[0][key] for key in ("cloud_chunks", "upload_slots")] == [2, 12]
    assert good.objective() == 8
    bad = build_solution(pair(), {"j": [*rows, {"ps": "a", "from": 8, "to": 9}]})
    assert [v.rule for v in bad.violations()] == ["(2b)"]
    [facts] = bad.job_rows()
    assert (facts["start"], facts["completion"], facts["value"]) == (8, None, None)


def test_a_job_of_ten_million_slots_is_checked_without_a_number_for_each():
    slots = 10**7
    servers = [{"name": "a", "workers": ["t1"], "ps": ["p"]}]
    jobs = [edgecloud_job(name, 1, 1, slots, slots, {"a": 0, "cloud": 0}) for name in "jk"]
    tiny = edgecloud_instance(servers, jobs, {"ps": {"p": 1}})
    run = {"chunk": 1, "server": "cloud", "from": 1, "to": slots}
    held, late = ({"ps": "cloud", "from": 1, "to": end} for end in (slots, slots - 1))
    tracemalloc.start()
    both = build_solution(tiny, {"j": [run, held], "k": [run, late]}, "no-migration")
    broken_rules = {(broken.rule, broken.where) for broken in both.violations()}
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert broken_rules == {
        ("(2e)", f"job k in slot {slots}"),
        ("(2f)", f"job k in slots 1..{slots - 1} on server cloud"),
    }
    assert most < 2_000_000


# gang


def test_an_overbooked_stretch_is_named_from_its_begin_to_its_end():
    """Two GPUs: 3 in slots 3-4, 2 from 5 on."""
    spans = {"a": (1, 6), "b": (3, 4), "c": (2, 6)}
    jobs = [
        {"name": name, "submit": 0, "duration": last - first + 1, "gpus": 1}
        for name, (first, last) in spans.items()
    ]
    data = hs.generate("gang", jobs=1, seed=1).to_dict() | {"jobs": jobs, "gpus": 2, "horizon": 9}
    rows = {name: [{"from": f, "to": t, "gpus": 1}] for name, (f, t) in spans.items()}
    [broken] = hs.build_solution(hs.read(data), rows).violations()
    assert (broken.rule, broken.amount) == ("(5)", 1)
    assert (
        str(broken) == "(5): job b in slots 3..4 on server cluster lacks 1 GPUs: 3 used, at most 2"
    )


@pytest.mark.parametrize("algorithm", ["fifo", "srtf"])
def test_metrics_of_gang_by_their_definitions(algorithm):
    data = hs.generate("gang", jobs=12, seed=3, users=3, deadline_factor=[1.2, 1.5]).to_dict()
    data["slot_seconds"], data["horizon"] = 2.5, data["horizon"] + 3
    for number, job in enumerate(data["jobs"]):
        for key in ("submit", "duration", "deadline"):
            job[key] = 2.5 * (job[key] + 3 * (key != "duration"))
        if number % 4 == 0:
            del job["deadline"]
    instance = hs.read(data)
    solution = hs.simulate(instance, algorithm).solution
    jobs, rows = data["jobs"], solution.assignments()
    used = {}
    for job_rows in rows.values():
        for piece in job_rows:
            for slot in range(piece["from"], piece["to"] + 1):
                used[slot] = used.get(slot, 0) + piece["gpus"]
    assert {piece["slot"]: piece["used"] for piece in solution.usage_rows()} == used
    end = {name: 2.5 * max(piece["to"] for piece in rows[name]) for name in rows}
    start = {name: 2.5 * (min(piece["from"] for piece in rows[name]) - 1) for name in rows}
    jct = {job["name"]: end[job["name"]] - job["submit"] for job in jobs}
    due = [job for job in jobs if "deadline" in job]
    span = max(end.values()) - min(job["submit"] for job in jobs)
    slowdowns = [max(1.0, jct[job["name"]] / max(job["duration"], 10.0)) for job in jobs]
    weights = [job["weight"] for job in jobs]
    times = [jct[job["name"]] for job in jobs]
    expected = {
        "jobs": 12, "completed": 12, "makespan": max(end.values()), "mean_jct": np.mean(times),
        "mean_wait": np.mean([start[job["name"]] - job["submit"] for job in jobs]),
        "weighted_mean_jct": np.average(times, weights=weights),
        "bounded_slowdown": np.mean(slowdowns), "p95_jct": np.percentile(times, 95),
        "utilisation": 2.5 * sum(used.values()) / (instance.total_gpus * span),
        "deadlines": len(due),
        "deadlines_met": sum(end[job["name"]] <= job["deadline"] for job in due),
    }  # fmt: skip
    metrics = solution.metrics()
    assert {key: metrics[key] for key in expected} == pytest.approx(expected)
    assert [entry["user"] for entry in metrics["users"]] == sorted({job["user"] for job in jobs})
    for user in metrics["users"]:
        of_user = [job for job in jobs if job["user"] == user["user"]]
        assert user["jobs"] == len(of_user)
        assert user["mean_jct"] == pytest.approx(np.mean([jct[job["name"]] for job in of_user]))
        assert user["gpu_seconds"] == pytest.approx(sum(j["duration"] * j["gpus"] for j in of_user))

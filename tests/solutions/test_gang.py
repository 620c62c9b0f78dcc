"""The facts of gang's schedules, recomputed from their rows."""

import statistics

import numpy as np
import pytest

import hindsched as hs

INSTANCE = hs.named_instance("gang/small/j6-s1")


def test_use_by_slot_is_that_of_the_rows():
    solution = hs.simulate(INSTANCE, "fifo").solution
    expected = {}
    for rows in solution.assignments().values():
        for row in rows:
            first, last, gpus = solution.run_of(row)
            for slot in range(first, last + 1):
                expected[slot] = expected.get(slot, 0) + gpus
    assert {row["slot"]: row["used"] for row in solution.usage_rows()} == expected
    assert {row["capacity"] for row in solution.usage_rows()} == {INSTANCE.total_gpus}


@pytest.mark.parametrize("algorithm", ["fifo", "srtf"])
@pytest.mark.parametrize("seed", range(4))
def test_metrics_by_their_definitions(algorithm, seed):
    data = hs.generate("gang", jobs=12, seed=seed, users=3, deadline_factor=[1.2, 1.5]).to_dict()
    data["slot_seconds"], data["horizon"] = 2.5, data["horizon"] + 3
    for number, job in enumerate(data["jobs"]):
        for key in ("submit", "duration", "deadline"):
            job[key] = 2.5 * (job[key] + 3 * (key != "duration"))
        if number % 4 == 0:
            del job["deadline"]
    instance = hs.read(data)
    solution = hs.simulate(instance, algorithm).solution
    jobs, rows = data["jobs"], solution.assignments()
    end = {job["name"]: 2.5 * max(row["to"] for row in rows[job["name"]]) for job in jobs}
    start = {job["name"]: 2.5 * (min(row["from"] for row in rows[job["name"]]) - 1) for job in jobs}
    jct = {job["name"]: end[job["name"]] - job["submit"] for job in jobs}
    wait = {job["name"]: start[job["name"]] - job["submit"] for job in jobs}
    held = sum(2.5 * (r["to"] - r["from"] + 1) * r["gpus"] for own in rows.values() for r in own)
    found = solution.metrics()
    assert found["jobs"] == found["completed"] == len(jobs)
    assert found["makespan"] == max(end.values())
    assert found["mean_jct"] == pytest.approx(statistics.mean(jct.values()))
    assert found["mean_wait"] == pytest.approx(statistics.mean(wait.values()))
    weights = sum(job["weight"] for job in jobs)
    weighted = sum(job["weight"] * jct[job["name"]] for job in jobs) / weights
    assert found["weighted_mean_jct"] == pytest.approx(weighted)
    for percent in (50, 95, 99):
        assert found[f"p{percent}_jct"] == pytest.approx(np.percentile([*jct.values()], percent))
    slowdowns = [max(1.0, jct[job["name"]] / max(job["duration"], 10.0)) for job in jobs]
    assert found["bounded_slowdown"] == pytest.approx(statistics.mean(slowdowns))
    span = max(end.values()) - min(job["submit"] for job in jobs)
    assert found["utilisation"] == pytest.approx(held / (instance.total_gpus * span))
    due = [job for job in jobs if "deadline" in job]
    assert found["deadlines"] == len(due)
    assert found["deadlines_met"] == sum(end[job["name"]] <= job["deadline"] for job in due)
    users = {row["user"]: row for row in found["users"]}
    assert list(users) == sorted({job["user"] for job in jobs})
    for user, row in users.items():
        own = [job for job in jobs if job["user"] == user]
        assert row["jobs"] == len(own)
        assert row["mean_jct"] == pytest.approx(statistics.mean(jct[job["name"]] for job in own))
        assert row["mean_wait"] == pytest.approx(statistics.mean(wait[job["name"]] for job in own))
        assert row["gpu_seconds"] == pytest.approx(sum(j["duration"] * j["gpus"] for j in own))
    for row in solution.job_rows():
        [job] = [job for job in jobs if job["name"] == row["job"]]
        assert row["completion_seconds"] == jct[row["job"]]
        assert row["value"] == pytest.approx(job["weight"] * jct[row["job"]])


def test_an_overbooked_stretch_is_named_from_its_begin_to_its_end():
    """Two GPUs: 3 in slots 3-4, 2 from 5 on; the third job's server is named too."""
    jobs = [
        {"name": name, "submit": 0, "duration": last - first + 1, "gpus": gpus}
        for name, first, last, gpus in (("a", 1, 6, 1), ("b", 3, 4, 1), ("c", 2, 6, 1))
    ]
    data = hs.generate("gang", jobs=1, seed=1).to_dict() | {"jobs": jobs, "gpus": 2, "horizon": 9}
    rows = {
        name: [{"from": first, "to": last, "gpus": 1}]
        for name, first, last in (("a", 1, 6), ("b", 3, 4), ("c", 2, 6))
    }
    [broken] = hs.build_solution(hs.read(data), rows).violations()
    assert (broken.rule, broken.amount) == ("(5)", 1)
    assert str(broken) == "(5) at job b, slots 3..4, server cluster: lacks 1 GPUs"

"""Few rigid jobs by the order of their starts: brute force, the kernel, clock and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched import kernel
from hindsched.instances.gang.instance import GangInstance, gang_data
from hindsched.kernel.sequences import placements
from hindsched.solvers.certificates.file import verify_certificate


@st.composite
def few_jobs(draw):
    """Up to five jobs, in pools of GPUs of one kind or two, or on servers, and longer times."""
    kinds = draw(st.sampled_from(["A", "AB"]))
    servers = draw(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(kinds)), min_size=1,
                            max_size=3))  # fmt: skip
    consolidated = draw(st.booleans())
    rooms = {kind: sum(size for size, of in servers if of == kind) for _, kind in servers}
    jobs = []
    for _ in range(draw(st.integers(1, 4 if consolidated else 5))):
        names = draw(st.lists(st.sampled_from(sorted(rooms)), unique=True))
        job = {key: draw(st.integers(low, 8)) for key, low in (("submit", 0), ("duration", 1))}
        gpus = draw(st.integers(1, max(rooms[kind] for kind in names or rooms)))
        weight = draw(st.sampled_from([1, 2, 0.5, 3.25]))
        job |= {"gpus": gpus, "weight": weight} | ({"gpu_kinds": names} if names else {})
        jobs.append(job)
    return jobs, servers, consolidated, draw(st.sampled_from([1, 7, 3600]))


def instance_of(jobs, servers, consolidated, factor=1):
    """The instance with longer times; servers are GPUs, or GPUs and their kind."""
    records = [
        {**job, "name": f"j{i}"} | {key: factor * job[key] for key in ("submit", "duration")}
        for i, job in enumerate(jobs)
    ]
    if isinstance(servers[0], int):
        servers = [(size, "A") for size in servers]
    listed = [{"name": f"s{i}", "gpus": n, "gpu_kind": k} for i, (n, k) in enumerate(servers)]
    placement = "consolidated" if consolidated else "pool"
    return GangInstance.parse(gang_data("few", records, servers=listed, placement=placement))


def brute_force(jobs, servers, consolidated=False):
    """Least cost: all orders and placements, each job as early as it fits."""
    if not consolidated:
        kinds = {kind for _, kind in servers}
        servers = [(sum(n for n, of in servers if of == kind), kind) for kind in kinds]
    sizes = [size for size, _ in servers]

    def places(job):
        gpus, kinds = job["gpus"], job.get("gpu_kinds") or {kind for _, kind in servers}
        mine = [[h for h, (_, kind) in enumerate(servers) if kind == k] for k in kinds]
        if gpus <= max(sizes[h] for on in mine for h in on):
            return [{h: gpus} for on in mine for h in on if sizes[h] >= gpus]
        found = []
        for on in mine:
            for whole in (w for count in range(1, len(on) + 1) for w in combinations(on, count)):
                held = {h: sizes[h] for h in whole}
                rest = gpus - sum(held.values())
                found += [held] * (rest == 0)
                found += [{**held, h: rest} for h in on if h not in held and 0 < rest < sizes[h]]
        return found

    end = max(job["submit"] for job in jobs) + sum(job["duration"] for job in jobs)
    best = [np.inf]

    def place(left, used, cost):
        if not left:
            best[0] = min(best[0], cost)
        for job in left if cost < best[0] else ():
            for held in places(job):
                start = job["submit"]
                while any(
                    used[h][start : start + job["duration"]].max() + n > sizes[h]
                    for h, n in held.items()
                ):
                    start += 1
                after = [row.copy() for row in used]
                for h, n in held.items():
                    after[h][start : start + job["duration"]] += n
                spent = job["weight"] * (start + job["duration"] - job["submit"])
                place([other for other in left if other is not job], after, cost + spent)

    place(jobs, [np.zeros(end, dtype=int) for _ in sizes], 0)
    return best[0]


@given(few_jobs())
def test_the_optimum_is_that_of_brute_force_and_the_kernel_proves_no_more(drawn):
    jobs, servers, consolidated, factor = drawn
    instance = instance_of(*drawn)
    result = hs.solve(instance, time_limit=20)
    best = brute_force(jobs, servers, consolidated) * factor
    assert result.objective == result.bound == best
    file = result.certificate.to_dict()
    assert kernel.bound(instance.to_dict(), file, kernel.LIMITS).low == result.bound
    assert verify_certificate(instance, json.loads(json.dumps(file))).bound == result.bound
    forged = {**file, "kind": "sequences", "bound": result.bound + factor / 4}
    forged |= {"prices": [{"started": 0, "gpus": []}]} if file["kind"] != "sequences" else {}
    with pytest.raises(kernel.RefusedFile, match="a schedule costs less"):
        kernel.bound(instance.to_dict(), {k: v for k, v in forged.items() if k != "layout"})


def log_normal(jobs, seed):
    """Jobs in seconds on 8 GPUs: median 25 minutes, one in five minutes."""
    draw = np.random.default_rng(seed)
    submit = np.floor(np.cumsum(draw.exponential(300, jobs)))
    duration = np.maximum(1, np.rint(draw.lognormal(np.log(1500), 1.0, jobs)))
    gpus = draw.choice([1, 2, 4, 8], jobs, p=[0.4, 0.25, 0.2, 0.15])
    return [
        {"submit": int(s), "duration": int(p), "gpus": int(g), "weight": 1}
        for s, p, g in zip(submit - submit[0], duration, gpus, strict=True)
    ]


def test_prices_shorten_the_enumeration_and_do_not_decide_what_is_true():
    instance = instance_of(log_normal(16, 1), [8], False)
    result = hs.solve(instance, time_limit=60)
    file = result.certificate.to_dict()
    assert (result.status, file["kind"]) == ("optimal", "sequences")
    kernel.bound(instance.to_dict(), file, {"steps": 400_000})
    bare = {**file, "prices": [{"started": 0, "gpus": []}]}
    with pytest.raises(kernel.RefusedFile, match="too much work"):
        kernel.bound(instance.to_dict(), bare, {"steps": 400_000})
    assert kernel.bound(instance.to_dict(), bare).low == result.objective


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"prices": [{"started": 1, "gpus": []}]}, "started must rise from 0"),
        ({"prices": [{"gpus": []}]}, "unknown keys"),
        ({"formulation": "preemptive"}, "only of completions of jobs in one piece"),
        ({"layout": "placements"}, "layout: unknown"),
    ],
)
def test_a_file_that_is_wrong_is_refused(change, rule):
    instance = instance_of(log_normal(4, 3), [8], False)
    file = hs.solve(instance, time_limit=20).certificate.to_dict()
    file = {**file, "kind": "sequences", "prices": [{"started": 0, "gpus": []}], **change}
    with pytest.raises(kernel.RefusedFile, match=rule):
        kernel.bound(instance.to_dict(), file)


UGLY = """
import resource, time
import numpy as np, pandas as pd
import hindsched as hs
from hindsched.analysis.audit.gang.audit import compile_audit
compile_audit()
for seed in range(6):
    draw = np.random.default_rng(seed)
    jobs = int(draw.integers(1, 41))
    submit = np.round(np.cumsum(draw.exponential(10.0 ** draw.integers(0, 5), jobs)), 3)
    length = np.round(draw.lognormal(draw.integers(1, 9), 1.5, jobs) + 0.001, 3)
    gpus = draw.integers(1, 9, jobs)
    ends, log = 0.0, []
    for i in range(jobs):
        start = round(max(submit[i], ends), 3)
        ends = round(start + length[i], 3)
        log.append((i, submit[i], start, ends, gpus[i]))
    log = pd.DataFrame(log, columns=["job", "submit", "start", "end", "gpus"])
    begin = time.perf_counter()
    kind = ("non-preemptive", "preemptive", "elastic")[seed % 3]
    verdict = hs.audit(log, gpus=8, time_limit=3, time_step=0.001, formulation=kind)
    assert verdict.is_possible, verdict
    assert time.perf_counter() - begin < 13, (seed, time.perf_counter() - begin)
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2e6
"""


def test_logs_with_ugly_times_are_judged_within_time_and_memory():
    subprocess.run([sys.executable, "-c", UGLY], check=True, timeout=600)


def test_three_jobs_of_a_log_in_seconds(tmp_path: Path):
    log = tmp_path / "log.csv"
    log.write_text(
        "job,submit,start,end,gpus\n"
        "a,2024-05-06 09:00:00,2024-05-06 09:10:00,2024-05-06 10:00:00,2\n"
        "b,2024-05-06 09:05:00,2024-05-06 09:10:00,2024-05-06 11:00:00,4\n"
        "c,2024-05-06 09:06:00,2024-05-06 10:00:00,2024-05-06 12:00:00,6\n"
    )
    verdict = hs.audit(log, gpus=8, time_zone="CET")
    assert verdict.certificate.bound == 3 * 7780
    assert "better than the best possible" in verdict.sentence()


def test_the_cheapest_sequence_of_some_jobs_is_not_always_the_one_to_go_on_with():
    """Dropping dearer ones that free their GPUs sooner would prove 37."""
    jobs = [
        {"submit": submit, "duration": duration, "gpus": gpus, "weight": 1}
        for submit, duration, gpus in ((0, 5, 2), (4, 6, 2), (1, 3, 2), (2, 4, 3))
    ]
    instance = instance_of(jobs, [3], False)
    result = hs.solve(instance, time_limit=20)
    assert result.objective == result.bound == brute_force(jobs, [(3, "A")]) == 36
    file = {**result.certificate.to_dict(), "kind": "sequences"}
    file["prices"] = [{"started": 0, "gpus": []}]
    assert kernel.bound(instance.to_dict(), file).low == 36
    with pytest.raises(kernel.RefusedFile, match="a schedule costs less"):
        kernel.bound(instance.to_dict(), {**file, "bound": 37})


@pytest.mark.parametrize("jobs", [3, 8])
def test_so_few_jobs_are_proven_whatever_time_is_left(jobs):
    """A loaded machine, or one that loads kernels, may use up a limit before."""
    result = hs.solve(instance_of(log_normal(jobs, 5), [8], False), time_limit=1e-6)
    assert (result.status, result.method) == ("optimal", "sequences")
    assert result.certified_bound == result.objective


@given(st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=6), st.integers(1, 30))
def test_placements_are_all_whole_servers_and_part_of_one(sizes, gpus):
    listed = list(placements(gpus, tuple(enumerate(sizes)), max(sizes)))
    if gpus <= max(sizes):
        assert set(listed) == {((at, gpus),) for at, size in enumerate(sizes) if size >= gpus}
        return
    expected = set()
    for count in range(1, len(sizes) + 1):
        for whole in combinations(range(len(sizes)), count):
            base = tuple((at, sizes[at]) for at in whole)
            rest = gpus - sum(sizes[at] for at in whole)
            if rest == 0:
                expected.add(base)
            others = set(range(len(sizes))) - set(whole)
            expected |= {(*base, (at, rest)) for at in others if sizes[at] > rest > 0}
    assert len(listed) == len(set(listed))
    assert set(listed) == expected


def test_many_servers_are_not_gone_through():
    """A job of 64 GPUs stands on 8 of 64 servers; to list fewer first would take minutes."""
    assert len(list(islice(placements(64, tuple(enumerate([8] * 64)), 8), 65))) == 65
    jobs = [{"submit": 0, "duration": 100, "gpus": g, "weight": 1} for g in (64, 8)]
    instance = instance_of(jobs, [8] * 64, True)
    file = hs.solve(instance, time_limit=5).certificate.to_dict()
    forged = {**file, "kind": "sequences", "prices": [{"started": 0, "gpus": []}]}
    del forged["layout"]
    with pytest.raises(hs.InputError, match="too much work"):
        verify_certificate(instance, forged)


def test_the_sense_is_the_family_s():
    instance = instance_of(log_normal(4, 3), [8], False)
    file = hs.solve(instance, time_limit=20).certificate.to_dict()
    with pytest.raises(hs.InputError, match="must be min"):
        verify_certificate(instance, {**file, "kind": "sequences", "sense": "max"})

"""The edgecloud checker against a slot-by-slot reading of (2), on decisions that break it."""

from __future__ import annotations

import math
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.solutions.base import build_solution
from hindsched.solvers.door.api import solve
from tests.strategies.edgecloud import instance, job, tiny_instances

FORMULATIONS = ("no-migration", "literal")


def broken_by_hand(tiny, rows, formulation):
    """Names of the constraints that rows break, slot by slot, straight from the equations."""
    broken = set()
    stores = {}
    loads, ps_loads, cloud = {}, {}, {}
    for one in tiny.jobs:
        given_ = rows.get(one.name, [])
        runs = [row for row in given_ if "chunk" in row]
        holds = [row for row in given_ if "ps" in row]
        places = {row["server"] for row in runs}
        together = places == {"cloud"} and all(row["ps"] == "cloud" for row in holds)
        p = tiny_slots(tiny, one, together)
        lanes, homes, work = {}, {}, {}
        for row in runs:
            server = next((s for s in tiny.servers if s.name == row["server"]), None)
            if server is not None and server.workers[row["worker"] - 1] != one.worker_type:
                broken.add("(2a)")
            if server is None and (tiny.cloud.workers or {}).get(one.worker_type, 1) == 0:
                broken.add("(2a)")
            home = (row["server"], row.get("worker"))
            if homes.setdefault(row["chunk"], home) != home and formulation != "literal":
                broken.add("no migration")
            for t in range(row["from"], row["to"] + 1):
                work[row["chunk"]] = work.get(row["chunk"], 0) + 1
                lanes[row["chunk"], t] = lanes.get((row["chunk"], t), 0) + 1
                if t < one.arrival + one.upload_slots[row["server"]]:
                    broken.add("(2i)")
                if server is not None:
                    loads[home, t] = loads.get((home, t), 0) + 1
                else:
                    key = (one.worker_type, t)
                    cloud[key] = cloud.get(key, 0) + 1
        if any(n > 1 for n in lanes.values()):
            broken.add("(2c)")
        total = sum(work.values())
        short = any(work.get(c, 0) < p for c in range(1, one.chunks + 1))
        if (total < one.chunks * p) if formulation == "literal" else short:
            broken.add("(2b)")
        if formulation != "literal":
            for chunk in homes:
                slots = sorted(t for c, t in lanes if c == chunk)
                if homes[chunk][0] == "cloud" and slots[-1] - slots[0] + 1 > len(set(slots)):
                    broken.add("no preemption in the cloud")
        held = {}
        for row in holds:
            if row["from"] < one.arrival:
                broken.add("(2i)")
            for t in range(row["from"], row["to"] + 1):
                held[t] = held.get(t, 0) + 1
                ps_loads[row["ps"], one.ps_type, t] = (
                    ps_loads.get((row["ps"], one.ps_type, t), 0) + 1
                )
        if any(held.get(t, 0) != 1 for _, t in lanes):
            broken.add("(2e)")
        end = max((t for _, t in lanes), default=0)
        for server in tiny.servers:
            here = {row["chunk"] for row in runs if row["server"] == server.name}
            for t in range(one.arrival, end + 1):
                gb = len(here) * (one.chunk_gb or 0)
                stores[server.name, t] = stores.get((server.name, t), 0) + gb
    if any(n > 1 for n in loads.values()):
        broken.add("(2d)")
    limits = tiny.cloud.workers or {}
    if any(n > limits.get(kind, math.inf) for (kind, _), n in cloud.items()):
        broken.add("(2d)")
    for (place, kind, _), n in ps_loads.items():
        server = next((s for s in tiny.servers if s.name == place), None)
        have = (
            (tiny.cloud.ps or {}).get(kind, math.inf) if server is None else server.ps.count(kind)
        )
        if n > have:
            broken.add("(2f)")
    for server in tiny.servers:
        if server.storage_gb is not None and formulation != "literal":
            used = max((gb for (s, _), gb in stores.items() if s == server.name), default=0)
            if used > server.storage_gb + 1e-9:
                broken.add("(7b)")
    return broken


def tiny_slots(tiny, one, together):
    exact = one.epochs * one.minibatches * (
        one.minibatch_slots + one.update_slots
        + (0 if together else 2 * one.gradient_mb * 8 / one.bandwidth_mbps / tiny.slot_seconds)
    )  # fmt: skip
    return max(1, math.ceil(exact - 1e-9))


def shaken(tiny, rows, seed):
    """A copy of good rows with some of them moved, cut, dropped, doubled or sent elsewhere."""
    draws = random.Random(seed)
    workers = [(s.name, n) for s in tiny.servers for n in range(1, len(s.workers) + 1)]
    found = {}
    for name, given_ in rows.items():
        mine = [dict(row) for row in given_]
        for row in mine:
            if draws.random() < 0.15:
                shift = draws.choice([-1, 1, 2])
                row["from"] = max(1, row["from"] + shift)
                row["to"] = max(row["from"], row["to"] + shift)
            if draws.random() < 0.1:
                row["to"] += 1
        for row in list(mine):
            if "chunk" in row and row["to"] > row["from"] and draws.random() < 0.3:
                # Cut in two; the second part goes on elsewhere, or a slot later.
                rest = {**row, "from": row["from"] + 1}
                row["to"] = row["from"]
                if draws.random() < 0.5:
                    rest["from"], rest["to"] = rest["from"] + 1, rest["to"] + 1
                else:
                    rest["server"], rest["worker"] = draws.choice(workers)
                mine.append(rest)
        if mine and draws.random() < 0.2:
            mine.pop(draws.randrange(len(mine)))
        if mine and draws.random() < 0.1:
            row = dict(draws.choice(mine))
            if "ps" in row or "worker" not in row:
                row["from"], row["to"] = row["to"] + 1, row["to"] + 2
            mine.append(row)
        found[name] = mine
    return found


@given(tiny_instances(storage=True, finite_ps=True), st.integers(0, 10**6))
def test_the_checker_finds_what_the_definition_forbids(tiny, seed):
    good = solve(tiny, "milp").solution
    if good is None:
        return
    rows = shaken(tiny, good.assignments(), seed) if seed % 4 else good.assignments()
    for formulation in FORMULATIONS:
        found = {v.rule for v in build_solution(tiny, rows, formulation).violations()}
        expected = broken_by_hand(tiny, rows, formulation)
        if formulation == "literal":
            found -= {"(7b)"}
        assert found == expected
        assert all(v.amount > 0 for v in build_solution(tiny, rows, formulation).violations())


def pair():
    servers = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p"]}]
    return instance(servers, [job("j", 2, 2, 3, 2, {"a": 1, "cloud": 6})])


def test_objective_and_metrics_by_hand():
    """Chunk 1 in 3-4 and 6, chunk 2 in 3-5: one preemption, completion 6, JCT 6 - 2 + 1."""
    runs = [(1, 1, 3, 4), (1, 1, 6, 6), (2, 2, 3, 5)]
    rows = [{"chunk": c, "server": "a", "worker": w, "from": f, "to": t} for c, w, f, t in runs] + [
        {"ps": "a", "from": 3, "to": 6}
    ]
    solution = build_solution(pair(), {"j": rows})
    assert solution.violations() == []
    assert solution.objective() == 5
    row = solution.job_rows()[0]
    assert (row["start"], row["completion"], row["preemptions"]) == (3, 6, 1)
    assert (row["upload_slots"], row["cloud_chunks"], row["value"]) == (2, 0, 5)
    assert row["communication_slots"] == pytest.approx(2 * (3 - 2))
    busy = {row["slot"]: row["used"] for row in solution.usage_rows()}
    assert busy == {3: 2, 4: 2, 5: 1, 6: 1}


def test_work_that_moves_is_uploaded_to_every_server():
    """One lane for two chunks, first on a (1 slot a chunk), then on b (2 slots): 2 x 1 + 2 x 2."""
    servers = [{"name": n, "workers": ["t1"], "ps": ["p"]} for n in ("a", "b")]
    tiny = instance(servers, [job("j", 2, 2, 3, 2, {"a": 1, "b": 2, "cloud": 6})])
    lane = {"chunk": 1, "worker": 1}
    rows = [
        {**lane, "server": "a", "from": 3, "to": 6},
        {**lane, "server": "b", "from": 7, "to": 8},
        {"ps": "a", "from": 3, "to": 8},
    ]
    solution = build_solution(tiny, {"j": rows}, "literal")
    assert solution.violations() == []
    assert solution.job_rows()[0]["upload_slots"] == 6


def test_all_cloud_needs_the_cloud_ps():
    rows = [{"chunk": c, "server": "cloud", "from": 8, "to": 9} for c in (1, 2)]
    good = build_solution(pair(), {"j": [*rows, {"ps": "cloud", "from": 8, "to": 9}]})
    assert good.violations() == []
    assert [good.job_rows()[0][key] for key in ("cloud_chunks", "upload_slots")] == [2, 12]
    assert good.objective() == 8
    bad = build_solution(pair(), {"j": [*rows, {"ps": "a", "from": 8, "to": 9}]})
    assert [v.rule for v in bad.violations()] == ["(2b)"]
    [row] = bad.job_rows()
    assert (row["start"], row["completion"], row["value"]) == (8, None, None)
    assert bad.completion("j") is None


def test_a_job_of_ten_million_slots_is_checked_without_a_number_for_each():
    slots = 10**7
    servers = [{"name": "a", "workers": ["t1"], "ps": ["p"]}]
    jobs = [job(name, 1, 1, slots, slots, {"a": 0, "cloud": 0}) for name in "jk"]
    tiny = instance(servers, jobs, {"ps": {"p": 1}})
    ends = {"from": 1, "to": slots}
    run = {"chunk": 1, "server": "cloud", **ends}
    held = {"ps": "cloud", **ends}
    late = {"ps": "cloud", "from": 1, "to": slots - 1}
    tracemalloc.start()
    both = build_solution(tiny, {"j": [run, held], "k": [run, late]}, "no-migration")
    found = [(broken.rule, broken.where) for broken in both.violations()]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ("(2e)", f"job k, slot {slots}") in found
    assert ("(2f)", f"job k, slots 1..{slots - 1}, server cloud") in found
    assert len(found) == 2
    assert most < 2_000_000

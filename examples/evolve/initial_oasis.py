"""A first program of oasis for a search: one job after the other, if it is still worth it.

It speaks the messages of docs/reference/protocol.md and needs nothing but Python.
"""

import json
import math
import sys

# EVOLVE-BLOCK-START
WIDTH = 1.0
WORTH = 0.0
GPU_SLOTS = 0.0


def order(job):
    """The lowest is first among those that arrive together."""
    return job["epochs"] ** GPU_SLOTS / job["utility"].get("priority", 1)


def is_worth(job, last):
    """Whether a job that ends in a slot is served: by its share of the highest utility."""
    told = job["utility"]
    late = told.get("decay", 0) * (last - job["arrival"] - told.get("target", 0))
    return 1 / (1 + math.exp(min(late, 50))) >= 0.1 * WORTH


# EVOLVE-BLOCK-END


def fit(capacity, demand):
    """How many units of a demand a server holds."""
    needs = [(capacity.get(name, 0), amount) for name, amount in demand.items() if amount > 0]
    return min((int(have / amount) for have, amount in needs), default=10**9)


def plan(job, cluster, first):
    """Run a job alone from slot `first` on: as many workers as fit, and PSs for their bandwidth."""
    wide = cluster["bandwidth_resource"]
    for_workers = {s["name"]: fit(s["capacity"], job["worker"]) for s in cluster["worker_servers"]}
    for_ps = {s["name"]: fit(s["capacity"], job["ps"]) for s in cluster["ps_servers"]}
    most = min(job["chunks"], sum(for_workers.values()))
    workers = min(most, max(1, round(WIDTH * most)))
    while workers > 0:
        num_ps = max(1, math.ceil(workers * job["worker"][wide] / job["ps"][wide]))
        if num_ps <= min(workers, sum(for_ps.values())):
            break
        workers -= 1
    else:
        return None, first
    exchange = 2 * job["gradient_mb"] * 8 / job["worker"][wide] / cluster["slot_seconds"]
    step = job["minibatch_slots"] + exchange
    work = math.ceil(job["epochs"] * job["chunks"] * job["minibatches"] * step)
    last = first + math.ceil(work / workers) - 1
    if last > cluster["horizon"]:
        return None, first
    placed = {"workers": share(workers, for_workers), "ps": share(num_ps, for_ps)}
    return {"from": first, "to": last, **placed}, last + 1


def share(count, room):
    """Put so many units on servers, the first first."""
    placed = {}
    for name, most in room.items():
        if count > 0 and most > 0:
            placed[name] = min(count, most)
            count -= placed[name]
    return placed


def answer(message):
    """Say something and make sure that it leaves."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


cluster, free_from = {}, 1
for line in sys.stdin:
    told = json.loads(line)
    if told["type"] == "hello":
        answer({"type": "hello", "protocol": 1})
    elif told["type"] == "start":
        cluster = told["cluster"]
        answer({"type": "ready"})
    elif told["type"] == "step":
        rows, rejected = {}, []
        for job in sorted(told["arrivals"], key=order):
            row, after = plan(job, cluster, max(free_from, told["slot"]))
            if row is None or not is_worth(job, row["to"]):
                rejected.append(job["name"])
            else:
                rows[job["name"]], free_from = [row], after
        answer(
            {"type": "decision", "slot": told["slot"], "assignments": rows, "rejected": rejected}
        )

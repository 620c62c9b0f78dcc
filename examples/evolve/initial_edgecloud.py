"""A first program of edgecloud for a search: every chunk where it ends first, by a formula.

It speaks the messages of docs/reference/protocol.md and needs nothing but Python. The parameter
server of every job is in the cloud, which has as many as are asked for.
"""

import json
import math
import sys

# EVOLVE-BLOCK-START
EDGE = 3.0
WAIT = 1.0


def cost(start, work, arrival, is_edge):
    """The lowest is chosen, of workers at the edge and of the cloud."""
    return WAIT * (start - arrival) + work + (EDGE if is_edge else 0.0)


# EVOLVE-BLOCK-END


def places(job, cluster, free):
    """Where a chunk may run: server, worker of its type, first slot."""
    upload, cloud = job["upload_slots"], cluster["cloud"]["name"]
    yield cloud, None, job["arrival"] + upload[cloud]
    for server in cluster["servers"]:
        same = [k for k, kind in enumerate(server["workers"]) if kind == job["worker_type"]]
        for number, place in enumerate(same, 1):
            ready = job["arrival"] + upload[server["name"]]
            yield server["name"], (number, place), max(ready, free.get((server["name"], place), 1))


def plan(job, cluster, free):
    """Rows of a job: a row a chunk, and its parameter server's."""
    each = job["minibatch_slots"] + job["update_slots"]
    work = max(1, math.ceil(job["epochs"] * job["minibatches"] * each))
    rows = []
    for chunk in range(1, job["chunks"] + 1):
        server, worker, first = min(
            places(job, cluster, free),
            key=lambda found: cost(found[2], work, job["arrival"], found[1] is not None),
        )
        row = {"chunk": chunk, "server": server, "from": first, "to": first + work - 1}
        if worker is not None:
            row["worker"] = worker[0]
            free[server, worker[1]] = first + work
        rows.append(row)
    ends = {"from": min(row["from"] for row in rows), "to": max(row["to"] for row in rows)}
    return [*rows, {"ps": cluster["cloud"]["name"], **ends}]


def answer(message):
    """Say something and make sure that it leaves."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


cluster, free = {}, {}
for line in sys.stdin:
    told = json.loads(line)
    if told["type"] == "hello":
        answer({"type": "hello", "protocol": 1})
    elif told["type"] == "start":
        cluster = told["cluster"]
        answer({"type": "ready"})
    elif told["type"] == "step":
        rows = {job["name"]: plan(job, cluster, free) for job in told["arrivals"]}
        answer({"type": "decision", "slot": told["slot"], "assignments": rows})

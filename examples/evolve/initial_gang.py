"""A first program of gang for a search: who is first by a formula starts, if it fits.

It speaks the messages of docs/reference/protocol.md and needs nothing but Python.
"""

import json
import sys

# EVOLVE-BLOCK-START
GPUS = 0.0
DURATION = 0.0
WEIGHT = 0.0
SKIP = 0.0


def order(job):
    """The lowest is first; of equals who came first."""
    return job["gpus"] ** GPUS * job["duration"] ** DURATION / job["weight"] ** WEIGHT


def may_pass(job, first):
    """Whether a job may start although one before it does not fit."""
    return SKIP > 0 or job["duration"] <= -SKIP * first["duration"]


# EVOLVE-BLOCK-END


def answer(message):
    """Say something and make sure that it leaves."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


free, waiting, held = 0, [], {}
for line in sys.stdin:
    told = json.loads(line)
    if told["type"] == "hello":
        answer({"type": "hello", "protocol": 1})
    elif told["type"] == "start":
        free = told["cluster"]["gpus"]
        answer({"type": "ready"})
    elif told["type"] == "step":
        for event in told["events"]:
            if event["type"] == "job-completed":
                free += held.pop(event["job"])
        waiting = sorted(waiting + told["arrivals"], key=order)
        rows, blocked = {}, None
        for job in waiting:
            if job["gpus"] <= free and (blocked is None or may_pass(job, blocked)):
                rows[job["name"]] = [{"from": told["slot"], "gpus": job["gpus"]}]
                held[job["name"]] = job["gpus"]
                free -= job["gpus"]
            elif blocked is None:
                blocked = job
        waiting = [job for job in waiting if job["name"] not in rows]
        answer({"type": "decision", "slot": told["slot"], "assignments": rows})

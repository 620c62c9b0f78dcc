"""A scheduler of gang in a process of its own: whoever fits starts, in order of submission.

Start it through the program that judges it: ``hindsched simulate instance.json --algorithm
"exec:python examples/schedulers/first_fit.py" --set knows_durations=false``. It begins runs without
knowing how long they take and is told when they end; the messages are described in
``docs/reference/protocol.md``.
"""

import json
import sys


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
        waiting += [(job["name"], job["gpus"]) for job in told["arrivals"]]
        rows = {}
        for name, gpus in waiting:
            if gpus <= free:
                rows[name] = [{"from": told["slot"], "gpus": gpus}]
                held[name] = gpus
                free -= gpus
        waiting = [(name, gpus) for name, gpus in waiting if name not in rows]
        answer({"type": "decision", "slot": told["slot"], "assignments": rows})

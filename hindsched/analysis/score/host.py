"""In the sandbox: a class of a Python file answers the protocol's messages on standard input.

``python host.py LIBRARY FILE CLASS``: the other end of `hindsched.online.external.External`.
"""

import json
import os
import sys
from typing import Any, get_args


def main() -> None:
    """Answer every message until the input ends."""
    library, file, name = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the class prints is no answer
    sys.path.insert(0, library)
    from hindsched.online.registry import load_class

    algorithm, started = load_class(file, name)(), False
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "hello":
            said: dict[str, Any] = {"type": "hello", "protocol": 1}
        elif not started:
            cluster, started = _start(algorithm, message), True
            said = {"type": "ready"}
        else:
            said = _step(algorithm, cluster, message)
        answers.write(json.dumps(said, default=_plain) + "\n")
        answers.flush()


def _start(algorithm: Any, told: dict[str, Any]) -> Any:
    from hindsched.instances.io import parse_instance
    from hindsched.online.protocol import Environment

    cluster = parse_instance(told["cluster"])
    environment = Environment(cluster, told["estimates"], told["seed"], told["formulation"])
    algorithm.start(environment)
    return cluster


def _step(algorithm: Any, cluster: Any, told: dict[str, Any]) -> dict[str, Any]:
    job_class = get_args(type(cluster).model_fields["jobs"].annotation)[0]
    slot, events = told["slot"], told["events"]
    if ended := tuple(each["job"] for each in events if each["type"] == "job-completed"):
        algorithm.completed(slot, ended)
    news = {each["job"]: {key: value for key, value in each.items() if key not in ("type", "job")}
            for each in events if each["type"] == "job-news"}  # fmt: skip
    if news:
        algorithm.told(slot, news)
    arrivals = tuple(job_class.model_validate(job) for job in told["arrivals"])
    decision = algorithm.step(slot, arrivals)
    return {
        "type": "decision",
        "slot": slot,
        "assignments": {job: list(rows) for job, rows in decision.assignments.items()},
        "admitted": list(decision.admitted),
        "rejected": list(decision.rejected),
        "wake": algorithm.wake_up(),
    }


def _plain(value: Any) -> Any:
    """A number of numpy's as Python's own."""
    return value.item()


if __name__ == "__main__":
    main()

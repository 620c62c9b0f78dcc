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
    from hindsched.instances.io import parse_instance
    from hindsched.online.protocol import Environment
    from hindsched.online.registry import load_class

    algorithm, job_class = load_class(file, name)(), None
    for line in sys.stdin:
        told = json.loads(line)
        said: dict[str, Any] = {"type": "hello", "protocol": 1}
        if told["type"] == "start":
            cluster = parse_instance(told["cluster"])
            job_class = get_args(type(cluster).model_fields["jobs"].annotation)[0]
            rest = told["estimates"], told["seed"], told["formulation"]
            algorithm.start(Environment(cluster, *rest))
            said = {"type": "ready"}
        elif told["type"] == "step":
            said = _step(algorithm, job_class, told)
        answers.write(json.dumps(said, default=lambda number: number.item()) + "\n")
        answers.flush()


def _step(algorithm: Any, job_class: Any, told: dict[str, Any]) -> dict[str, Any]:
    slot, ended, news = told["slot"], list[str](), dict[str, Any]()
    for event in told["events"]:
        kind, job = event.pop("type"), event.pop("job")
        if kind == "job-completed":
            ended.append(job)
        elif kind == "job-news":
            news[job] = event
    if ended:
        algorithm.completed(slot, tuple(ended))
    if news:
        algorithm.told(slot, news)
    arrivals = tuple(_record(job_class, job) for job in told["arrivals"])
    decision = algorithm.step(slot, arrivals)
    return {
        "type": "decision",
        "slot": slot,
        "assignments": {job: list(rows) for job, rows in decision.assignments.items()},
        "admitted": list(decision.admitted),
        "rejected": list(decision.rejected),
        "wake": algorithm.wake_up(),
    }


def _record(job_class: Any, told: dict[str, Any]) -> Any:
    """A job as far as it is told: each field is read, and no rule asked of the whole."""
    from pydantic import TypeAdapter

    kinds = {name: job_class.model_fields[name].rebuild_annotation() for name in told}
    read = {name: TypeAdapter(kinds[name]).validate_python(told[name]) for name in told}
    return job_class.model_construct(**read)


if __name__ == "__main__":
    main()

"""One server of four GPUs and jobs that send no gradients: schedules that can be worked by hand."""

from __future__ import annotations

from typing import Any

from hindsched.instances.io import parse_instance

FOUR = (("j1", 1, 3, 2), ("j2", 1, 2, 3), ("j3", 1, 1, 1), ("j4", 2, 4, 1))


def elastic_job(name: str, arrival: int, workers: int, slots: int) -> Any:
    """A job of workers x slots worker-slots."""
    return {
        "name": name, "arrival": arrival, "epochs": slots, "chunks": workers, "minibatches": 1,
        "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": 1}, "ps": {},
        "utility": {"kind": "linear", "slope": -1, "intercept": 20},
    }  # fmt: skip


def server_of_four(*jobs: tuple[str, int, int, int]) -> Any:
    """An oasis instance of jobs (name, arrival, most workers, slots on so many); `FOUR` if none."""
    return parse_instance(
        {
            "format": "hindsched/1", "family": "oasis", "name": "four", "horizon": 12,
            "slot_seconds": 3600, "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": [{"name": "w1", "capacity": {"gpu": 4}}],
            "ps_servers": [{"name": "p1", "capacity": {"mbps": 1}}],
            "jobs": [elastic_job(*each) for each in jobs or FOUR],
        }
    )  # fmt: skip


def completions(result: Any) -> list[int | None]:
    """Completion of every job in the file's order."""
    return [result.solution.completion(record.name) for record in result.instance.jobs]

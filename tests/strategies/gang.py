"""Tiny gang instances: few jobs, few GPUs, one pool or two servers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hindsched.instances.gang.instance import GangInstance, gang_data


@st.composite
def tiny_instances(draw: st.DrawFn, most_jobs: int = 3, longest: int = 3) -> GangInstance:
    """Instances whose optimum can be enumerated; many of them contended, some with ties."""
    cluster: dict[str, Any] = {"gpus": draw(st.integers(1, 3))}
    room = cluster["gpus"]
    if draw(st.integers(0, 3)) == 0:
        sizes = draw(st.sampled_from([(1, 1), (2, 1), (2, 2)]))
        room = sum(sizes)
        servers = [{"name": f"s{h}", "gpus": size} for h, size in enumerate(sizes)]
        cluster = {"servers": servers, "placement": "consolidated"}
    seconds = draw(st.sampled_from([1, 1, 1, 0.5, 60]))
    jobs = []
    for number in range(draw(st.integers(2, most_jobs))):
        submit, duration = draw(st.integers(0, 2)), draw(st.integers(1, longest))
        job = {
            "name": f"j{number}",
            "submit": submit * seconds,
            "duration": duration * seconds,
            "gpus": draw(st.integers(1, min(room, 3))),
            "weight": draw(st.sampled_from([1, 1, 2, 5, 0.3])),
        }
        if draw(st.booleans()):
            job["deadline"] = (submit + duration + draw(st.integers(-1, 3))) * seconds
        if draw(st.integers(0, 3)) == 0:
            job["most_gpus"] = draw(st.integers(job["gpus"], room))
        jobs.append(job)
    return GangInstance.parse(gang_data("tiny", jobs, slot_seconds=seconds, **cluster))

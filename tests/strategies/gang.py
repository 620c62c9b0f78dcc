"""Tiny gang instances: few jobs, few GPUs, one pool or two servers, of one kind or of two."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hindsched.instances.gang.instance import GangInstance, gang_data


@st.composite
def tiny_instances(
    draw: st.DrawFn, most_jobs: int = 3, longest: int = 3, kinds: bool = False
) -> GangInstance:
    """Instances whose optimum can be enumerated; many of them contended, some with ties."""
    cluster: dict[str, Any] = {"gpus": draw(st.integers(1, 3))}
    room = cluster["gpus"]
    rooms: dict[str, int] = {}
    if kinds or draw(st.integers(0, 3)) == 0:
        sizes = draw(st.sampled_from([(1, 1), (2, 1), (2, 2)]))
        room = sum(sizes)
        servers: list[dict[str, Any]] = [
            {"name": f"s{h}", "gpus": size} for h, size in enumerate(sizes)
        ]
        if kinds:
            if draw(st.booleans()):
                servers.append({"name": "s2", "gpus": 1})
            for server, kind in zip(servers, "ABB", strict=False):
                server["gpu_kind"] = kind
                rooms[kind] = rooms.get(kind, 0) + server["gpus"]
        placement = draw(st.sampled_from(["pool", "consolidated"])) if kinds else "consolidated"
        cluster = {"servers": servers, "placement": placement}
    seconds = draw(st.sampled_from([1, 1, 1, 0.5, 60]))
    jobs = []
    for number in range(draw(st.integers(2, most_jobs))):
        named = draw(st.sampled_from([None, ["A"], ["B"], ["B", "A"]])) if kinds else None
        if kinds:
            room = max(rooms[kind] for kind in named or rooms)
        submit, duration = draw(st.integers(0, 2)), draw(st.integers(1, longest))
        job = {
            "name": f"j{number}",
            "submit": submit * seconds,
            "duration": duration * seconds,
            "gpus": draw(st.integers(1, min(room, 3))),
            "weight": draw(st.sampled_from([1, 1, 2, 5, 0.3])),
        }
        if named:
            job["gpu_kinds"] = named
        if draw(st.booleans()):
            job["deadline"] = (submit + duration + draw(st.integers(-1, 3))) * seconds
        if draw(st.integers(0, 3)) == 0:
            job["most_gpus"] = draw(st.integers(job["gpus"], room))
        jobs.append(job)
    return GangInstance.parse(gang_data("tiny", jobs, slot_seconds=seconds, **cluster))

"""Hypothesis strategies: tiny edgecloud instances that a brute force can settle."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hindsched.instances.edgecloud.instance import EdgecloudInstance

SECONDS = 1


def job(
    name: str, arrival: int, chunks: int, edge: int, cloud: int, upload: dict[str, int], **more: Any
) -> dict[str, Any]:
    """A job of `edge` slots a chunk, `cloud` when it is wholly in the cloud; `arrival` from 1."""
    return {
        "name": name, "arrival": arrival, "epochs": 1, "chunks": chunks, "minibatches": 1,
        "minibatch_slots": cloud, "update_slots": 0, "gradient_mb": (edge - cloud) * 125,
        "bandwidth_mbps": 2000, "worker_type": "t1", "ps_type": "p", "upload_slots": upload, **more,
    }  # fmt: skip


def instance(
    servers: list[dict[str, Any]],
    jobs: list[dict[str, Any]],
    cloud: dict[str, Any] | None = None,
    horizon: int = 60,
    name: str = "tiny",
) -> EdgecloudInstance:
    """An instance with slots of one second."""
    return EdgecloudInstance.parse(
        {
            "format": "hindsched/1", "family": "edgecloud", "name": name, "horizon": horizon,
            "slot_seconds": SECONDS, "servers": servers,
            "cloud": {"name": "cloud", **(cloud or {})}, "jobs": jobs,
        }
    )  # fmt: skip


@st.composite
def tiny_instances(
    draw: st.DrawFn,
    max_jobs: int = 3,
    *,
    storage: bool = False,
    finite_ps: bool = False,
    clouds: tuple[int | None, ...] = (None, None, 0, 1),
    same_upload: bool = False,
    max_chunks: int = 2,
) -> EdgecloudInstance:
    """Up to 3 workers of 2 types and 3 jobs, of 2 chunks unless there are 3 jobs."""
    types = draw(st.sampled_from([("t1",), ("t1", "t2")]))
    shapes = draw(st.sampled_from([[1], [2], [1, 1], [2, 1], [1, 1, 1]]))
    servers: list[dict[str, Any]] = []
    for index, size in enumerate(shapes):
        server: dict[str, Any] = {
            "name": f"s{index + 1}",
            "workers": [draw(st.sampled_from(types)) for _ in range(size)],
            "ps": ["p"] * draw(st.integers(0, 1)),
        }
        if storage and draw(st.booleans()):
            server["storage_gb"] = draw(st.integers(0, 4))
        servers.append(server)
    servers[0]["workers"][0] = "t1"
    size = draw(st.sampled_from(clouds))
    cloud: dict[str, Any] = {} if size is None else {"workers": dict.fromkeys(types, size)}
    if finite_ps:
        servers[0]["ps"] = ["p"]
        cloud["ps"] = {"p": draw(st.integers(0, 1))}
    present = {kind for server in servers for kind in server["workers"]}
    usable = [kind for kind in types if size != 0 or kind in present]
    shared = {server["name"]: draw(st.integers(0, 3)) for server in servers}
    jobs = []
    count = draw(st.integers(1, max_jobs))
    for index in range(count):
        edge = draw(st.integers(1, 3))
        upload = {
            server["name"]: shared[server["name"]] if same_upload else draw(st.integers(0, 3))
            for server in servers
        }
        more: dict[str, Any] = {"worker_type": draw(st.sampled_from(usable))}
        if storage:
            more["chunk_gb"] = draw(st.integers(0, 2))
        jobs.append(
            job(
                f"j{index + 1}",
                draw(st.integers(1, 4)),
                draw(st.integers(1, max_chunks if count < 3 or index == 0 else 1)),
                edge,
                draw(st.integers(1, edge)),
                {**upload, "cloud": draw(st.integers(1, 5))},
                **more,
            )
        )
    return instance(servers, jobs, cloud)

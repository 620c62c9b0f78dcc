"""Hypothesis strategies: tiny astraea instances that a brute force can settle."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hindsched.instances.astraea.instance import AstraeaInstance

HORIZON = 5


def typed(values: list[Any], types: tuple[str, ...]) -> Any:
    """One number for a single type, else numbers keyed by type."""
    return values[0] if len(types) == 1 else dict(zip(types, values, strict=True))


@st.composite
def clusters(
    draw: st.DrawFn,
    worker_types: tuple[str, ...],
    ps_types: tuple[str, ...],
    least_servers: int = 2,
    most_servers: int = 3,
) -> dict[str, Any]:
    """Servers, quotas of two tenants that add up, bandwidths."""
    most = 2 if len(worker_types) == 1 else 1
    count = draw(st.integers(least_servers, most_servers))
    servers = [
        {
            "name": f"s{s + 1}",
            "workers": [draw(st.integers(int(s == 0), most)) for _ in worker_types],
            "ps": [draw(st.sampled_from([1, 1, 0] if s else [1, 1, 2])) for _ in ps_types],
        }
        for s in range(count)
    ]
    tenants: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}]
    for quota, field, types in (
        ("worker_quota", "workers", worker_types),
        ("ps_quota", "ps", ps_types),
    ):
        total = [sum(server[field][k] for server in servers) for k in range(len(types))]
        first = [draw(st.integers(0, n)) for n in total]
        tenants[0][quota] = typed(first, types)
        tenants[1][quota] = typed([n - m for n, m in zip(total, first, strict=True)], types)
    for server in servers:
        server["workers"] = typed(server["workers"], worker_types)
        server["ps"] = typed(server["ps"], ps_types)
    return {
        "tenants": tenants,
        "servers": servers,
        "worker_bandwidth_mbps": typed([1.0 for _ in worker_types], worker_types),
        "ps_bandwidth_mbps": typed([draw(st.sampled_from([1.0, 2.0])) for _ in ps_types], ps_types),
    }


LINES = st.fixed_dictionaries(
    {"kind": st.just("linear"), "slope": st.integers(-6, -1), "intercept": st.integers(4, 25)}
)
"""They may go below 0."""
POWERS = st.fixed_dictionaries({
    "kind": st.just("power"), "scale": st.integers(2, 12),
    "exponent": st.sampled_from([0.5, 1, 1.5]),
})  # fmt: skip


@st.composite
def jobs(
    draw: st.DrawFn, index: int, worker_types: tuple[str, ...], ps_types: tuple[str, ...]
) -> dict[str, Any]:
    """A job of one to six mini-batches; sending a gradient both ways takes 0.5 slots or nothing."""
    times = st.sampled_from([0.5, 0.75, 1.0])
    return {
        "name": f"j{index + 1}",
        "tenant": draw(st.sampled_from(["a", "b"])),
        "arrival": draw(st.sampled_from([0, 0, 1, 1, 2])),
        "epochs": 1,
        "chunks": draw(st.integers(1, 3)),
        "minibatches": draw(st.integers(1, 2)),
        "minibatch_slots": typed([draw(times) for _ in worker_types], worker_types),
        "update_slots": typed([draw(st.sampled_from([0, 0.25])) for _ in ps_types], ps_types),
        "gradient_mb": draw(st.sampled_from([0, 0.25])),
        "utility": draw(LINES | LINES | POWERS),
    }


@st.composite
def astraea_instances(
    draw: st.DrawFn,
    types: int = 1,
    least_jobs: int = 3,
    most_jobs: int = 4,
    horizon: int = HORIZON,
    most_servers: int = 3,
) -> AstraeaInstance:
    """3-4 jobs of 2 tenants on 2-3 servers with `types` worker and PS types."""
    worker_types = ("worker",) if types == 1 else tuple(f"w{k + 1}" for k in range(types))
    ps_types = ("ps",) if types == 1 else tuple(f"p{k + 1}" for k in range(types))
    cluster = draw(clusters(worker_types, ps_types, most_servers=2 if types > 1 else most_servers))
    count = draw(st.integers(least_jobs, most_jobs))
    return AstraeaInstance.parse({
        "format": "hindsched/1", "family": "astraea", "name": "tiny", "horizon": horizon,
        "slot_seconds": 8, "utility_origin": draw(st.sampled_from(["arrival", "absolute"])),
        **cluster, "jobs": [draw(jobs(i, worker_types, ps_types)) for i in range(count)],
    })  # fmt: skip

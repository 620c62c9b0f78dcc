"""Hypothesis strategies: tiny oasis instances that a brute force over raw decisions can settle."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hindsched.instances.oasis.instance import OasisInstance

HORIZON = 4


def server_lists(names: str, compute: tuple[int, int]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Two servers with 2 resources."""
    one = st.fixed_dictionaries(
        {"compute": st.integers(*compute), "mbps": st.integers(1, 3)},
    )
    return st.lists(one, min_size=2, max_size=2).map(
        lambda found: [
            {"name": f"{names}{i + 1}", "capacity": capacity} for i, capacity in enumerate(found)
        ]
    )


@st.composite
def demands(draw: st.DrawFn, servers: list[dict[str, Any]], least_mbps: int) -> dict[str, int]:
    """A demand that fits on one of the servers."""
    host = draw(st.sampled_from(servers))["capacity"]
    return {
        "compute": draw(st.integers(0, min(2, host["compute"]))),
        "mbps": draw(st.integers(least_mbps, host["mbps"])),
    }


def utilities() -> st.SearchStrategy[dict[str, Any]]:
    """Sigmoids of all three classes, and falling lines that may go below 0."""
    sigmoid = st.fixed_dictionaries(
        {
            "kind": st.just("sigmoid"),
            "priority": st.integers(1, 40),
            "decay": st.sampled_from([0, 0.5, 1.5, 5]),
            "target": st.integers(0, 3),
        }
    )
    linear = st.fixed_dictionaries(
        {
            "kind": st.just("linear"),
            "slope": st.integers(-5, 0),
            "intercept": st.integers(1, 12),
        }
    )
    return st.one_of(sigmoid, sigmoid, linear)


@st.composite
def jobs(
    draw: st.DrawFn,
    index: int,
    worker_servers: list[dict[str, Any]],
    ps_servers: list[dict[str, Any]],
) -> dict[str, Any]:
    """A job of at most 8 worker-slots."""
    return {
        "name": f"j{index + 1}",
        "arrival": draw(st.sampled_from([1, 1, 1, 2, 2, 3])),
        "epochs": draw(st.integers(1, 2)),
        "chunks": draw(st.integers(1, 3)),
        "minibatches": 1,
        "minibatch_slots": draw(st.sampled_from([0.6, 0.8, 1.0])),
        "gradient_mb": draw(st.sampled_from([0, 0.25])),
        "worker": draw(demands(worker_servers, 1)),
        "ps": draw(demands(ps_servers, 1)),
        "utility": draw(utilities()),
    }


@st.composite
def oasis_instances(draw: st.DrawFn, least_jobs: int = 3, most_jobs: int = 4) -> OasisInstance:
    """3-4 jobs, 2 + 2 servers, 2 resources, 4 slots; identical servers are common."""
    worker_servers = draw(server_lists("w", (1, 2)))
    ps_servers = draw(server_lists("p", (1, 2)))
    if draw(st.booleans()):
        for servers in (worker_servers, ps_servers):
            servers[1] = {**servers[1], "capacity": dict(servers[0]["capacity"])}
    count = draw(st.integers(least_jobs, most_jobs))
    return OasisInstance.parse(
        {
            "format": "hindsched/1",
            "family": "oasis",
            "name": "tiny",
            "horizon": HORIZON,
            "slot_seconds": 8,
            "resources": ["compute", "mbps"],
            "bandwidth_resource": "mbps",
            "worker_servers": worker_servers,
            "ps_servers": ps_servers,
            "jobs": [draw(jobs(i, worker_servers, ps_servers)) for i in range(count)],
        }
    )


def _gang(name: str, arrival: int, slots: int, deadline: int, priority: int) -> dict[str, Any]:
    """A job that fills two single-worker servers for some slots and is worth little when late."""
    return {
        "name": name,
        "arrival": arrival,
        "epochs": slots,
        "chunks": 2,
        "minibatches": 1,
        "minibatch_slots": 1.0,
        "gradient_mb": 0,
        "worker": {"compute": 1, "mbps": 1},
        "ps": {"compute": 1, "mbps": 2},
        "utility": {
            "kind": "sigmoid",
            "priority": priority,
            "decay": 5,
            "target": deadline - arrival + 0.5,
        },
    }


@st.composite
def regretful_oasis_instances(draw: st.DrawFn) -> OasisInstance:
    """The best first slot depends on a job that arrives in the second: hindsight is worth a lot.

    A long job and a short one both want slot 1; a valuable one arrives in slot 2 and drives the
    long one out, so that only who ran the short one first has lost nothing.
    """
    long = draw(st.integers(8, 20))
    known = [
        _gang("long", 1, 2, 2, long),
        _gang("short", 1, 1, 1, draw(st.integers(3, long - 1))),
    ]
    found = [
        *draw(st.permutations(known)),
        _gang("late", 2, 2, 3, draw(st.integers(long, 40))),
    ]
    if draw(st.booleans()):
        found.append(_gang("last", draw(st.integers(3, 4)), 1, 4, draw(st.integers(1, 10))))
    worker_servers = [{"name": f"w{i}", "capacity": {"compute": 1, "mbps": 1}} for i in (1, 2)]
    ps_servers = [{"name": f"p{i}", "capacity": {"compute": 1, "mbps": 2}} for i in (1, 2)]
    return OasisInstance.parse(
        {
            "format": "hindsched/1",
            "family": "oasis",
            "name": "regretful",
            "horizon": HORIZON,
            "slot_seconds": 8,
            "resources": ["compute", "mbps"],
            "bandwidth_resource": "mbps",
            "worker_servers": worker_servers,
            "ps_servers": ps_servers,
            "jobs": found,
        }
    )

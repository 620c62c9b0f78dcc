"""Tiny oasis instances: by hand, and drawn so that a brute force can settle them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hindsched.instances.oasis.instance import OasisInstance

HORIZON = 4
SHORT = {
    "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1, "minibatch_slots": 1,
    "gradient_mb": 0, "worker": {"mbps": 1}, "ps": {},
}  # fmt: skip
"""A job of one worker-slot."""


def flat(value: float) -> dict[str, Any]:
    """A utility that waiting does not lower."""
    return {"kind": "linear", "slope": 0, "intercept": value}


def data_of(
    jobs: list[dict[str, Any]], workers: list[Any], ps: list[Any], horizon: int = 1
) -> dict[str, Any]:
    """An instance's data: jobs as changes of `SHORT`, of value 1; servers as their capacities."""
    sides = {
        f"{side}_servers": [{"name": f"{side[0]}{n}", "capacity": c} for n, c in enumerate(pool, 1)]
        for side, pool in (("worker", workers), ("ps", ps))
    }
    listed = [{"name": f"j{n}", "utility": flat(1), **SHORT, **j} for n, j in enumerate(jobs, 1)]
    return {
        "format": "hindsched/1", "family": "oasis", "name": "by-hand", "horizon": horizon,
        "slot_seconds": 8, "resources": sorted({"mbps"}.union(*workers, *ps)),
        "bandwidth_resource": "mbps", **sides, "jobs": listed,
    }  # fmt: skip


def make(
    jobs: list[dict[str, Any]], workers: list[Any], ps: list[Any], horizon: int = 1
) -> OasisInstance:
    """The instance of `data_of`."""
    return OasisInstance.parse(data_of(jobs, workers, ps, horizon))


def capacities() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Two servers with 2 resources."""
    capacity = st.fixed_dictionaries({"compute": st.integers(1, 2), "mbps": st.integers(1, 3)})
    return st.lists(capacity, min_size=2, max_size=2)


@st.composite
def demands(draw: st.DrawFn, servers: list[dict[str, Any]]) -> dict[str, int]:
    """A demand that fits on one of the servers."""
    host = draw(st.sampled_from(servers))
    return {
        "compute": draw(st.integers(0, min(2, host["compute"]))),
        "mbps": draw(st.integers(1, host["mbps"])),
    }


SIGMOIDS = st.fixed_dictionaries({
    "kind": st.just("sigmoid"), "priority": st.integers(1, 40),
    "decay": st.sampled_from([0, 0.5, 1.5, 5]), "target": st.integers(0, 3),
})  # fmt: skip
LINES = st.fixed_dictionaries(
    {"kind": st.just("linear"), "slope": st.integers(-5, 0), "intercept": st.integers(1, 12)}
)
"""They may go below 0."""


@st.composite
def jobs_on(draw: st.DrawFn, workers: list[Any], ps: list[Any]) -> dict[str, Any]:
    """A job of at most 8 worker-slots."""
    return {
        "arrival": draw(st.sampled_from([1, 1, 1, 2, 2, 3])),
        "epochs": draw(st.integers(1, 2)),
        "chunks": draw(st.integers(1, 3)),
        "minibatch_slots": draw(st.sampled_from([0.6, 0.8, 1.0])),
        "gradient_mb": draw(st.sampled_from([0, 0.25])),
        "worker": draw(demands(workers)),
        "ps": draw(demands(ps)),
        "utility": draw(SIGMOIDS | SIGMOIDS | LINES),
    }


@st.composite
def oasis_instances(draw: st.DrawFn, least_jobs: int = 3, most_jobs: int = 4) -> OasisInstance:
    """3-4 jobs, 2 + 2 servers, 2 resources, 4 slots; identical servers are common."""
    workers, ps = draw(capacities()), draw(capacities())
    if draw(st.booleans()):
        workers[1], ps[1] = dict(workers[0]), dict(ps[0])
    count = draw(st.integers(least_jobs, most_jobs))
    return make([draw(jobs_on(workers, ps)) for _ in range(count)], workers, ps, HORIZON)


@st.composite
def regretful_oasis_instances(draw: st.DrawFn) -> OasisInstance:
    """The best first slot depends on a job that arrives in the second: hindsight is worth a lot.

    Jobs fill two single-worker servers and are worth little when late. A long job and a short one
    both want slot 1; a valuable one arrives in slot 2 and drives the long one out, so that only who
    ran the short one first has lost nothing.
    """

    def filling(arrival: int, slots: int, deadline: int, priority: int) -> dict[str, Any]:
        target = deadline - arrival + 0.5
        return {
            "arrival": arrival, "epochs": slots, "chunks": 2,
            "worker": {"compute": 1, "mbps": 1}, "ps": {"compute": 1, "mbps": 2},
            "utility": {"kind": "sigmoid", "priority": priority, "decay": 5, "target": target},
        }  # fmt: skip

    long = draw(st.integers(8, 20))
    known = [filling(1, 2, 2, long), filling(1, 1, 1, draw(st.integers(3, long - 1)))]
    jobs = [*draw(st.permutations(known)), filling(2, 2, 3, draw(st.integers(long, 40)))]
    if draw(st.booleans()):
        jobs.append(filling(draw(st.integers(3, 4)), 1, 4, draw(st.integers(1, 10))))
    workers, ps = [{"compute": 1, "mbps": 1}] * 2, [{"compute": 1, "mbps": 2}] * 2
    return make(jobs, workers, ps, HORIZON)

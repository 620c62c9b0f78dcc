"""The exact kernel on edgecloud: optima are never beaten, broken schedules are named, exactly."""

from __future__ import annotations

import json

import pytest

from hindsched.kernel import edgecloud
from hindsched.kernel.reading import RefusedFile
from tests.kernel.agreement import bound_of, checked, exact
from tests.strategies.edgecloud import instance, job

FORMULATIONS = ("no-migration", "literal")


def proven(problem, formulation, prices):
    """The kernel's bound at prices by row set."""
    data = exact({"formulation": formulation, "kind": "lagrangian", "prices": prices})
    return bound_of(edgecloud, exact(problem.to_dict()), data).low


SERVERS = [{"name": "s", "workers": ["t1", "t1", "t2"], "ps": ["p"], "storage_gb": 1}]
TWO_JOBS = instance(
    SERVERS,
    [
        job("a", 2, 2, 3, 2, {"s": 1, "cloud": 4}, chunk_gb=0.25),
        job("b", 1, 1, 2, 1, {"s": 0, "cloud": 2}, chunk_gb=0.25),
    ],
    {"workers": {"t1": 1}, "ps": {"p": 1}},
)
FEASIBLE = {
    "a": [
        {"chunk": 1, "server": "s", "worker": 1, "from": 3, "to": 5},
        {"chunk": 2, "server": "cloud", "from": 6, "to": 8},
        {"ps": "s", "from": 3, "to": 8},
    ],
    "b": [
        {"chunk": 1, "server": "s", "worker": 2, "from": 3, "to": 4},
        {"ps": "cloud", "from": 3, "to": 4},
    ],
}


LATE = {"chunk": 2, "server": "cloud", "from": 6, "to": 7}


def judged(rows, problem=TWO_JOBS, formulation="no-migration"):
    jobs = [{"name": name, "assignments": found} for name, found in rows.items()]
    data = exact({"formulation": formulation, "jobs": jobs})
    return checked(edgecloud, exact(problem.to_dict()), data)


def changed(name, position, **keys):
    rows = json.loads(json.dumps(FEASIBLE))
    rows[name][position] |= keys
    return rows


@pytest.mark.parametrize(
    ("rows", "equation"),
    [
        (changed("a", 0, worker=3), "(2a)"),
        (changed("a", 0, to=4), "(2b)"),
        (changed("a", 1, chunk=1, **{"from": 5, "to": 7}), "(2c)"),
        (changed("b", 0, worker=1), "(2d)"),
        (changed("a", 2, to=7), "(2e)"),
        (changed("b", 1, ps="s"), "(2f)"),
        ({**FEASIBLE, "b": [*FEASIBLE["b"], {"ps": "s", "from": 4, "to": 4}]}, "(2e)"),
        (
            changed("a", 0, to=6) | {"a": [changed("a", 0, to=6)["a"][0], LATE, FEASIBLE["a"][2]]},
            "(2b)",
        ),
        (changed("a", 0, **{"from": 2, "to": 4}), "(2i)"),
        (changed("a", 1, **{"from": 5, "to": 7}), "(2i)"),
        (changed("a", 2, **{"from": 1, "to": 8}), "(2i)"),
        ({"a": FEASIBLE["a"]}, "(2b)"),
        (
            {
                **FEASIBLE,
                "a": [*FEASIBLE["a"], {"chunk": 1, "server": "s", "worker": 2, "from": 6, "to": 6}],
            },
            "no migration",
        ),
        (
            {
                **FEASIBLE,
                "a": [
                    FEASIBLE["a"][0],
                    {"chunk": 2, "server": "cloud", "from": 6, "to": 7},
                    {"chunk": 2, "server": "cloud", "from": 9, "to": 9},
                    {"ps": "s", "from": 3, "to": 9},
                ],
            },
            "no preemption in the cloud",
        ),
    ],
)
def test_a_broken_schedule_is_named(rows, equation):
    assert equation in {broken.rule for broken in judged(rows).violations}


def test_a_finite_cloud_is_not_overbooked():
    rows = changed("b", 0, server="cloud", **{"from": 6, "to": 7})
    del rows["b"][0]["worker"]
    rows["b"][1] = {"ps": "cloud", "from": 6, "to": 7}
    assert [broken.rule for broken in judged(rows).violations] == ["(2d)"]


@pytest.mark.parametrize(
    ("chunk", "room", "fits"),
    [
        (2e-7, 0, False), (0.1, 0.2999999999, False), (1e-9, 2.9999e-9, False),
        (0.1, 0.3, True), (1e-9, 3e-9, True), (1e15, 3e15 - 1, False), (2e-7, None, True),
    ],
)  # fmt: skip
def test_storage_has_no_tolerance(chunk, room, fits):
    """Three chunks; as floats 3 x 0.1 passes 0.3."""
    server = {"name": "s", "workers": ["t1"] * 3} | ({} if room is None else {"storage_gb": 1})
    problem = instance([server], [job("a", 1, 3, 1, 1, {"s": 0, "cloud": 0}, chunk_gb=chunk)])
    data = exact(problem.to_dict())
    if room is not None:
        data["servers"][0]["storage_gb"] = exact(room)
    rows = [{"chunk": n, "server": "s", "worker": n, "from": 1, "to": 1} for n in (1, 2, 3)]
    rows.append({"ps": "cloud", "from": 1, "to": 1})
    for formulation in FORMULATIONS:
        jobs = [{"name": "a", "assignments": rows}]
        found = checked(edgecloud, data, {"formulation": formulation, "jobs": jobs})
        assert [broken.rule for broken in found.violations] == ([] if fits else ["(7b)"])


@pytest.mark.parametrize(
    ("minibatch", "slots"),
    [(0.1, 1), (1, 10), (1.0000000001, 11), (0.99999999999, 10), (1e-15, 1), (1e14, 10**15)],
)
def test_whole_slots_are_exact(minibatch, slots):
    """Ten epochs of one mini-batch: one slot short is not feasible, and bounds know the length."""
    problem = instance(
        [{"name": "s", "workers": ["t1"]}], [job("a", 1, 1, 1, 1, {"s": 2, "cloud": 9})]
    )
    data = exact(problem.to_dict())
    data["jobs"][0] |= {"epochs": 10, "minibatch_slots": exact(minibatch)}
    for last, feasible in ((slots + 2, True), (slots + 1, False)):
        rows = [
            {"chunk": 1, "server": "s", "worker": 1, "from": 3, "to": last},
            {"ps": "cloud", "from": 3, "to": last},
        ]
        jobs = [{"name": "a", "assignments": rows if last > 2 else []}]
        found = checked(edgecloud, data, {"formulation": "literal", "jobs": jobs})
        assert (not found.violations) == feasible
    for formulation in FORMULATIONS:
        free = {"formulation": formulation, "kind": "lagrangian", "prices": {}}
        assert bound_of(edgecloud, data, free).low == slots + 2


@pytest.mark.parametrize(
    "prices",
    [
        {"worker_capacity": [{"worker": "s/9", "from": 1, "to": 1, "price": 1}]},
        {"worker_capacity": [{"worker": "s/1", "from": 1, "to": 1, "price": -1}]},
        {"worker_capacity": [{"worker": "s/1", "from": 1, "to": 10**9, "price": 1}]},
        {"worker_capacity": [{"worker": "s/1", "from": 1, "to": 2, "price": 1}] * 2},
        {"colours": []},
    ],
)
def test_prices_that_are_no_prices_are_refused(prices):
    with pytest.raises(RefusedFile):
        proven(TWO_JOBS, "no-migration", prices)


def test_jobs_may_have_more_chunks_than_decisions_can_name():
    """The cloud has a worker for each: slot 1 is enough, however dear the edge's only one is."""
    job_given = job("a", 1, 1, 1, 1, {"s": 0, "cloud": 0})
    data = exact(instance([{"name": "s", "workers": ["t1"]}], [job_given]).to_dict())
    data["jobs"][0]["chunks"] = 2**31 + 5
    row = {"worker": "s/1", "from": 1, "to": 10, "price": 1}
    for formulation in FORMULATIONS:
        dear = {"formulation": formulation, "kind": "lagrangian"}
        dear["prices"] = {"worker_capacity": [row]}
        assert bound_of(edgecloud, data, dear).low == 1 - 10

"""A hair decides: rules and completions on near ties have no tolerance."""

from copy import deepcopy

import pytest

from hindsched.instances.io import parse_instance
from hindsched.solutions.base import build_solution
from tests.strategies.batchsched import instance
from tests.strategies.oasis import data_of

HAIRS = (0, 1e-9, -1e-9, 1e-12, -1e-12)

OASIS = data_of(
    [{"chunks": 2, "minibatches": 3, "worker": {"gpu": 2, "mbps": 2}, "ps": {"mbps": 2}}],
    [{"gpu": 4, "mbps": 100}], [{"mbps": 100}], horizon=3,
)  # fmt: skip
OASIS_ROWS = [{"from": 1, "to": 3, "workers": {"w1": 2}, "ps": {"p1": 2}}]

JOB = {
    "arrival": 1, "weight": 1, "epochs": 1, "chunks": 3, "minibatches": 2, "gradient_mb": 0,
    "minibatch_slots": [1], "update_slots": [0],
}  # fmt: skip
BATCHSCHED = instance("parameter-server", [(4, 8)] * 2, [(2, 2)], [2], [JOB], 1).to_dict()
BATCHSCHED_ROWS = [
    {"from": 1, "to": 2, "worker_type": "w0", "workers": {"s0": 2, "s1": 1}, "ps_type": "p0",
     "ps": {"s0": 1}}
]  # fmt: skip

ASTRAEA = {
    "format": "hindsched/1", "family": "astraea", "name": "hair", "horizon": 4,
    "slot_seconds": 60, "utility_origin": "arrival", "worker_bandwidth_mbps": 2,
    "ps_bandwidth_mbps": 2, "tenants": [{"name": "u", "worker_quota": 3, "ps_quota": 2}],
    "servers": [{"name": "a", "workers": 2, "ps": 2}, {"name": "b", "workers": 1, "ps": 0}],
    "jobs": [{
        "name": "j", "tenant": "u", "arrival": 0, "epochs": 1, "chunks": 3, "minibatches": 2,
        "minibatch_slots": 1, "update_slots": 0, "gradient_mb": 0,
        "utility": {"kind": "linear", "slope": -1, "intercept": 9},
    }],
}  # fmt: skip
ASTRAEA_ROWS = [{"from": 1, "to": 2, "workers": {"a": 2, "b": 1}, "ps": {"a": 1}}]

CASES = {
    "oasis capacity": (OASIS, OASIS_ROWS, ("jobs", 0, "worker", "gpu"), "(4)"),
    "oasis room": (OASIS, OASIS_ROWS, ("worker_servers", 0, "capacity", "gpu"), "(4)"),
    "oasis bandwidth": (OASIS, OASIS_ROWS, ("jobs", 0, "worker", "mbps"), "(6)"),
    "oasis work": (OASIS, OASIS_ROWS, ("jobs", 0, "minibatch_slots"), "(2)"),
    "batchsched capacity": (
        BATCHSCHED, BATCHSCHED_ROWS, ("worker_types", 0, "demand", "gpu"), "(2h)"),
    "batchsched bandwidth": (
        BATCHSCHED, BATCHSCHED_ROWS, ("ps_types", 0, "demand", "net"), "(2i)"),
    "batchsched work": (BATCHSCHED, BATCHSCHED_ROWS, ("jobs", 0, "minibatch_slots", 0), "(2f)"),
    "astraea bandwidth": (ASTRAEA, ASTRAEA_ROWS, ("worker_bandwidth_mbps",), "(3i)"),
    "astraea work": (ASTRAEA, ASTRAEA_ROWS, ("jobs", 0, "minibatch_slots"), "(3k)"),
}  # fmt: skip
FALLS = ("oasis room", "batchsched bandwidth")
"""Where a smaller number is what breaks the rule."""


@pytest.mark.parametrize("hair", HAIRS)
@pytest.mark.parametrize("case", CASES)
def test_a_hair_decides(case, hair):
    data, rows, path, number = CASES[case]
    data = deepcopy(data)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] += hair
    name = data["jobs"][0]["name"]
    solution = build_solution(parse_instance(data), {name: rows})
    broken = {violation.rule for violation in solution.violations()}
    due = hair < 0 if case in FALLS else hair > 0
    assert broken == ({number} if due else set())
    assert (solution.completion(name) is None) == (due and "work" in case)

"""Astraea's data: what is refused, with the field's path; types; round trips."""

from __future__ import annotations

import pytest
from hypothesis import given

from hindsched.errors import InputError
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import NEVER, durations, modes
from hindsched.instances.io import read, write
from hindsched.online.simulator import simulate
from tests.astraea_example import worked_example
from tests.strategies.astraea import astraea_instances


def broken(**changes):
    with pytest.raises(InputError) as caught:
        worked_example(**changes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def quotas(first, second):
    return [
        {"name": "u1", "worker_quota": first, "ps_quota": 2},
        {"name": "u2", "worker_quota": second, "ps_quota": 2},
    ]


def job(**changes):
    data = worked_example(("j11",)).to_dict()["jobs"][0]
    return [{**data, **changes}]


def test_quotas_that_do_not_add_up():
    message = broken(tenants=quotas(4, 3))
    assert "tenants.worker_quota" in message
    assert "7" in message
    assert "must add up to the servers' 8" in message


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"jobs": job(tenant="u3")}, ("jobs[0].tenant", "u3", "must name a tenant")),
        ({"jobs": job(arrival=100)}, ("jobs[0].arrival", "100", "must be in 0..99")),
        ({"jobs": job(arrival=-1)}, ("jobs[0].arrival", "-1")),
        ({"jobs": job(chunks=0)}, ("jobs[0].chunks", "0")),
        ({"jobs": job(minibatch_slots={"gpu": 1})}, ("jobs[0].minibatch_slots.gpu", "one of")),
        (
            {"jobs": job(utility={"kind": "linear", "slope": 1, "intercept": 0})},
            ("jobs[0].utility.slope", "must not exceed 0"),
        ),
        ({"jobs": job(utility={"kind": "sigmoid"})}, ("jobs[0].utility",)),
        ({"utility_origin": "round"}, ("utility_origin", "round")),
        ({"worker_bandwidth_mbps": 0}, ("worker_bandwidth_mbps", "0")),
        ({"worker_bandwidth_mbps": {"a": 1, "b": 2}}, ("worker_quota", "keyed by a, b")),
        ({"worker_bandwidth_mbps": {}}, ("worker_bandwidth_mbps", "at least one type")),
        ({"tenants": quotas(10**30, 4)}, ("tenants[0].worker_quota", "less than or equal")),
        ({"jobs": job(chunks=10**9)}, ("jobs[0].chunks", "less than or equal")),
        (
            {"jobs": job(epochs=10**7, chunks=10**6, minibatches=10**7)},
            ("jobs[0].epochs", "must not exceed 1e+15"),
        ),
        (
            {"jobs": job(utility={"kind": "power", "scale": 1e10, "exponent": 400})},
            ("jobs[0].utility", "must stay within 1e+15"),
        ),
        (
            {"jobs": job(utility={"kind": "linear", "slope": -1, "intercept": 1e308})},
            ("jobs[0].utility.intercept", "at most 1e+15 in size"),
        ),
        (
            {"jobs": job(utility={"kind": "linear", "slope": -(10**400), "intercept": 1})},
            ("jobs[0].utility.slope", "must be finite"),
        ),
        ({"tenants": quotas(4, 4) + quotas(0, 0)[:1]}, ("tenants[2].name", "unique")),
        ({"colour": "red"}, ("colour", "unknown field")),
    ],
)
def test_bad_input_is_one_line_with_path_value_and_rule(changes, parts):
    message = broken(**changes)
    for part in parts:
        assert part in message


def test_a_type_without_a_value():
    data = worked_example(("j11",)).to_dict()
    data |= {"worker_bandwidth_mbps": {"a": 1, "b": 2}}
    data["tenants"] = [
        {"name": "u1", "worker_quota": {"a": 8, "b": 0}, "ps_quota": 4},
        {"name": "u2", "worker_quota": {"a": 0, "b": 0}, "ps_quota": 0},
    ]
    for server in data["servers"]:
        server["workers"] = {"a": 2}
    with pytest.raises(InputError, match=r"servers\[0\].workers.*value for b"):
        AstraeaInstance.parse(data)


@given(astraea_instances(types=2))
def test_round_trip(tmp_path_factory, instance):
    path = tmp_path_factory.mktemp("files") / "instance.json"
    write(instance, path)
    again = read(path)
    assert again == instance
    assert again.sha256() == instance.sha256()


def test_formulations_take_tokens_in_any_order():
    example = worked_example()
    assert example.check_formulation(None) == "optional,modes"
    assert example.check_formulation("literal") == "optional,literal"
    assert example.check_formulation("literal,must-complete") == "must-complete,literal"
    with pytest.raises(InputError, match="formulation"):
        example.check_formulation("tight")


@pytest.mark.parametrize(
    "given", ["optional,must-complete", "literal,modes", "optional,optional", "optional,"]
)
def test_formulations_name_each_axis_once(given):
    with pytest.raises(InputError, match="formulation"):
        worked_example().check_formulation(given)


def test_a_job_that_never_ends_and_one_of_a_million_chunks():
    """Durations are capped, and tables are no longer than the cluster has workers."""
    endless = worked_example(slot_seconds=1e-15)
    assert (durations(endless, endless.jobs[0])[0, 0, 0] == NEVER).all()
    wide = worked_example(("j11",), jobs=job(chunks=10**6))
    assert durations(wide, wide.jobs[0]).shape == (1, 1, 2, 8)
    for instance in (endless, wide):
        for algorithm in ("astraea", "gandiva-fair"):
            assert simulate(instance, algorithm).solution.violations() == []


def test_durations_and_modes_of_the_example():
    example = worked_example()
    j12 = example.jobs[1]  # E D M = 6; tc = 1, td = 2
    length = durations(example, j12)[0, 0]
    assert length[1].tolist() == [6, 3, 2]  # centralised, 1-3 workers
    assert length[0].tolist() == [12, 6, 4]
    # No server holds 3 workers; distributed with 1 PS: at most 2 + 1 workers.
    assert modes(example, j12).tuples() == [
        (0, 0, 1, 1, 6),
        (0, 0, 1, 2, 3),
        (0, 0, 0, 1, 12),
        (0, 0, 0, 2, 6),
        (0, 0, 0, 3, 4),
    ]
    most = max(
        count for _, _, zeta, count, _ in modes(example, example.jobs[3]).tuples() if not zeta
    )
    assert most == 3  # C_sp = 1 caps D_w at max C_sw + floor(b_p / b_w)

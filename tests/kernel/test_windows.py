"""batchsched and astraea in the kernel: schedules and prices, by brute force and the package."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

import hindsched as hs
from hindsched.kernel import astraea, batchsched, windows
from hindsched.kernel.reading import RefusedFile
from hindsched.kernel.verdict import Broken
from tests.kernel.agreement import bound_of, checked, exact


def job(**other):
    return {
        "name": "j", "arrival": 1, "weight": 3, "epochs": 1, "chunks": 2, "minibatches": 2,
        "minibatch_slots": [1], "update_slots": [0], "gradient_mb": 0, **other,
    }  # fmt: skip


def cluster(*jobs, gpu=2, mbps=4, wide=2, kind="parameter-server"):
    found = {
        "format": "hindsched/1", "family": "batchsched", "name": "t", "horizon": 5,
        "slot_seconds": 8, "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
        "architecture": kind, "jobs": list(jobs),
        "servers": [{"name": n, "capacity": {"gpu": gpu, "mbps": mbps}} for n in "ab"],
        "worker_types": [{"name": "w", "demand": {"gpu": 1, "mbps": 1}}],
    }  # fmt: skip
    if kind == "parameter-server":
        found["ps_types"] = [{"name": "p", "demand": {"mbps": wide}}]
    return found


def row(first=1, last=2, workers=None, ps=None, **other):
    workers = {"a": 2} if workers is None else workers
    ps = {"a": 1} if ps is None else ps
    types = {"worker_type": "w", "ps_type": "p"}
    return {"from": first, "to": last, **types, "workers": workers, "ps": ps, **other}


def solution(*rows, completion=2):
    return {"jobs": [{"name": "j", "completion": completion, "assignments": list(rows)}]}


APART = {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("equation", "amount", "instance", "given"),
    [
        ("(2f)", 4, cluster(job()), solution(completion=None)),
        ("(2a)", 1, cluster(job()), solution(row(1, 1), row(3, 3), completion=3)),
        ("(2n)", 1, cluster(job()), solution(row(1, 2), row(2, 2))),
        ("(2a)", 1, cluster(job()), solution(row(1, 1), row(2, 2, APART))),
        ("(2e)", 1, cluster(job()), solution(row(ps={}))),
        ("(2f)", 2, cluster(job()), solution(row(1, 1), completion=None)),
        ("(2g)", 1, cluster(job(), gpu=3, mbps=5), solution(row(1, 2, {"a": 3}))),
        ("(2h)", 1, cluster(job(), mbps=3), solution(row())),
        ("(2i)", 1, cluster(job(), wide=1), solution(row(1, 2, {"b": 2}))),
        ("(2j)", 2, cluster(job(arrival=3)), solution(row())),
    ],
)
def test_every_equation_of_batchsched_is_checked(equation, amount, instance, given):
    found = checked(batchsched, instance, given).violations
    assert (equation, amount) in [(broken.rule, broken.amount) for broken in found]


def test_ring_allreduce_has_no_ps():
    ring = job(reduce_slots=1)
    del ring["update_slots"]
    given = {"from": 1, "to": 3, "worker_type": "w", "workers": {"a": 2}}
    instance = cluster(ring, kind="ring-allreduce")
    # (14): a mini-batch takes 1 + 1 (2 - 1) / 2 slots, two workers make 4 of them in 3
    assert checked(batchsched, instance, solution(given, completion=3)).objective.low == 3 * 4
    with pytest.raises(RefusedFile, match="keys of a row"):
        checked(batchsched, instance, solution({**given, "ps": {"a": 1}}, completion=3))


@pytest.mark.parametrize(
    ("says", "instance"),
    [
        ("whole number from 1", cluster(job(arrival=0))),
        ("whole number from 1", cluster(job(chunks=Fraction(5, 2)))),
        ("whole number from 1", cluster(job(epochs=0))),
        ("chunks", cluster(job(chunks=10**6))),
        ("too long", cluster(job(minibatch_slots=[10**12]))),
        ("too long", cluster(job(arrival=10**12))),
        ("unique", cluster(job(), job())),
        ("above 0", cluster(job(minibatch_slots=[0]))),
        ("above 0", cluster(job(weight=0))),
    ],
)
def test_instances_without_a_meaning_are_refused(says, instance):
    data = {"kind": "lagrangian", "sense": "min", "prices": {"capacity": []}}
    with pytest.raises(RefusedFile, match=says):
        bound_of(batchsched, instance, data)


def priced(price, instance, resource="gpu", last=1):
    rows = [{"resource": resource, "from": 1, "to": last, "price": price}]
    data = {"kind": "lagrangian", "sense": "min", "prices": {"capacity": rows}}
    return bound_of(batchsched, instance, data).low


def test_windows_after_the_last_priced_slot_are_free():
    # w (t + L) of slots 2-3 is 12; the price is paid back for 4 GPUs in slot 1
    assert priced(100, cluster(job())) == 3 * (2 + 2) - 400


def test_a_host_pays_for_all_its_ps():
    """Three workers on one-GPU servers: two are elsewhere and need two PSs."""
    spread = cluster(job(chunks=3, minibatches=1), gpu=1, mbps=5, wide=1)
    spread["servers"].append({"name": "c", "capacity": {"gpu": 1, "mbps": 5}})
    small = Fraction(1, 100)
    assert priced(small, spread, "mbps") == 3 * (1 + 1) + (3 + 2) * small - 15 * small


def test_prices_far_out_are_beyond_the_limit():
    far = [{"resource": "gpu", "from": 10**7, "to": 10**7, "price": 1}]
    data = {"kind": "lagrangian", "sense": "min", "prices": {"capacity": far}}
    with pytest.raises(RefusedFile, match="cells"):
        bound_of(batchsched, cluster(job()), data)


def test_a_price_is_that_of_each_slot():
    slots = [{"resource": "gpu", "from": 1, "to": 4, "price": Fraction(1, 3)}]
    data = {"kind": "lagrangian", "sense": "min", "prices": {"capacity": slots}}
    # two workers for two slots: 3 (1 + 2) + 4/3, and 4 GPUs for 4 slots
    assert bound_of(batchsched, cluster(job()), data).low == 9 + Fraction(4, 3) - Fraction(16, 3)


def test_the_least_ps_of_any_host_count_in_the_merged_layout():
    """Eight workers over eight one-GPU servers need seven PSs' bandwidth on one server."""
    many = cluster(job(chunks=8, minibatches=1), gpu=1, mbps=1, wide=1)
    many["servers"] = [{"name": f"s{i}", "capacity": {"gpu": 1, "mbps": 8}} for i in range(8)]
    data = {"kind": "lagrangian", "sense": "min", "prices": {"capacity": []}}
    found = batchsched.Problem(many, "modes")
    problem, (known,) = found.cluster, found.jobs
    assert {units for *_, n, units in problem.modes(known) if n == 8} == {7}
    for server in many["servers"]:
        server["capacity"]["mbps"] = 6
    modes = batchsched.Problem(many, "modes").cluster.modes(known)
    assert {n for *_, n, _ in modes} == {1, 2, 3, 4}
    assert bound_of(batchsched, many, data).low == 3 * (1 + 2)


def test_an_astraea_job_earns_by_its_instances_origin():
    instance = json.loads(
        (Path(windows.__file__).parents[1] / "instances/known/astraea-j5-s40.json").read_text(),
        parse_float=Fraction,
    )
    assert instance["utility_origin"] == "absolute"
    name = instance["jobs"][0]["name"]
    jobs = astraea.Problem(instance, "optional,modes").jobs
    late = jobs[0].cost(9), jobs[0].cost(10)
    assert jobs[0].name == name
    assert late[0].low <= late[1].low
    instance["tenants"][0]["worker_quota"] += 1
    with pytest.raises(RefusedFile, match="quotas"):
        astraea.Problem(instance, "optional,modes")


def test_costs_below_every_tolerance():
    """Weights of 1e-9: a tie tolerance once made the dearer schedule's cost the minimum."""
    light = job(weight=Fraction(1, 10**9), chunks=1, minibatches=1)
    instance = cluster(light, gpu=1, mbps=3)
    price = [{"resource": "gpu", "from": 1, "to": 1, "price": Fraction(8, 10**12)}]
    data = {"kind": "lagrangian", "sense": "min", "prices": {"capacity": price}}
    # slot 1 at its price, 2e-9 + 8e-12, less two GPUs' price; slot 2 costs 3e-9
    assert bound_of(batchsched, instance, data).low == Fraction(2 * 10**3 - 8, 10**12)


def test_a_gpu_that_no_worker_can_use_is_not_paid_for():
    """Workers of 2 GPUs on two servers of 3: of three jobs of a slot one waits; prices prove it."""
    light = [job(name=name, weight=1, chunks=1, minibatches=1) for name in "jkl"]
    instance = cluster(*light, gpu=3)
    instance["worker_types"][0]["demand"]["gpu"] = 2
    price = {"resource": "gpu", "from": 1, "to": 1, "price": Fraction(1, 2)}
    by_server = [{**price, "server": name} for name in "ab"]
    for layout, rows in {"cluster": [price], "servers": by_server}.items():
        data = {"kind": "lagrangian", "sense": "min", "layout": layout,
                "prices": {"capacity": rows}}  # fmt: skip
        assert bound_of(batchsched, instance, data).low == 2 + 2 + 3


def paying_run(seed):
    """An instance and a simulated schedule in which tenants pay, exact as files have them."""
    instance = hs.generate("astraea", preset="small", seed=seed)
    return instance, hs.simulate(instance, "astraea").solution


def test_tenants_pay_and_gain_what_the_package_says():
    paid = 0
    for seed in range(2):
        instance, solution = paying_run(seed)
        verdict = checked(astraea, exact(instance.to_dict()), exact(solution.to_dict()))
        notes = dict(verdict.notes)
        assert not verdict.violations
        for word, own in (("pays", solution.payments()), ("gains", solution.gains())):
            for tenant, amount in own.items():
                assert abs(notes[f"tenant {tenant} {word}"] - amount) <= amount / 10**14
        sums = [sum(v for k, v in notes.items() if k.endswith(w)) for w in ("pays", "gains")]
        assert sums[0] == sums[1]
        paid += sums[0] > 0
    assert paid


def test_payments_are_divided_by_what_is_left_unused():
    """In slot 2 the first tenant uses all of its own: the other's workers are left, and no PS."""
    tenants = [
        {"name": "u", "worker_quota": 3, "ps_quota": 1},
        {"name": "v", "worker_quota": 1, "ps_quota": 0},
    ]
    jobs = [{"name": name, "tenant": tenant} for name, tenant in (("A", "u"), ("B", "v"))]
    own = {"from": 2, "to": 2, "workers": {"s": 3}, "ps": {"s": 1}}
    pays = {"workers": 4, "ps": Fraction(1, 3)}
    bought = {"from": 1, "to": 2, "workers": {"s": 1}, "ps": {"s": 1}, "payment": pays}
    solution = {
        "jobs": [{"name": "A", "assignments": [own]}, {"name": "B", "assignments": [bought]}]
    }
    cluster = SimpleNamespace(workers={"worker": 0}, ps={"ps": 0})
    broken = Broken()
    notes = dict(astraea.divide({"tenants": tenants, "jobs": jobs}, cluster, solution, broken))
    assert notes["tenant v pays"] == 2 * (4 + Fraction(1, 3))
    assert notes["tenant u gains"] == 4 * Fraction(3, 4) + Fraction(1, 3)  # slot 1, and its PS
    assert notes["tenant v gains"] == 4 * Fraction(1, 4) + 4  # alone in slot 2
    assert [(v.rule, v.where, v.resource, v.amount) for v in broken.violations] == [
        ("(2)", "job B in slot 2", "ps", Fraction(1, 3))
    ]


@pytest.mark.parametrize("payment", [{"workers": 1}, {"workers": "1", "ps": 0}])
def test_a_malformed_payment_is_refused(payment):
    instance, solution = paying_run(0)
    file = exact(solution.to_dict())
    next(job for job in file["jobs"] if job["assignments"])["assignments"][0]["payment"] = payment
    with pytest.raises(RefusedFile):
        checked(astraea, exact(instance.to_dict()), file)


def test_worker_and_ps_types_of_one_name_are_apart():
    """Type "a" of workers and of PSs on a server that holds one of each."""
    path = Path(windows.__file__).parents[1] / "instances/known/astraea-j5-s40.json"
    instance = json.loads(path.read_text(), parse_float=Fraction)
    found = astraea.Problem(instance, "optional,modes")
    problem, jobs = found.cluster, found.jobs
    same = {"worker_capacity": ("type", ["a"]), "ps_capacity": ("type", ["a"])}
    unit = {"w": ((1, 0), 1)}, {"p": ((0, 1), 1)}
    cluster = replace(problem, servers={"s": (1, 1)}, workers=unit[0], ps=unit[1], rows=same)
    row = {"from": jobs[0].first, "to": jobs[0].first, "workers": {"s": 1}, "ps": {"s": 1}}
    job = replace(jobs[0], minibatches=1, time=lambda *_: 1)
    listed = [{"name": job.name, "completion": job.first, "assignments": [row]}]
    assert windows.WindowProblem(cluster, [job]).check({"jobs": listed}).feasible

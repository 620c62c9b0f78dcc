"""Restricted oracles against every canonical schedule of a job, enumerated."""

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsched.instances.astraea import modes as astraea_modes
from hindsched.instances.batchsched import modes as batchsched_modes
from hindsched.solvers.oracles.base import Response, build_oracle
from hindsched.solvers.oracles.decisions import (
    COMPLETES,
    NEVER,
    BranchDecision,
    Feature,
    from_file,
    limits_of,
    to_file,
)
from hindsched.solvers.oracles.restricted import RestrictedOracle
from tests.brute_force.oasis import deployments, utility_of
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import tiny_instances
from tests.strategies.oasis import oasis_instances


def use_rows(oracle, name, counts, demand, slot):
    """Flat rows and amounts of counts by server in one slot, on the layout "servers"."""
    row_set = next(s for s in oracle.rows.sets if s.name == name)
    first = oracle.rows.slices[name].start
    for server, kind in itertools.product(range(len(counts)), range(len(demand))):
        if counts[server] and demand[kind]:
            row = first + np.ravel_multi_index((server, kind, slot - 1), row_set.shape)
            yield int(row), counts[server] * demand[kind]


def oasis_schedules(oracle, block):
    """(features, objective, rows) of every schedule with W worker-slots and no idle PS."""
    instance, job = oracle.instance, oracle.instance.jobs[block]
    total = instance.work_of(job)
    ratio = job.worker["mbps"] / job.ps["mbps"] if job.ps.get("mbps") else 0.0
    moves = [
        (y, z) for y, z in deployments(instance, job) if sum(z) == math.ceil(sum(y) * ratio - 1e-9)
    ]
    worker, ps = instance.demand_of(job)

    def extend(slot, done, chosen):
        if done == total:
            yield chosen
            return
        if slot > instance.horizon:
            return
        for move in moves:
            if done + sum(move[0]) <= total:
                yield from extend(slot + 1, done + sum(move[0]), [*chosen, (slot, move)])

    for chosen in extend(job.arrival, 0, []):
        features, rows = {COMPLETES: chosen[-1][0]}, []
        if not sum(chosen[-1][1][0]):
            continue
        for slot, (y, z) in chosen:
            features[Feature("slot_workers", (slot - 1,))] = sum(y)
            for server in range(len(y)):
                features[Feature("workers", (server, slot - 1))] = y[server]
            for server in range(len(z)):
                features[Feature("ps", (server, slot - 1))] = z[server]
            rows += use_rows(oracle, "worker_capacity", y, worker, slot)
            rows += use_rows(oracle, "ps_capacity", z, ps, slot)
        yield features, utility_of(job, chosen[-1][0]), rows


def gang_schedules(oracle, block, table, cluster, ratio, cost_of, rows_of, slots):
    """The same for gang jobs: every mode, start, host and spread of the workers, in `slots`."""
    capacity, worker, ps, has_ps = cluster
    servers = range(len(capacity))
    job = oracle.instance.jobs[block]
    earliest = job.arrival + (1 if oracle.sense == "max" else 0)
    for w, p, together, n, duration in table.tuples():
        for y in itertools.product(range(n + 1), repeat=len(capacity)):
            if sum(y) != n or (together and max(y) != n):
                continue
            for host in servers if has_ps else [None]:
                z = [0] * len(capacity)
                if host is not None:
                    elsewhere = n - y[host]
                    if together and elsewhere:
                        continue
                    if not together and not elsewhere:
                        continue
                    z[host] = max(1, math.ceil(elsewhere * ratio[w][p] - 1e-9))
                used = np.outer(y, worker[w]) + (np.outer(z, ps[p]) if has_ps else 0)
                if np.any(used > capacity + 1e-9):
                    continue
                for start in range(earliest, slots - duration + 2):
                    last = start + duration - 1
                    features = {
                        COMPLETES: last, Feature("start"): start, Feature("workers"): n,
                        Feature("worker_type"): w, Feature("ps_type"): p,
                    }  # fmt: skip
                    features |= {Feature("server_workers", (h,)): y[h] for h in servers}
                    features |= {Feature("server_ps", (h,)): z[h] for h in servers}
                    yield features, cost_of(last), list(rows_of(used, start, last))


def batchsched_schedules(oracle, block):
    instance, job = oracle.instance, oracle.instance.jobs[block]
    ratio = [[0.0]]
    if instance.has_ps:
        ratio = instance.worker_bandwidth[:, None] / instance.ps_bandwidth[None, :]
    cluster = (
        instance.server_capacity, instance.worker_demand, instance.ps_demand, instance.has_ps,
    )  # fmt: skip
    shape = oracle.rows.sets[0].shape

    def rows_of(used, start, last):
        for h, r in zip(*np.nonzero(used), strict=True):
            for slot in range(start, min(last, oracle.slots) + 1):
                yield int(np.ravel_multi_index((h, r, slot - 1), shape)), used[h, r]

    table = batchsched_modes.modes(instance, job)
    yield from gang_schedules(
        oracle, block, table, cluster, ratio, lambda last: job.weight * (last + 1), rows_of,
        oracle.slots + oracle._tail,
    )  # fmt: skip


def astraea_schedules(oracle, block):
    instance, job = oracle.instance, oracle.instance.jobs[block]
    num_w = len(instance.worker_types)
    kinds = np.eye(num_w + len(instance.ps_types))
    capacity = np.concatenate([instance.worker_count, instance.ps_count], axis=1)
    ratio = np.array(instance.worker_bandwidth)[:, None] / np.array(instance.ps_bandwidth)

    def rows_of(used, start, last):
        for slot in range(start, last + 1):
            for h in range(len(used)):
                for name, part in (
                    ("worker_capacity", used[h, :num_w]),
                    ("ps_capacity", used[h, num_w:]),
                ):
                    one = [0] * len(used)
                    one[h] = 1
                    yield from use_rows(oracle, name, one, part, slot)

    table = astraea_modes.modes(instance, job)
    cluster = (capacity, kinds[:num_w], kinds[num_w:], True)
    yield from gang_schedules(
        oracle, block, table, cluster, ratio, lambda last: instance.revenue(job, last), rows_of,
        oracle.slots,
    )  # fmt: skip


FAMILIES = {
    "oasis": (oasis_instances(), oasis_schedules),
    "batchsched": (tiny_instances(), batchsched_schedules),
    "astraea": (astraea_instances(), astraea_schedules),
    "astraea-types": (astraea_instances(types=2), astraea_schedules),
}


def allowed(features, limits):
    return all(low <= features.get(f, 0) <= high for f, (low, high) in limits.items())


@pytest.mark.parametrize("family", FAMILIES)
def test_best_response_within_limits_is_that_of_an_enumeration(family):
    strategy, schedules_of = FAMILIES[family]
    met = {"some": 0, "none": 0}

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(instance=strategy, seed=st.integers(0, 2**31))
    def check(instance, seed):
        random = np.random.default_rng(seed)
        oracle = build_oracle(instance, rows="servers")
        sign = 1.0 if oracle.sense == "max" else -1.0
        block = int(random.integers(oracle.num_blocks))
        known = list(schedules_of(oracle, block))
        prices = random.random(oracle.rows.size) * random.choice([0.0, 0.1, 1.0, 5.0])
        values = [
            objective - sign * sum(prices[row] * amount for row, amount in rows)
            for _, objective, rows in known
        ]
        features = sorted({feature for found, _, _ in known for feature in found})
        for _ in range(12):
            decisions = []
            for _ in range(int(random.integers(0, 4)) if features else 0):
                feature = features[int(random.integers(len(features)))]
                seen = sorted({found.get(feature, 0) for found, _, _ in known})
                k = int(random.choice(seen))
                make = BranchDecision.at_most if random.random() < 0.5 else BranchDecision.at_least
                decisions.append(make(block, feature, k))
            limits = limits_of(decisions).get(block, {})
            kept = [v for (f, _, _), v in zip(known, values, strict=True) if allowed(f, limits)]
            response = oracle.restricted_response(block, prices, limits)
            met["some" if kept else "none"] += 1
            if not kept:
                assert response is None
                continue
            assert sign * response.value == pytest.approx(max(sign * v for v in kept), abs=1e-9)
            assert allowed(oracle.features_of(block, response), limits)
            paid = float(prices[response.rows] @ response.amounts)
            assert response.value == pytest.approx(response.objective - sign * paid, abs=1e-9)

    check()
    assert met["some"] > 200
    assert met["none"] > 5


@pytest.mark.parametrize("family", FAMILIES)
def test_without_decisions_a_restricted_oracle_is_the_oracle(family):
    strategy, _ = FAMILIES[family]

    @settings(max_examples=30, deadline=None, derandomize=True, database=None)
    @given(instance=strategy, seed=st.integers(0, 2**31))
    def check(instance, seed):
        oracle = build_oracle(instance, rows="servers")
        restricted = RestrictedOracle(oracle, [])
        prices = np.random.default_rng(seed).random(oracle.rows.size)
        # One by one, not through the family's compiled call for all jobs.
        values = [response.value for response in restricted.responses(prices)]
        assert values == pytest.approx(oracle.block_values(prices)[0].tolist(), abs=1e-9)
        restricted.step = None  # a leaf's bound is rounded to what an objective can be
        assert restricted.bound(prices) == pytest.approx(oracle.bound(prices), abs=1e-9)

    check()


def test_staying_out_has_no_completion_and_nothing_of_the_rest():
    oracle = build_oracle(_two_jobs())
    dear = np.full(oracle.rows.size, 100.0)
    for decision, value in (
        (BranchDecision.at_least(0, COMPLETES, NEVER), 0.0),
        (BranchDecision.at_least(0, COMPLETES, 2), 0.0),
        (BranchDecision.at_most(0, Feature("slot_workers", (0,)), 0), 0.0),
        (BranchDecision.at_most(0, COMPLETES, NEVER - 1), 8 - 300.0),
        (BranchDecision.at_least(0, Feature("slot_workers", (1,)), 1), 8 - 300.0),
        (BranchDecision.at_most(0, COMPLETES, 1), 10 - 300.0),
    ):
        (answer, _) = RestrictedOracle(oracle, [decision]).responses(dear)
        assert isinstance(answer, Response)
        expected = value if value == 0.0 else pytest.approx(value, abs=3)
        assert answer.value == expected
        assert (answer.plan is None) == (value == 0.0)


def test_a_job_of_endless_work_has_no_schedule_and_needs_no_table():
    """A hundred thousand million worker-slots in a tree's certificate asked for terabytes."""
    oracle = build_oracle(_two_jobs(epochs=10**7, minibatches=10**4))
    decision = BranchDecision.at_most(0, COMPLETES, 2)
    (answer, _) = RestrictedOracle(oracle, [decision]).responses(np.zeros(oracle.rows.size))
    assert answer is None or answer.plan is None


def _two_jobs(**changes):
    from hindsched.instances.oasis.instance import OasisInstance

    job = {
        "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1, "minibatch_slots": 1,
        "gradient_mb": 0, "worker": {"gpu": 1, "mbps": 1}, "ps": {"mbps": 1},
        "utility": {"kind": "linear", "slope": -2, "intercept": 10},
    } | changes  # fmt: skip
    return OasisInstance.parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "two-jobs", "horizon": 2,
            "slot_seconds": 3600, "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": [{"name": "w1", "capacity": {"gpu": 1, "mbps": 1}}],
            "ps_servers": [{"name": "p1", "capacity": {"mbps": 1}}],
            "jobs": [{"name": "A", **job}, {"name": "B", **job}],
        }
    )  # fmt: skip


def test_decisions_survive_the_file():
    oracle = build_oracle(_two_jobs())
    decisions = (
        BranchDecision.at_most(0, COMPLETES, 1),
        BranchDecision.at_least(1, COMPLETES, NEVER),
        BranchDecision.at_most(1, COMPLETES, NEVER - 1),
        BranchDecision.at_least(0, Feature("workers", (0, 1)), 1),
        BranchDecision.at_most(0, Feature("slot_workers", (1,)), 0),
    )
    written = to_file(decisions, oracle.features, ["A", "B"])
    assert written == [
        {"job": "A", "of": "completion", "at_most": 1},
        {"job": "B", "admitted": False},
        {"job": "B", "admitted": True},
        {"job": "A", "of": "workers", "group": "w1", "slot": 2, "at_least": 1},
        {"job": "A", "of": "slot_workers", "slot": 2, "at_most": 0},
    ]
    assert from_file(written, oracle.features, ["A", "B"], "decisions") == decisions


@pytest.mark.parametrize("sense", ["min", "max"])
def test_a_leaf_s_bound_is_the_best_that_an_objective_can_be(sense):
    """The multiple of the step behind the sum, in the closest float on the outer side."""
    worse = -math.inf if sense == "min" else math.inf
    draws = np.random.default_rng(1)
    for step in (Fraction(1), Fraction(3), Fraction(1, 10), Fraction(7, 3)):
        inner = SimpleNamespace(
            sense=sense, step=step, round_outward=lambda terms, size: math.fsum(terms),
            instance=None, formulation="", layout="", rows=None, features={}, exact=True,
            implied=None,
        )  # fmt: skip
        node = RestrictedOracle(inner, [])
        for total in (*(k * 0.1 for k in range(-9, 9)), *(draws.random(9) * 1e6), 6.0, 0.0):
            found, exact = Fraction(node.round_outward([total])), Fraction(total)
            number = exact / step
            best = step * (math.ceil(number) if sense == "min" else math.floor(number))
            sign = 1 if sense == "min" else -1
            assert sign * (best - found) >= 0
            closer = Fraction(math.nextafter(float(found), -worse))
            assert sign * (closer - best) > 0
        assert node.round_outward([math.inf]) == math.inf
        inner.step = node.step = None
        assert node.round_outward([0.25]) == 0.25

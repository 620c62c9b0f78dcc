"""Rivals of astraea: schedules worked by hand, and one law each."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.shares import private_units
from hindsched.online.astraea.baselines import Hived
from hindsched.online.astraea.dynamics import build_cluster
from hindsched.online.protocol import Environment
from hindsched.online.registry import build_algorithm
from hindsched.online.simulator import simulate
from tests.strategies.astraea import astraea_instances


def cluster_of(servers, quotas, jobs, horizon=40):
    """Servers of (workers, 1 PS); jobs (name, tenant, arrival, slots of work, gang)."""
    return AstraeaInstance.parse(
        {
            "format": "hindsched/1",
            "family": "astraea",
            "name": "by-hand",
            "horizon": horizon,
            "slot_seconds": 60,
            "utility_origin": "arrival",
            "tenants": [
                {"name": name, "worker_quota": workers, "ps_quota": ps}
                for name, workers, ps in quotas
            ],
            "servers": [
                {"name": f"s{i + 1}", "workers": workers, "ps": 1}
                for i, workers in enumerate(servers)
            ],
            "worker_bandwidth_mbps": 1,
            "ps_bandwidth_mbps": 100,
            "jobs": [
                {
                    "name": name,
                    "tenant": tenant,
                    "arrival": arrival,
                    "epochs": work,
                    "chunks": gang,
                    "minibatches": 1,
                    "minibatch_slots": 1,
                    "update_slots": 0,
                    "gradient_mb": 0,
                    "utility": {"kind": "linear", "slope": -1, "intercept": 100},
                    "requested_workers": gang,
                }
                for name, tenant, arrival, work, gang in jobs
            ],
        }
    )


def spans(result):
    return {
        name: [(row.first, row.last, row.workers.tolist()) for row in rows]
        for name, rows in result.solution.rows.items()
    }


# Gandiva_fair


def test_gandiva_fair_by_hand():
    """One server of three workers, gangs of three, tickets 2 : 1: a, b, a, a, b in turn."""
    instance = cluster_of(
        [3],
        [("a", 2, 1), ("b", 1, 0)],
        [("ja", "a", 0, 3, 3), ("jb", "b", 0, 2, 3)],
    )
    # Strides 1.5 and 3, gang 3: passes after each run 4.5, 9 | 9, 9 | 13.5 ...
    result = simulate(instance, "gandiva-fair")
    assert spans(result) == {
        "ja": [(1, 1, [3]), (3, 4, [3])],
        "jb": [(2, 2, [3]), (5, 5, [3])],
    }
    assert not result.in_feasible_set
    assert result.solution.formulation == "optional,preemptive"
    assert result.violations == []


@pytest.mark.parametrize("gangs", [(1, 1, 1), (1, 3, 2), (4, 1, 2)])
def test_gandiva_fair_shares_follow_the_tickets_under_backlog(gangs):
    """Law: with jobs waiting in every tenant, its share of worker-slots is that of its tickets.

    Tenants with larger gangs get no more for it: a pass grows with the gang.
    """
    quotas = [("a", 6, 2), ("b", 4, 1), ("c", 2, 1)]
    jobs = [
        (f"{t}{k}", t, 0, 900, gang)
        for t, gang in zip("abc", gangs, strict=True)
        for k in range(12)
    ]
    instance = cluster_of([3, 3, 4, 2], quotas, jobs, horizon=300)
    served = Counter()
    for name, rows in simulate_rows(instance).items():
        served[name[0]] += sum(
            (row["to"] - row["from"] + 1) * sum(row["workers"].values()) for row in rows
        )
    total = sum(served.values())
    assert total >= 300 * 4  # a PS a job: four jobs at once
    for tenant, workers, _ in quotas:
        assert abs(served[tenant] / total / (workers / 12) - 1) <= 0.05


def simulate_rows(instance):
    """Every row that gandiva-fair gives out, also of jobs that never finish."""
    algorithm = build_algorithm("astraea", "gandiva-fair")
    algorithm.start(Environment(instance.with_jobs(()), {}, 0, "optional,modes", False))
    rows = {}
    for slot in range(1, instance.horizon + 1):
        arrivals = tuple(job for job in instance.jobs if job.arrival + 1 == slot)
        for name, found in algorithm.step(slot, arrivals).assignments.items():
            rows.setdefault(name, []).extend(found)
    return rows


# HiveD


def test_hived_by_hand():
    """Tenant a's second job waits at home for none: b's opportunistic job gives way."""
    instance = cluster_of(
        [2, 2],
        [("a", 2, 1), ("b", 2, 1)],
        [("b1", "b", 0, 4, 2), ("b2", "b", 0, 3, 2), ("a1", "a", 2, 2, 2)],
    )
    # b1 at home on s2 in 1-4; b2 opportunistic on s1 in 1-2, preempted by a1 in 3-4, and back:
    # home is free again in slot 5.
    result = simulate(instance, "hived")
    assert spans(result) == {
        "b1": [(1, 4, [0, 2])],
        "b2": [(1, 2, [2, 0]), (5, 5, [0, 2])],
        "a1": [(3, 4, [2, 0])],
    }


def test_hived_binds_a_tenants_servers_where_fewest_give_way():
    """As above, but c's like server idles: a1 is bound to it and b2 stays on s1 to its end."""
    instance = cluster_of(
        [2, 2, 2],
        [("a", 2, 1), ("b", 2, 1), ("c", 2, 1)],
        [("b1", "b", 0, 4, 2), ("b2", "b", 0, 3, 2), ("a1", "a", 2, 2, 2)],
    )
    assert spans(simulate(instance, "hived")) == {
        "b1": [(1, 4, [0, 2, 0])],
        "b2": [(1, 3, [2, 0, 0])],
        "a1": [(3, 4, [0, 0, 2])],
    }


class WatchedHived(Hived):
    """Checks the law after every decision from what is held, not from the cluster's books."""

    decisions = 0

    def reallocate(self):
        super().reallocate()
        instance = self.environment.cluster
        workers, ps = private_units(instance)
        waiting = set()
        for name, job in self.jobs.items():
            u = instance.tenant_index[job.tenant]
            if name in self._guaranteed or job.tenant in waiting:
                continue
            own = [
                self.held[other].facts["home"][1]
                for other in self._guaranteed & set(self.held)
                if self.jobs[other].tenant == job.tenant
            ]
            free = workers[u, :, 0] - sum((row.workers for row in own), start=0)
            free_ps = ps[u, :, 0] - sum((row.ps for row in own), start=0)
            gang = job.requested_workers
            if workers[u].sum() < gang:
                continue  # its tenant's servers can never hold it
            # The next in the queue waits for its own tenant's jobs only.
            assert free.sum() < gang or not (free_ps > 0).any()
            waiting.add(job.tenant)
            type(self).decisions += 1


@given(st.data())
def test_hived_guaranteed_jobs_never_wait_for_foreign_ones(data):
    """Law: who is next in a tenant's queue would not fit home even without foreign jobs."""
    jobs = [
        (
            f"{tenant}{k}",
            tenant,
            data.draw(st.integers(0, 6)),
            data.draw(st.integers(1, 6)),
            data.draw(st.integers(1, 3)),
        )
        for tenant in "ab"
        for k in range(data.draw(st.integers(1, 4)))
    ]
    jobs.sort(key=lambda job: job[2])
    quotas = [("a", 3, 1), ("b", 4, 2)]
    result = simulate(cluster_of([3, 2, 2], quotas, jobs), WatchedHived())
    assert not result.solution.violations()
    assert len(result.solution.rows) == len(jobs)


# BatchSche


def test_batchsche_by_hand():
    """Batches at 1, 2, 4; each tenant on its own server only."""
    instance = cluster_of(
        [2, 2],
        [("a", 2, 1), ("b", 2, 1)],
        [("a1", "a", 0, 1, 2), ("a2", "a", 0, 2, 2), ("b1", "b", 2, 1, 2)],
    )
    # tau = 1: a1 (1 slot) runs in slot 2; a2 (2 slots) waits for tau = 2 and runs in 3-4;
    # b1 arrives at 2, is planned at tau = 4 and runs in slot 5.
    result = simulate(instance, "batchsche")
    assert spans(result) == {
        "a1": [(2, 2, [2, 0])],
        "a2": [(3, 4, [2, 0])],
        "b1": [(5, 5, [0, 2])],
    }
    assert result.violations == []


@given(astraea_instances(horizon=24))
def test_batchsche_stays_on_the_tenants_own_units(instance):
    """Law: no job uses a unit that is not its tenant's."""
    result = simulate(instance, "batchsche")
    assert result.violations == []
    workers, ps = private_units(instance)
    for job in instance.jobs:
        u = instance.tenant_index[job.tenant]
        for row in result.solution.rows.get(job.name, ()):
            assert (row.workers <= workers[u, :, row.worker_type]).all()
            assert (row.ps <= ps[u, :, row.ps_type]).all()


@given(astraea_instances(types=2))
def test_a_gang_gets_what_3i_asks(instance):
    environment = Environment(instance.with_jobs(()), {}, 0, "optional,modes", False)
    cluster = build_cluster(environment)
    for job in instance.jobs:
        free = cluster.room.workers.copy(), cluster.room.ps.copy()
        placement = cluster.place(job, cluster.fixed_workers(job))
        assert (placement is None) == (cluster.fixed_workers(job) == 0) or placement is None
        if placement is not None:
            assert cluster.progress(job, placement) > 0
            cluster.release(job, placement)
        assert (cluster.room.workers == free[0]).all()
        assert (cluster.room.ps == free[1]).all()
    for name in ("gandiva-fair", "hived"):
        result = simulate(instance, name)
        broken = {violation.rule for violation in result.solution.violations()}
        assert broken == set()

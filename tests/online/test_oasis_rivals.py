"""The baselines of OASiS: a schedule of four jobs worked by hand, and a law at every event."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from hindsched.errors import InputError
from hindsched.instances.io import parse_instance, read
from hindsched.online.oasis.baselines import Dorm, Rrh
from hindsched.online.oasis.dynamics import OasisCluster
from hindsched.online.simulator import simulate

DATA = Path(__file__).resolve().parent.parent / "data" / "instances"
CONTENDED = ["oasis-t10-i10-h5-s1", "oasis-t10-i10-h10-s0"]


def job(name: str, arrival: int, workers: int, slots: int, intercept: float, slope: float) -> Any:
    """A job of workers x slots worker-slots that sends no gradients."""
    return {
        "name": name, "arrival": arrival, "epochs": slots, "chunks": workers, "minibatches": 1,
        "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": 1}, "ps": {},
        "utility": {"kind": "linear", "slope": -slope, "intercept": intercept},
    }  # fmt: skip


@pytest.fixture
def four_jobs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One server of four GPUs; every job's fixed size is its number of chunks."""
    monkeypatch.setattr(OasisCluster, "fixed_workers", lambda _, record: record.chunks)
    return parse_instance(
        {
            "format": "hindsched/1", "family": "oasis", "name": "four", "horizon": 10,
            "slot_seconds": 3600, "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": [{"name": "w1", "capacity": {"gpu": 4}}],
            "ps_servers": [{"name": "p1", "capacity": {"mbps": 1}}],
            "jobs": [
                job("j1", 1, 3, 2, 10, 1), job("j2", 1, 2, 3, 20, 2),
                job("j3", 1, 1, 1, 5, 1), job("j4", 2, 4, 1, 8, 1),
            ],
        }
    )  # fmt: skip


def completions(result: Any) -> list[int | None]:
    assert result.violations == []
    return [result.solution.completion(record.name) for record in result.instance.jobs]


def test_fifo_by_hand(four_jobs: Any) -> None:
    # j2 does not fit beside j1 and blocks j3; j4 needs the whole server.
    assert completions(simulate(four_jobs, "fifo")) == [2, 5, 3, 6]


def test_drf_by_hand(four_jobs: Any) -> None:
    # Slot 1: 2, 1, 1 workers; slot 2 (j3 done, j4 new): 2, 1, 1; slot 4 (j1 done): 2, 2.
    assert completions(simulate(four_jobs, "drf")) == [3, 5, 1, 4]


def test_rrh_by_hand(four_jobs: Any) -> None:
    # Slot 1 ranks j3 (2) > j2 (5/3) > j1 (1/2); slot 2 j2 (3) > j4 (5/4) > j1; slot 4 j4 > j1.
    result = simulate(four_jobs, "rrh")
    assert completions(result) == [6, 3, 1, 4]
    assert result.objective == pytest.approx(5 + 16 + 5 + 6)
    nets = {row["job"]: row["net"] for row in result.report["admissions"]}
    assert nets == pytest.approx({"j1": 9, "j2": 13, "j3": 2, "j4": 5})


def test_rrh_refuses_below_its_threshold(four_jobs: Any) -> None:
    result = simulate(four_jobs, "rrh", settings={"threshold": 4})
    # j3 nets 2; without it nothing else changes for the others' admission.
    assert result.rejected == ("j3",)
    with pytest.raises(InputError, match="threshold"):
        simulate(four_jobs, "rrh", settings={"threshold": math.nan})


def test_dorm_by_hand(four_jobs: Any) -> None:
    # One running job may change at each event, and the budget for unfairness is ceil(0.2 R) = 1.
    result = simulate(four_jobs, "dorm")
    assert result.violations == []
    assert not any(event["kept"] for event in result.report["events"])
    assert all(event["changed"] <= 1 for event in result.report["events"])
    assert sorted(completions(result)) == [1, 3, 4, 5]


def test_dorm_without_churn_bound_is_drf_here(four_jobs: Any) -> None:
    settings = {"theta2": 1.0}
    assert completions(simulate(four_jobs, "dorm", settings=settings)) == [3, 5, 1, 4]


class WatchedRrh(Rrh):
    """Admitted exactly if the reward less the others' losses, computed anew, is above 0."""

    def admit(self, record: Any) -> bool:
        def slots(other: Any, work: float) -> int:
            return max(1, math.ceil(work / self.cluster.fixed_workers(other) - 1e-9))

        def earns(other: Any, end: int) -> float:
            late = end > self.environment.cluster.horizon
            return 0.0 if late else other.utility.value(end - other.arrival)

        delay = slots(record, self.cluster.work(record))
        net = earns(record, self.slot + delay - 1)
        for name, other in self.jobs.items():
            end = self.slot + slots(other, self.remaining[name]) - 1
            net -= earns(other, end) - earns(other, end + delay)
        admitted = super().admit(record)
        assert admitted == (net > self.threshold)
        return admitted

    def reallocate(self) -> None:
        super().reallocate()
        for row in self._admissions:
            assert row["admitted"] == (row["net"] > self.threshold)
            assert row["admitted"] or row["job"] not in self.jobs


@pytest.mark.parametrize("name", CONTENDED)
@pytest.mark.parametrize("rival", [WatchedRrh])
def test_the_law_holds_at_every_event(name: str, rival: Any) -> None:
    result = simulate(read(DATA / f"{name}.json"), rival())
    assert result.violations == []


@pytest.mark.parametrize("name", CONTENDED)
def test_dorm_keeps_both_theta_constraints_at_every_event(name: str) -> None:
    theta1, theta2 = 0.4, 0.5
    rival = Dorm(theta1, theta2)
    result = simulate(read(DATA / f"{name}.json"), rival)
    assert result.violations == []
    events = result.report["events"]
    assert any(event["running"] for event in events)
    for event in events:
        assert event["changed"] <= math.ceil(theta2 * event["running"])
        assert event["kept"] or event["fairness_loss"] <= math.ceil(2 * theta1 * 5) + 1e-6


def test_dorm_fills_what_is_free_where_its_program_has_no_point(
    four_jobs: Any, monkeypatch
) -> None:
    """Nobody waits beside idle servers because unfairness cannot be repaired."""
    monkeypatch.setattr(Dorm, "_solve", lambda *arguments: None)
    result = simulate(four_jobs, "dorm")
    assert result.violations == []
    assert all(event["changed"] == 0 for event in result.report["events"])
    assert all(result.solution.completion(job.name) for job in four_jobs.jobs)

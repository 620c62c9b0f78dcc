"""Bounds, search and schedules of gang: known answers, and laws on instances of any size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

import hindsched as hs
from hindsched.instances.gang.generator import generate
from hindsched.instances.gang.instance import KINDS, GangInstance, gang_data
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.status import Status
from hindsched.solvers.families.gang.prices import Clock, climb_prices, first_cut
from hindsched.solvers.families.gang.replay import incumbents, replay
from hindsched.solvers.families.gang.search import Search
from hindsched.solvers.kernels.gang.orders import FOREVER, total_cost
from hindsched.solvers.kernels.gang.responses import Blocks, pausing_responses
from hindsched.solvers.kernels.gang.sequences import starts_in_sequence
from hindsched.solvers.oracles.base import build_oracle
from tests.brute_force import gang as brute_force
from tests.strategies.gang import tiny_instances


@given(tiny_instances(longest=2))
def test_methods_agree_with_the_brute_force(instance):
    turn = instance.serial_end + len(instance.jobs)
    kind = KINDS[turn % 3]
    for goal in ("completion", "makespan", "deadlines"):
        formulation = kind if goal == "completion" else f"{kind},{goal}"
        best = float(brute_force.optimum(instance.to_dict(), kind, goal))
        assert hs.solve(instance, "bound", formulation=formulation, time_limit=20).bound <= best
        found = hs.solve(instance, formulation=formulation, time_limit=30)
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("formulation", GangInstance.formulations)
@pytest.mark.parametrize("preset", ["paper", "servers"])
def test_schedules_are_feasible_and_never_below_the_bound(formulation, preset):
    instance = generate(preset, 3, jobs=40, deadline_factor=(1.0, 2.0))
    known = list(incumbents(instance, formulation))
    best = min(solution.objective() for solution in known)
    if formulation.endswith("makespan"):
        certificate = certify(build_oracle(instance, formulation), np.zeros(0))
    else:
        end = max(int(solution.completions.max()) for solution in known)
        climb = climb_prices(instance, formulation, end, best, Clock(0.3))
        certificate = certify(*climb.result())
    again = verify_certificate(instance, certificate.to_dict())
    assert again.bound == certificate.bound
    assert certificate.bound <= best
    for solution in known:
        assert solution.violations() == []


def wide_instance(jobs, gpus):
    """Many jobs side by side."""
    draw = np.random.default_rng(11)
    listed = [
        {"name": f"j{k}", "submit": k, "duration": int(p), "gpus": int(g), "weight": int(w)}
        for k, (p, g, w) in enumerate(
            zip(
                draw.integers(900, 2_000, jobs),
                draw.choice([1, 2, 8], jobs),
                draw.integers(1, 9, jobs),
                strict=True,
            )
        )
    ]
    return GangInstance.parse(gang_data("wide", listed, gpus=gpus))


@pytest.mark.parametrize("gpus", [16, 150])
def test_moves_at_no_heat_only_gain(gpus):
    instance = wide_instance(jobs=120, gpus=gpus)
    search = Search(instance, KINDS[0], seed=3)
    search.try_starts(replay(instance, "fifo").starts)
    sequence = np.argsort(search.start, kind="stable")
    costs = [search.cost]
    for _ in range(60):
        search.move(sequence, 40, 1e-9, 50)
        costs.append(total_cost(search.jobs, starts_in_sequence(sequence, search.jobs, gpus)))
    assert costs == sorted(costs, reverse=True)
    assert sorted(sequence) == list(range(120))
    assert search.cost == costs[-1] < 0.99 * costs[0]
    solution = search.solution()
    assert solution.violations() == []
    assert solution.objective() == pytest.approx(search.cost, rel=1e-12)


def test_a_schedule_in_sequence_of_its_starts_is_no_worse():
    instance = generate("bursty", 2, jobs=80, gpus=16)
    search = Search(instance, KINDS[0])
    for policy in ("fifo", "fifo-skip", "easy", "sjf"):
        known = replay(instance, policy).starts
        sequence = np.argsort(known, kind="stable")
        start = starts_in_sequence(sequence, search.jobs, 16)
        assert (start <= known).all()
        assert (np.diff(start[sequence]) >= 0).all()
        search.cost = math.inf
        search.try_starts(start)
        assert search.solution().violations() == []


def test_a_pausing_jobs_best_response_is_the_cheapest_of_all_completions():
    draw = np.random.default_rng(1)
    for _ in range(600):
        end = int(draw.integers(3, 14))
        cut = np.unique([0, *draw.integers(0, end, draw.integers(1, 8)), end])
        price = draw.choice([0.0, 0.3, 1.0, 2.0, 5.0], cut.size - 1)
        submit, most = int(draw.integers(0, 4)), int(draw.choice([1, 2, 3, 5]))
        work, slope = int(draw.integers(1, 12)), float(draw.choice([0.0, 0.3, 1, 2, 5]))
        latest = FOREVER if slope else int(draw.integers(2, 20))
        skip = math.inf if slope else 4.0
        columns = (submit, work, 1, most, slope, latest, skip)
        blocks = Blocks(*(np.array([value]) for value in columns))
        completion, value, use = pausing_responses(cut, price, blocks, np.ones(1))
        per_slot = np.zeros(60)  # free behind the last cut
        for k in range(price.size):
            per_slot[cut[k] + 1 : cut[k + 1] + 1] = price[k]
        costs = [skip]
        for last in range(submit - (-work // most), min(latest, 50) + 1):
            units = np.sort(np.repeat(per_slot[submit + 1 : last + 1], most))[:work]
            costs.append(slope * (last - submit) + float(units.sum()))
        assert value[0] == pytest.approx(min(costs))
        if completion[0] >= 0:
            own = slope * float(completion[0] - submit)
            assert own + float(use @ price) == pytest.approx(value[0])


def test_a_log_that_begins_late_is_cut_as_finely_as_any_other():
    """A month before the first submission gets one interval, and the rest as many as without."""
    data = hs.generate("gang", jobs=12, seed=3).to_dict()
    early = hs.read(data)
    late = 30 * 24 * 3600
    data["horizon"] += late
    for job in data["jobs"]:
        for key in {"submit", "deadline"} & set(job):
            job[key] += late
    assert first_cut(hs.read(data), 40 + late).tolist() == [
        0, *(first_cut(early, 40) + late).tolist()
    ]  # fmt: skip

"""Bounds, search and schedules of gang: known answers, and laws on instances of any size."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import hindsched as hs
from hindsched.instances.gang.generator import generate
from hindsched.instances.gang.instance import KINDS, GangInstance, gang_data
from hindsched.solvers.base import build_oracle
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.result import Status
from hindsched.solvers.door.work import Clock
from hindsched.solvers.families.gang.prices import ascend_prices, first_cut
from hindsched.solvers.families.gang.replay import incumbents, replay
from hindsched.solvers.families.gang.search import SequenceSearch
from hindsched.solvers.kernels.gang.sequences import starts_in_sequence, total_cost
from tests.second_opinion.settle import optimum
from tests.strategies.gang import tiny_instances


@given(tiny_instances(longest=2))
def test_methods_agree_with_the_brute_force(instance):
    turn = instance.serial_end + len(instance.jobs)
    kind = KINDS[turn % 3]
    for goal in ("completion", "makespan", "deadlines"):
        formulation = kind if goal == "completion" else f"{kind},{goal}"
        best = optimum(instance, formulation)
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
        ascent = ascend_prices(instance, formulation, end, best, Clock(0.3))
        certificate = certify(*ascent.result())
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
    search = SequenceSearch(instance, KINDS[0], seed=3)
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


PAGE = Path("docs/problems/gang.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_the_page_has_these_optima_and_bounds(kind):
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    data = json.loads(text)
    row = next(line for line in PAGE.splitlines() if re.match(rf"\| `{kind}` \| \d", line))
    *optima, dual, printed = map(float, row.split("|")[2:-1])
    for goal, value in zip(("completion", "makespan", "deadlines"), optima, strict=True):
        formulation = kind if goal == "completion" else f"{kind},{goal}"
        assert optimum(hs.read(data), formulation) == value
        found = hs.solve(hs.read(data), "milp", formulation=formulation)
        assert (str(found.status), found.objective) == ("optimal", pytest.approx(value, abs=1e-9))
    for form, bound in ((None, dual), ("printed", printed)):
        model = hs.model(hs.read(data), formulation=kind, form=form)
        assert model.relax().solve().objective == pytest.approx(bound, abs=1e-4)

"""mpi-sppy on the same blocks: its extensive form is ours, its multipliers a certificate."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
import pytest

import hindsched as hs
from hindsched.analysis.foresight.certificates import certify
from hindsched.analysis.foresight.decomposition import Scenarios, scenarios_of
from hindsched.models.futures import Futures, build_extensive
from hindsched.solvers.door.program import solve_program
from tests.analysis.foresight.toys import farmer

pytest.importorskip("mpisppy", reason="mpi-sppy is not installed: the extra foresight")

HEDGING = {
    "solver_name": "appsi_highs", "PHIterLimit": 10, "defaultPHrho": 1.0, "convthresh": 1e-6,
    "verbose": False, "display_progress": False, "display_timing": False,
    "iter0_solver_options": {}, "iterk_solver_options": {}, "toc": False,
}  # fmt: skip


def extensive(given: Scenarios) -> float:
    from mpisppy.opt.ef import ExtensiveForm

    form = ExtensiveForm(
        {"solver": "appsi_highs"}, given.names, given.create, all_nodenames=given.nodes
    )
    form.solve_extensive_form()
    return float(form.get_objective_value())


def test_farmer() -> None:
    models, decisions = farmer()
    given = Scenarios(models, decisions, [1 / 3] * 3)
    assert given.nodes is None
    assert extensive(given) == pytest.approx(108_390, abs=1)


def tree() -> Futures:
    return Futures.of(hs.tree("gang", at=[2, 4], branches=2, seed=4, jobs=4))


@pytest.mark.parametrize("policies", ["run", "commit"])
def test_extensive_form_is_ours(policies: str) -> None:
    ours = build_extensive(tree(), policies)
    assert solve_program(ours.model).has_point
    given = scenarios_of(tree(), policies)
    assert (given.nodes is not None) == (policies == "run")
    assert extensive(given) == pytest.approx(float(pyo.value(ours.model.expected)))


def test_multipliers_become_a_certificate() -> None:
    from mpisppy.opt.subgradient import Subgradient

    futures = Futures.of(hs.tree("gang", at=[3], branches=3, seed=4, jobs=6))
    given = scenarios_of(futures, "run")
    solver = Subgradient(HEDGING, given.names, given.create, all_nodenames=given.nodes)
    solver.subgradient_main()
    own: list[dict[Any, float]] = [{} for _ in futures.instances]
    for s, found in enumerate(given.multipliers(solver)):
        jobs = futures.instances[s].jobs
        for (_, (_, record, (slot,))), price in found.items():
            at = next((j for j in range(len(jobs)) if futures.record(s, j) == record), None)
            if at is not None:
                own[s][at, slot, slot + int(jobs[at].duration) - 1] = price
    assert any(price for terms in own for price in terms.values())
    formulation = futures.instances[0].check_formulation(None)
    made = certify(futures, "run", formulation, futures.probabilities, 60, 60, own=own)
    ours = build_extensive(futures, "run")
    assert solve_program(ours.model).has_point
    online = float(pyo.value(ours.model.expected))
    assert made is not None
    assert 0.6 * online <= made["bound"] <= online + 1e-6

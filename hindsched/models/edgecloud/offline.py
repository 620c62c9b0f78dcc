"""The edgecloud family's programs of problem (2).

``no-migration`` (default) is problem (2) with every chunk on one worker, which is what A_online may
do; ``literal`` is (2) as printed, which lets work move and split. Both carry the storage rows of
problem (7) where storage is limited. Symbols stand at the top of ``no_migration.py`` and
``literal.py``; the reformulations (4), (6), (8), (9) are in ``relaxations.py`` and ``dual.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.base import PRINTED, Commitments, Duals, OfflineProgram, choose_form
from hindsched.models.edgecloud.builder import ProgramBuilder
from hindsched.models.edgecloud.literal import LiteralBuilder
from hindsched.models.edgecloud.no_migration import NoMigrationBuilder
from hindsched.models.edgecloud.reading import load_solution, read_literal, read_no_migration
from hindsched.models.edgecloud.subproblem import build_subproblem
from hindsched.models.edgecloud.symbols import JOB_SLOTS, SYMBOLS, EdgecloudNames
from hindsched.models.edgecloud.windows import last_slots
from hindsched.models.sums import row_prices
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.frozen_schedule import Past, read_past
from hindsched.solutions.edgecloud.ps import place_parameter_servers
from hindsched.solutions.edgecloud.runs import Runs
from hindsched.solutions.edgecloud.solution import EdgecloudSolution

__all__ = ["FORMS", "EdgecloudProgram", "build_offline", "build_subproblem"]

STRONG = "strong"
FORMS: dict[str, tuple[str, ...]] = {"no-migration": (STRONG,), "literal": (PRINTED,)}
BUILDERS: Mapping[str, type[ProgramBuilder]] = {STRONG: NoMigrationBuilder, PRINTED: LiteralBuilder}


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudProgram(EdgecloudNames, OfflineProgram[EdgecloudSolution]):
    """A program of problem (2).

    Parameters
    ----------
    past : Past
        What is fixed.
    last : dict
        Last slot in which each open job may run.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = JOB_SLOTS

    instance: EdgecloudInstance
    past: Past
    last: dict[int, int]

    def load(self, solution: EdgecloudSolution) -> None:
        """Set the variables' values from a solution of the whole instance, as a start."""
        load_solution(self.model, self.past, solution, printed=self.form == PRINTED)

    def extract(self) -> EdgecloudSolution | None:
        """The solution at the variables' values; None if their counts do not add up."""
        past, instance = self.past, self.instance
        rows = list(past.rows)
        together: set[int] = set()
        taken: dict[tuple[int, int], set[int]] = {}
        for j in past.open_jobs:
            if round(self.model.zeta[j].value):
                together.add(j)
            if self.form == PRINTED:
                found = read_literal(self.model, instance, past, self.last[j], j, taken)
            else:
                found = read_no_migration(self.model, instance, past, self.last[j], j)
            if found is None:
                return None
            rows += found
        runs = Runs.of(rows)
        locked = set(range(len(instance.jobs))) - set(past.open_jobs)
        cloud_only = locked - {run.job for run in rows if run.place < len(instance.worker_list)}
        holds = place_parameter_servers(instance, runs, together | cloud_only, past.ps_busy)
        return EdgecloudSolution(instance, runs, holds, self.formulation)

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of (2d) as prices of the oracle: ``worker_capacity``, shape (W, T)."""
        instance = self.instance
        members = list(instance.groups.values())
        prices = np.zeros((len(instance.worker_list), instance.horizon))
        (place, t), found = row_prices(self.model.eq_2d, duals, sign=-1, parts=2)
        if not found.any():
            return {"worker_capacity": prices}
        inside = t <= instance.horizon
        for p, slot, price in zip(place[inside], t[inside], found[inside], strict=True):
            prices[members[p] if self.form == PRINTED else p, slot - 1] = price
        return {"worker_capacity": prices}


def build_offline(
    instance: EdgecloudInstance,
    formulation: str | None = None,
    *,
    form: str | None = None,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: Solution | None = None,
    edge_ps_only: bool = False,
) -> EdgecloudProgram:
    """Build the offline program.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    formulation : str, optional
        ``no-migration`` (default) or ``literal``.
    form : str, optional
        ``strong`` is that of ``no-migration``, ``printed`` that of ``literal``.
    relax : bool
        Drop integrality.
    commitments : Commitments, optional
        What is already fixed.
    incumbent : EdgecloudSolution, optional
        A feasible solution, for a shorter time limit.
    edge_ps_only : bool
        Ask for an edge PS in every slot in which a job uses an edge worker.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_offline(hs.generate("edgecloud", jobs=2), form="printed").formulation
    'literal'
    """
    known = None if formulation is None else instance.check_formulation(formulation)
    formulation, form = choose_form(FORMS, known, form)
    form = form or FORMS[formulation][0]
    past = read_past(instance, commitments)
    given = incumbent if isinstance(incumbent, EdgecloudSolution) else None
    last = last_slots(instance, formulation, past, given, edge_ps_only=edge_ps_only)
    builder = BUILDERS[form](instance, past, last, relax, edge_ps_only)
    return EdgecloudProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax,
        model=builder.build(), past=past, last=last,
        again=partial(
            build_offline, instance, formulation, form=form, relax=relax, commitments=commitments,
            incumbent=incumbent, edge_ps_only=edge_ps_only,
        ),
    )  # fmt: skip

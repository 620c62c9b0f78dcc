"""The edgecloud family's programs of problem (2).

``no-migration`` (default) is problem (2) with every chunk on one worker, which is what A_online may
do; ``literal`` is (2) as printed, which lets work move and split: another problem, with another
optimum. Both carry the storage rows of problem (7) where storage is limited. What they share is in
``shared_rules.py``, the linear relaxations (4) and (8) in ``relaxations.py``, the duals (6) and (9)
in ``dual.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.base import PRINTED, Commitments, Duals, OfflineProgram, choose_form
from hindsched.models.edgecloud.literal import literal
from hindsched.models.edgecloud.no_migration import no_migration
from hindsched.models.edgecloud.reading import load_solution, read_program
from hindsched.models.edgecloud.sets import last_slots, read_sets
from hindsched.models.edgecloud.subproblem import build_subproblem
from hindsched.models.edgecloud.symbols import JOB_SLOTS, SYMBOLS, EdgecloudNames
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.frozen_schedule import Past, read_past
from hindsched.solutions.edgecloud.solution import EdgecloudSolution

__all__ = ["FORMS", "EdgecloudProgram", "build_offline", "build_subproblem"]

FORMS: dict[str, tuple[str, ...]] = {"no-migration": ("strong",), "literal": (PRINTED,)}


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
        load_solution(self.model, self.past, solution, literal=self.formulation == "literal")

    def extract(self) -> EdgecloudSolution | None:
        """The solution at the variables' values; None if their counts do not add up."""
        return read_program(self.model, self.instance, self.past, self.last, self.formulation)

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of (2d) as prices of the oracle: ``worker_capacity``, shape (W, T)."""
        instance = self.instance
        groups = list(instance.groups.values())
        prices = np.zeros((len(instance.worker_list), instance.horizon))
        for (place, t), row in self.model.eq_2d.items():
            if t <= instance.horizon:
                workers = groups[place] if self.formulation == "literal" else (place,)
                prices[list(workers), t - 1] = max(0.0, -duals.get(row, 0.0))
        return {"worker_capacity": prices}


def build_offline(
    instance: EdgecloudInstance,
    formulation: str | None = None,
    *,
    form: str | None = None,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: Solution | None = None,
) -> EdgecloudProgram:
    """Build the offline program.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    formulation : str, optional
        ``no-migration`` (default) or ``literal``.
    form : str, optional
        Each formulation has one: ``strong`` and ``printed``.
    relax : bool
        Drop integrality.
    commitments : Commitments, optional
        What is already fixed.
    incumbent : EdgecloudSolution, optional
        A feasible solution, for a shorter time limit.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_offline(hs.generate("edgecloud", jobs=2), "literal").form
    'printed'
    """
    formulation, form = choose_form(FORMS, instance.check_formulation(formulation), form)
    past = read_past(instance, commitments)
    given = incumbent if isinstance(incumbent, EdgecloudSolution) else None
    last = last_slots(instance, formulation, past, given)
    build = literal if formulation == "literal" else no_migration
    return EdgecloudProgram(
        instance=instance, formulation=formulation, form=form or FORMS[formulation][0],
        relaxed=relax, model=build(read_sets(instance, formulation, past, last), relax), past=past,
        last=last,
        again=partial(
            build_offline, instance, formulation, form=form, relax=relax, commitments=commitments,
            incumbent=incumbent,
        ),
    )  # fmt: skip

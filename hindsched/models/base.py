"""What every family's declarative programs share: what is fixed, and how models are found.

Each family's module ``models/<family>/offline.py`` offers

``build_offline(instance, formulation=None, *, relax=False, commitments=None, incumbent=None)``
    The offline program as a Pyomo model: the jobs' blocks, the linking rows, the objective. Every
    constraint component carries the paper's equation number in its name (``eq_2``, ``eq_2b``).
    `relax` drops integrality. `incumbent` is a feasible solution from which a family may derive a
    time limit.
``ON_SERVERS`` (optional)
    Keywords of `build_offline` under which every optimum can be placed on real servers, for
    families whose default program is aggregated.
``build_subproblem(instance, job, formulation=None)``
    One block of the same, with mutable prices and residual capacities (`set_subproblem`).
``extract(model, instance, formulation=None)``
    The `Solution` at the variables' present values, or None if it could not be placed.
``load(model, solution)``
    The reverse: set the variables' values from a solution (a start for the solver).
``capacity_prices(model, duals)``
    The duals of the linking rows as prices by row set, in the shapes of the family's oracle with
    one row a server (``rows="servers"``), non-negative on inequalities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType

from hindsched.instances.base import family_module
from hindsched.solutions.base import Assignments


@dataclass(frozen=True)
class Commitments:
    """What an online scheduler can no longer change when it plans again.

    Parameters
    ----------
    now : int
        First slot still open. What ran before it is history, also for a job that had none.
    assignments : mapping
        Rows by job in the solution file's form: history before `now` and, for locked jobs, the
        promise from `now` on. A job that is not locked is open from `now` on.
    locked : frozenset of str
        Jobs whose later rows must stay.
    rejected : frozenset of str
        Jobs refused for good.
    """

    now: int = 1
    assignments: Assignments = field(default_factory=lambda: dict[str, list[dict[str, object]]]())
    locked: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()

    def history(self, job: str) -> list[dict[str, object]]:
        """Rows of `job` cut to the slots before `now`."""
        rows: list[dict[str, object]] = []
        for row in self.assignments.get(job, ()):
            if row["from"] < self.now:
                rows.append({**row, "to": min(row["to"], self.now - 1)})
        return rows


def model_module(family: str) -> ModuleType:
    """The module with a family's declarative programs, found by its word."""
    return family_module("models", family, "offline")


def group_identical(capacities: Mapping[str, tuple[float, ...]]) -> dict[str, list[str]]:
    """Group servers of equal capacities, in order of appearance.

    Parameters
    ----------
    capacities : mapping
        Capacity vector by server name.

    Returns
    -------
    dict
        Name of the group's first server -> names of all its servers.
    """
    leaders: dict[tuple[float, ...], str] = {}
    groups: dict[str, list[str]] = {}
    for server, capacity in capacities.items():
        leader = leaders.setdefault(tuple(capacity), server)
        groups.setdefault(leader, []).append(server)
    return groups

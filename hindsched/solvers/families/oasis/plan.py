"""A job's schedule as oasis best responses give it."""

from __future__ import annotations

from dataclasses import dataclass

from hindsched.solvers.families.oasis.groups import Placements


@dataclass(frozen=True)
class OasisPlan:
    """A job's schedule.

    Parameters
    ----------
    end : int
        Completion slot.
    workers, ps : Placements
        Where its workers and PSs run.
    """

    end: int
    workers: Placements
    ps: Placements

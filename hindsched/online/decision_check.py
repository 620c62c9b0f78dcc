"""What the simulator does with a decision before it counts: check its form and take it over.

A decision is a promise. The rows are copied here, so that nothing an algorithm does to its own
objects afterwards can change what it promised, and everything that is wrong in every family is
refused here by name: a decision that is no decision, a job that has not arrived, a row in the past,
a job that was refused before.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hindsched.errors import InputError, Refused
from hindsched.online.protocol import Decision
from hindsched.online.truth import RowTruth
from hindsched.solutions.base import Assignment


@dataclass
class DecisionCheck:
    """Takes over one run's decisions, slot by slot.

    Parameters
    ----------
    truth : RowTruth
        The run's truth, which knows the jobs revealed so far and the form of a row.
    rejected : list of str
        Jobs rejected so far, in order.
    """

    truth: RowTruth
    rejected: list[str] = field(default_factory=list)
    _accepted: set[str] = field(default_factory=set)

    def take_over(self, slot: int, decision: Any) -> Decision:
        """Check a decision and return a copy of it that only the simulator holds.

        Parameters
        ----------
        slot : int
            The present slot.
        decision : Decision
            What the algorithm returned.

        Raises
        ------
        Refused
            By ``decision`` (its form), ``row`` (a row's form), ``no peeking`` or ``irrevocable``.
        """
        here = f"slot {slot}"
        known = self.truth.known_jobs(slot)
        if not isinstance(decision, Decision):
            raise Refused("decision", here, f"{type(decision).__name__} is no Decision")
        if not isinstance(decision.assignments, Mapping):
            raise Refused("decision", here, "assignments must map job names to rows")
        rejected = _names("rejected", decision.rejected, here)
        admitted = _names("admitted", decision.admitted, here)
        for job in (*rejected, *admitted, *decision.assignments):
            if job not in known:
                raise Refused("no peeking", f"job {job}, {here}", "the job has not arrived")
        for job in rejected:
            if job in self.rejected:
                raise Refused("irrevocable", f"job {job}, {here}", "the job was rejected before")
            if job in self._accepted or job in admitted or decision.assignments.get(job):
                raise Refused("irrevocable", f"job {job}, {here}", "the job was accepted")
            self.rejected.append(job)
        for job in admitted:
            if job in self.rejected:
                raise Refused("irrevocable", f"job {job}, {here}", "the job was rejected")
            self._accepted.add(job)
        rows = {job: self._rows(job, slot, given) for job, given in decision.assignments.items()}
        return Decision(rows, admitted, rejected)

    def _rows(self, job: str, slot: int, given: Any) -> list[Assignment]:
        """Copy a job's rows; refuse those that no solution file could hold."""
        where = f"job {job}, slot {slot}"
        if not isinstance(given, Sequence) or not all(isinstance(row, dict) for row in given):
            raise Refused("row", where, "rows must be a list of objects")
        rows: list[Assignment] = [_copied(row) for row in given]
        if not rows:
            return rows
        if job in self.rejected:
            raise Refused("irrevocable", where, "the job was rejected")
        try:
            self.truth.check_form(job, rows)
        except InputError as error:
            raise Refused("row", where, str(error)) from None
        for row in rows:
            if "from" in row and row["from"] < slot:
                raise Refused("irrevocable", where, f"row begins in the past, at {row['from']}")
        self._accepted.add(job)
        return rows


def _names(kind: str, given: Any, here: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise Refused("decision", here, f"{kind} must be a list of job names")
    for job in given:
        if not isinstance(job, str):
            raise Refused("decision", here, f"{kind} must be a list of job names, not {job!r}")
    return tuple(given)


def _copied(value: Any) -> Any:
    """A deep copy; rows are small dicts of numbers and names, which need no bookkeeping."""
    if isinstance(value, int | float | str):
        return value
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    return copy.deepcopy(value)

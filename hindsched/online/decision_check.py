"""What the simulator does with a decision before it counts: check its form and take it over.

A decision is a promise. The rows are copied here, so that nothing an algorithm does to its own
objects afterwards can change what it promised, and everything that is wrong in every family is
refused here by name: a decision that is no decision, a job that has not arrived, a row in the past,
a job that was refused before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import repr as shortened
from typing import Any

import numpy as np

from hindsched.errors import InputError, Refused
from hindsched.online.cluster_state import ClusterState
from hindsched.online.protocol import Decision
from hindsched.solutions.base import Assignment

DEEPEST = 8
"""Objects and lists within each other in a row; files have three."""
_PLAIN = (int, float, str, bool, type(None))


@dataclass
class DecisionCheck:
    """Takes over one run's decisions, slot by slot.

    Parameters
    ----------
    state : ClusterState
        The run so far, which knows the jobs revealed so far and the form of a row.
    rejected : list of str
        Jobs rejected so far, in order.
    """

    state: ClusterState[Any]
    rejected: list[str] = field(default_factory=list)
    _accepted: set[str] = field(default_factory=set)

    def take_over(self, slot: int, decision: object) -> Decision:
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
        known = self.state.known_jobs(slot)
        if not isinstance(decision, Decision):
            raise Refused("decision", here, f"{type(decision).__name__} is no Decision")
        if not isinstance(decision.assignments, Mapping):
            raise Refused("decision", here, "assignments must map job names to rows")
        rejected = _names("rejected", decision.rejected, here)
        admitted = _names("admitted", decision.admitted, here)
        # read once: an object of the algorithm's own may say something else the second time
        assignments = {_plain(job): rows for job, rows in decision.assignments.items()}
        for job in (*rejected, *admitted, *assignments):
            if not isinstance(job, str) or job not in known:
                raise Refused("no peeking", f"job {job}, {here}", "the job has not arrived")
        for job in rejected:
            if job in self.rejected:
                raise Refused("irrevocable", f"job {job}, {here}", "the job was rejected before")
            if job in self._accepted or job in admitted or assignments.get(job):
                raise Refused("irrevocable", f"job {job}, {here}", "the job was accepted")
            self.rejected.append(job)
        for job in admitted:
            if job in self.rejected:
                raise Refused("irrevocable", f"job {job}, {here}", "the job was rejected")
            self._accepted.add(job)
        rows = {job: self._rows(job, slot, given) for job, given in assignments.items()}
        return Decision(rows, admitted, rejected)

    def _rows(self, job: str, slot: int, given: Any) -> list[Assignment]:
        """Copy a job's rows; refuse those that no solution file could hold."""
        where = f"job {job}, slot {slot}"
        is_list = isinstance(given, Sequence) and not isinstance(given, str)
        rows: list[Assignment] = _copied(list(given), where) if is_list else []
        if not is_list or not all(type(row) is dict for row in rows):
            raise Refused("row", where, "rows must be a list of objects")
        if not rows:
            return rows
        if job in self.rejected:
            raise Refused("irrevocable", where, "the job was rejected")
        try:
            self.state.check_form(job, rows)
        except InputError as error:
            raise Refused("row", where, str(error)) from None
        for row in rows:
            if "from" in row and row["from"] < slot:
                raise Refused("irrevocable", where, f"row begins in the past, at {row['from']}")
        self._accepted.add(job)
        return rows


def _names(kind: str, given: object, here: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise Refused("decision", here, f"{kind} must be a list of job names")
    names = tuple(given)
    for job in names:
        if not isinstance(job, str):
            rule = f"{kind} must be a list of job names, not {shortened(job)}"
            raise Refused("decision", here, rule)
    return tuple(map(_plain, names))


def _copied(value: object, where: str, depth: int = 0) -> Any:
    """A copy that is plain data: what an algorithm's own classes could change or hide is gone.

    Raises
    ------
    Refused
        For what no file could hold.
    """
    if type(value) in _PLAIN:
        return value
    if depth > DEEPEST:
        raise Refused("row", where, f"more than {DEEPEST} objects and lists within each other")
    if isinstance(value, Mapping):
        return {_plain(key): _copied(item, where, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(item, where, depth + 1) for item in value]
    if isinstance(value, int | float | str | np.generic):
        return _plain(value)
    raise Refused("row", where, f"{type(value).__name__} is nothing that a row could hold")


def _plain(value: object) -> Any:
    """The number or word that an object of a class derived from one is."""
    if type(value) in _PLAIN:
        return value
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    return value


_CONVERSIONS = (
    (str, str.__str__),
    (float, lambda value: float.__add__(value, 0.0)),
    (int, lambda value: int.__add__(value, 0)),
)
"""By the class's own function, which a derived one cannot replace."""

"""``audit``: the one door to judging somebody else's schedule, and its clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindsched.errors import InputError
from hindsched.instances.base import family_module
from hindsched.instances.io import MOST_BYTES
from hindsched.instances.traces.capacity import said_capacity
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.logs import read_log
from hindsched.json_types import Keywords

if TYPE_CHECKING:
    import pandas as pd

FAMILY = "gang"
"""The family whose jobs logs hold."""
DEFAULT_SECONDS = 60.0
FOR_OUTPUT, PER_JOB = 1.5, 1e-4
"""Seconds that page and files take, and what each job adds."""


class Clock:
    """A limit of everything from reading to the page; without one, of bound and search alone.

    Attributes
    ----------
    whole : float
        Seconds that were to be had.
    laps : dict
        Seconds that each step took.
    """

    def __init__(self, limit: float | None) -> None:
        self._begin = self._since = time.perf_counter()
        self._is_whole = limit is not None
        self.whole = DEFAULT_SECONDS if limit is None else limit
        self._reserved = 0.0
        self.laps: dict[str, float] = {}

    def reserve(self, jobs: int) -> None:
        """Keep the time to write an audit of so many jobs."""
        self._reserved = min(self.whole / 2, FOR_OUTPUT + PER_JOB * jobs)

    def lap(self, name: str) -> None:
        """Note how long a step took."""
        now = time.perf_counter()
        self.laps[name], self._since = now - self._since, now

    @property
    def has_time_for_policies(self) -> bool:
        """Whether more is left than the half that bound and search are to have."""
        return self.seconds_left > (self.whole - self._reserved) / 2

    @property
    def seconds_left(self) -> float:
        """Seconds that the steps before the output may still take."""
        if not self._is_whole:
            return self.whole
        return max(0.0, self.whole - self._reserved - (time.perf_counter() - self._begin))


def audit(
    log: Log | str | Path | pd.DataFrame,
    format: str = "csv",  # noqa: A002
    *,
    gpus: int | None = None,
    servers: object = None,
    objective: str = "mean-jct",
    formulation: str | None = None,
    policies: Sequence[str] | None = None,
    time_limit: float | None = None,
    columns: Mapping[str, str] | None = None,
    time_zone: str | None = None,
    time_unit: str = "s",
    time_step: str | None = None,
    submitted_from: str | None = None,
    submitted_to: str | None = None,
    skip_broken: bool = False,
    most_bytes: int = MOST_BYTES,
    settings: Keywords | None = None,
    say: Callable[[str], None] | None = None,
) -> Any:
    """Judge the schedule that a log, a file or a frame holds.

    Parameters
    ----------
    log : Log, path or DataFrame
        A log that was read, a file of `format`, or a frame with the columns
        ``job, submit, start, end, gpus``.
    format : str
        Format of a file.
    gpus, servers
        The capacity, where the log does not say it.
    objective : {"mean-jct", "makespan", "deadlines-met"}
        What counts.
    formulation : {"non-preemptive", "preemptive", "elastic"}, optional
        How freely the best possible may schedule; by default as freely as the log's scheduler did.
    policies : sequence of str, optional
        Policies to replay on the same jobs: all if None.
    time_limit : float, optional
        Seconds for everything, of which some are kept for writing the verdict; policies for which
        no time is left are not replayed. If None 60 for the bound and the search alone.
    columns, time_zone, time_unit, time_step, submitted_from, submitted_to
        How to read, as in `read_log`.
    skip_broken, most_bytes, settings
        As in `read_log`.
    say : callable, optional
        Is told in words what is being done.

    Returns
    -------
    Audit
        ``sentence()``, ``is_possible``, ``breaches``, ``to_frame()``, ``write(folder)``, ...

    Raises
    ------
    InputError
        For a log that cannot be read or judged.

    Examples
    --------
    >>> import pandas as pd, hindsched as hs
    >>> log = pd.DataFrame({"job": ["a", "b"], "submit": 0, "start": [0, 60], "end": [60, 90]})
    >>> log["gpus"] = 2
    >>> hs.audit(log, gpus=2).is_possible
    True
    """  # fmt: skip
    how: dict[str, Any] = {
        "columns": columns, "gpus": gpus, "servers": servers, "time_zone": time_zone,
        "time_unit": time_unit, "time_step": time_step, "submitted_from": submitted_from,
        "submitted_to": submitted_to, "skip_broken": skip_broken,
    }  # fmt: skip
    if time_limit is not None and not 0 <= time_limit < float("inf"):
        raise InputError("time_limit", time_limit, "must be a number of seconds, at least 0")
    module = family_module("analysis.audit", FAMILY, "audit")
    module.compile_audit()
    clock = Clock(time_limit)
    if isinstance(log, str | Path):
        log = read_log(log, format, most_bytes=most_bytes, settings=settings, **how)
    elif not isinstance(log, Log):
        log = read_log(log, **how)
    elif gpus is not None or servers is not None:
        said = said_capacity(gpus, servers)
        assert said is not None
        log = log.with_capacity(said)
    clock.lap("reading")
    return module.audit_log(
        log, clock, objective=objective, formulation=formulation, policies=policies, say=say
    )

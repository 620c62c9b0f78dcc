"""Seconds of an audit: what is left of its limit, with time reserved to write down the verdict."""

from __future__ import annotations

import time

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

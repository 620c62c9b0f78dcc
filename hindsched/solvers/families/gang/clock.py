"""How much time is left, for engines that stop on time or on Ctrl-C and keep what they have."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event

from hindsched.solvers.door.work import now


@dataclass(frozen=True)
class Clock:
    """A time limit in seconds from the clock's making on, and an interrupt that ends it at once."""

    seconds: float
    stop: Event = field(default_factory=Event)
    begin: float = field(default_factory=now)

    @property
    def gone(self) -> float:
        """Seconds since the begin."""
        return now() - self.begin

    @property
    def seconds_left(self) -> float:
        """Seconds until the end, at least 0."""
        return 0.0 if self.stop.is_set() else max(0.0, self.seconds - self.gone)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.seconds_left <= 0.0

    @property
    def share_gone(self) -> float:
        """Part of the time that is over, from 0 to 1."""
        return 1.0 if self.seconds <= 0 else min(1.0, self.gone / self.seconds)

    def first(self, seconds: float) -> Clock:
        """A clock for the next seconds, at most until this one's end."""
        return Clock(min(seconds, self.seconds_left), self.stop)

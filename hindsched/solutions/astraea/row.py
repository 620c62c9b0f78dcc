"""A row of an astraea solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from hindsched.solutions.window_row import WindowRow


@dataclass(frozen=True)
class AstraeaRow(WindowRow):
    """A stretch of slots in which a job's placement and payment do not change.

    Slot t is the interval (t-1, t]; `one_server` is zeta.

    Parameters
    ----------
    payment : tuple of float, optional
        Paid per slot for the workers and for the PSs; None within the fair share.
    """

    payment: tuple[float, float] | None = None

    def continues_as(self, other: Self) -> bool:
        """Whether `other` follows at once and differs in its slots only."""
        return self.payment == other.payment and super().continues_as(other)

"""Random draws that give the same bytes on every machine and with every numpy.

Only the raw 64-bit words of PCG64 are taken from numpy, whose bit generators are stable; every
transform is written here, and every float is rounded to 12 significant digits before anything is
made of it, so that the last bits of a platform's ``log`` or ``exp`` never reach an instance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

SIGNIFICANT_DIGITS = 12
WORDS_AT_ONCE = 64
"""Taken from numpy in one call: one by one they take longer than what is made of them."""


def rounded(value: float) -> float:
    """Round to 12 significant digits."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


class Draws:
    """A stream of draws, keyed by a seed and words, such as a job's name.

    Streams with different keys are independent: one stream's length does not move another.
    """

    def __init__(self, seed: int, *keys: str) -> None:
        words = [byte for key in keys for byte in (*key.encode(), 0)]
        self._bits = np.random.PCG64(np.random.SeedSequence([seed, *words]))
        self._words: list[int] = []

    def word(self) -> int:
        """64 random bits."""
        if not self._words:
            self._words = self._bits.random_raw(WORDS_AT_ONCE).tolist()[::-1]
        return self._words.pop()

    def unit(self) -> float:
        """Draw uniformly from [0, 1): 53 random bits, exact on every machine."""
        return (self.word() >> 11) * 2.0**-53

    def uniform(self, low: float, high: float) -> float:
        """Draw uniformly from [low, high]."""
        return rounded(low + (high - low) * self.unit())

    def log_uniform(self, low: float, high: float) -> float:
        """Draw from [low, high], both above 0, with a uniform logarithm."""
        share = self.unit()
        return rounded(math.exp(math.log(low) + share * (math.log(high) - math.log(low))))

    def integer(self, low: float, high: float) -> int:
        """Draw an integer uniformly from low..high, both included and cut to integers."""
        low, high = int(low), int(high)
        span = high - low + 1
        if span < 1:
            raise ValueError(f"no integer in {low}..{high}")
        limit = (1 << 64) - (1 << 64) % span
        while (word := self.word()) >= limit:
            pass
        return low + word % span

    def integers(self, ranges: object, *names: str) -> dict[str, int]:
        """Draw an integer from each attribute ``(low, high)`` of an object, by name."""
        return {name: self.integer(*getattr(ranges, name)) for name in names}

    def chance(self, probability: float) -> bool:
        """Draw True with a probability."""
        return self.unit() < probability

    def choice(self, items: Sequence[T], weights: Sequence[float] | None = None) -> T:
        """Draw an item, uniformly or in proportion to `weights`."""
        if weights is None:
            return items[self.integer(0, len(items) - 1)]
        point = self.unit() * math.fsum(weights)
        passed = 0.0
        for item, weight in zip(items, weights, strict=True):
            passed += weight
            if point < passed:
                return item
        return items[-1]

    def normal(self, mean: float = 0.0, deviation: float = 1.0) -> float:
        """Draw from a normal distribution (Box-Muller)."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.unit()))
        return rounded(mean + deviation * radius * math.cos(2.0 * math.pi * self.unit()))

    def log_normal(self, mean: float = 0.0, deviation: float = 1.0) -> float:
        """Draw ``exp`` of a normal variable of this mean and deviation."""
        return rounded(math.exp(self.normal(mean, deviation)))

    def exponential(self, mean: float) -> float:
        """Draw from an exponential distribution."""
        return rounded(-mean * math.log(1.0 - self.unit()))


def arrival_slots(
    draws: Draws, jobs: int, horizon: int, *, period: int = 24, burst: float = 0.5
) -> list[int]:
    """Draw arrival slots 1..horizon of a diurnal, bursty stream, sorted.

    The rate of slot t is ``1 + 0.5 sin(2 pi t / period)``, times a log-normal burst of this slot
    with deviation `burst`. Stands in for the Google cluster data that the papers replay.
    """
    rates = [
        rounded(
            (1.0 + 0.5 * math.sin(2.0 * math.pi * slot / period)) * draws.log_normal(0.0, burst)
        )
        for slot in range(1, horizon + 1)
    ]
    slots = range(1, horizon + 1)
    return sorted(draws.choice(slots, rates) for _ in range(jobs))

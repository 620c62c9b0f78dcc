"""A field of an instance file that varies: where it stands, its range and its numbers' grain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from hindsched.instances.decimals import exactly

Role = Literal["time", "size", "value", "amount"]
Place = tuple[Any, Any]
"""A list or an object, and the position or key in it."""


@dataclass(frozen=True)
class Field:
    """A number, or a choice, that varies.

    Parameters
    ----------
    path : str
        Keys from the job (or, for the cluster, from the file) on, with dots between them; ``[]``
        stands for every item of a list and ``*`` for every key of an object.
    role : str
        What it means to a schedule: ``time`` (an arrival), ``size`` (work), ``value`` (what a job
        is worth) or ``amount`` (anything else).
    low, high : float
        Its range.
    grain : int
        Largest denominator of its numbers; 1 for integers.
    log : bool
        Whether it is drawn by its logarithm; `low` is above 0 then.
    choices : tuple
        What it is chosen from instead of a range.
    repeats : bool
        The field is a list of equal items, and the number is how many.
    """

    path: str
    role: Role
    low: float = 0
    high: float = 0
    grain: int = 1
    log: bool = False
    choices: tuple[Any, ...] = ()
    repeats: bool = False

    @property
    def name(self) -> str:
        """Its last key, by which people name it."""
        words = [word for word in self.path.replace("[]", "").split(".") if word != "*"]
        return words[-1]

    @property
    def is_fixed(self) -> bool:
        """Whether its range is one point."""
        return len(self.choices) == 1 or (not self.choices and self.low == self.high)

    def places(self, data: Any) -> Iterator[Place]:
        """Every place of the field in a job's record or in a file's data; none where it is absent.

        Examples
        --------
        >>> data = {"servers": [{"gpus": 2}, {"gpus": 4}]}
        >>> [holder[key] for holder, key in Field("servers[].gpus", "amount").places(data)]
        [2, 4]
        """
        *outer, last = _words(self.path)
        holders = [data]
        for word in outer:
            holders = [holder[key] for holder in holders for key in _keys(holder, word)]
        for holder in holders:
            yield from ((holder, key) for key in _keys(holder, last))

    def read(self, place: Place) -> Any:
        """The number, or the choice, at a place."""
        holder, key = place
        return len(holder[key]) if self.repeats else holder[key]

    def write(self, place: Place, value: Any) -> None:
        """Set the number at a place, on its grain and within its range; or the choice."""
        holder, key = place
        if self.choices:
            holder[key] = value if value in self.choices else self.choices[0]
        elif self.repeats:
            holder[key] = [holder[key][0]] * int(self.rounded(value)) if holder[key] else []
        else:
            holder[key] = self.rounded(value)

    def rounded(self, value: float) -> int | float:
        """The nearest number of the range; the simplest denominator that is close enough is taken.

        Examples
        --------
        >>> Field("size", "size", 0, 5, grain=10).rounded(1.4999)
        1.5
        """
        value = min(max(float(value), self.low), self.high)
        for below in denominators(self.grain):
            scaled = value * below
            if below == self.grain or abs(scaled - round(scaled)) < 0.5 * below / self.grain:
                low, high = _multiples(self.low, self.high, below)
                if low <= high:
                    return plain(min(max(round(scaled), low), high), below)
        raise AssertionError("a range holds a number of its grain")

    def draw(self, random: np.random.Generator) -> Any:
        """Draw from the range: half of the time with a small denominator."""
        if self.choices:
            return self.choices[int(random.integers(len(self.choices)))]
        if self.log:
            value = math.exp(random.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = random.uniform(self.low, self.high)
        if self.grain > 1 and random.random() < 0.5:
            value = round(value)
        return self.rounded(value)


@lru_cache
def denominators(grain: int) -> tuple[int, ...]:
    """Divisors of a grain, smallest first."""
    return tuple(below for below in range(1, grain + 1) if grain % below == 0)


def plain(count: int, below: int) -> int | float:
    """A quotient, an integer where it is one."""
    return count // below if count % below == 0 else count / below


@lru_cache
def _multiples(low: float, high: float, below: int) -> tuple[int, int]:
    """First and last multiple of ``1 / below`` in a range, as counts of it."""
    return math.ceil(exactly(low) * below), math.floor(exactly(high) * below)


@lru_cache
def _words(path: str) -> tuple[str, ...]:
    return tuple(path.replace("[]", ".[]").split("."))


def _keys(holder: object, word: str) -> list[Any]:
    if word == "[]":
        return list(range(len(holder))) if isinstance(holder, list) else []
    if word == "*":
        return list(holder) if isinstance(holder, dict) else []
    return [word] if isinstance(holder, dict) and word in holder else []

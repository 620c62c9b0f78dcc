"""Random draws, the ranges that settings of generators give, and what instances from traces share.

Only the raw 64-bit words of PCG64 are taken from numpy, whose bit generators are stable; every
transform is written here, and every float is rounded to 12 significant digits before anything is
made of it, so that the last bits of a platform's ``log`` or ``exp`` never reach an instance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, StrictInt, ValidationError

from hindsched.errors import InputError
from hindsched.instances import base
from hindsched.instances.base import Instance, NonNegative, Number, Positive, PositiveCount
from hindsched.instances.decimals import integral
from hindsched.json_types import Draft

if TYPE_CHECKING:  # no pandas is loaded to generate
    import pandas as pd

    from hindsched.instances.traces.table import TraceTable

T = TypeVar("T")

SIGNIFICANT_DIGITS = 12
WORDS_AT_ONCE = 64
"""Taken from numpy in one call: one by one they take longer than what is made of them."""
KEPT = ("part", "user", "status", "submit_seconds", "duration_seconds", "gpus", "queue_seconds")
"""Columns of the trace that an instance's provenance keeps for each job, where there is a value."""
Ends = TypeVar("Ends", bound=tuple[float, float])
Made = TypeVar("Made", bound=Instance)


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


def _two(value: object) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("must be [low, high]")
    return value


def _rising(span: Ends) -> Ends:
    if span[0] > span[1]:
        raise ValueError("must be [low, high] with low <= high")
    return span


def _pair(value: object) -> Any:
    """One number for both ends."""
    return value if isinstance(value, list | tuple) else (value, value)


def listed(value: object) -> Any:
    """Refuse what is no list, or an empty one."""
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("must be a list of at least one value")
    return value


def within(low: float, high: float) -> AfterValidator:
    """Refuse a number outside two ends, or a range that reaches out of them."""

    def check(value: object) -> Any:
        ends = _pair(value)
        if not low <= ends[0] <= ends[1] <= high:
            raise ValueError(f"must be between {low:g} and {high:g}")
        return value

    return AfterValidator(check)


_RANGE = BeforeValidator(_two), AfterValidator(_rising)
Whole = Annotated[StrictInt, BeforeValidator(integral), Field(ge=1, le=10**15)]
WholeOrNone = Annotated[StrictInt, BeforeValidator(integral), Field(ge=0, le=10**15)]
Share = Annotated[NonNegative, within(0, 1)]
Range = Annotated[tuple[Number, Number], *_RANGE]  # ``[low, high]``, of any sign
Amounts = Annotated[tuple[NonNegative, NonNegative], *_RANGE]  # ``[low, high]``, none below 0
Positives = Annotated[tuple[Positive, Positive], *_RANGE]
Wholes = Annotated[tuple[Whole, Whole], *_RANGE]  # ``[low, high]``, integers of at least 1
WholesOrNone = Annotated[tuple[WholeOrNone, WholeOrNone], *_RANGE]
"""``[low, high]``, integers of at least 0."""
Span = Annotated[Amounts, BeforeValidator(_pair)]
"""One number of at least 0, which fixes what is drawn, or two, between which it is drawn."""
Choices = Annotated[tuple[PositiveCount, ...], BeforeValidator(listed)]
"""Integers of at least 1 to draw from."""


class Settings(base.Record):
    """Settings of a generator, each of which its type checks; a family derives its own.

    The fields' defaults are the preset ``paper``.
    """

    _changed: Draft = PrivateAttr(default_factory=dict)

    @classmethod
    def values(cls, **changed: object) -> Draft:
        """All settings of a preset: the defaults, some of them changed."""
        return {**{name: field.default for name, field in cls.model_fields.items()}, **changed}

    @classmethod
    def of(cls, usual: Mapping[str, Any], settings: Mapping[str, object]) -> Self:
        """A preset's settings, some replaced; `InputError` names the first broken one."""
        usual = cls.values(**usual)
        values = {**usual, **settings}
        try:
            made = cls.model_validate(values)
        except ValidationError as error:
            wrong = base.input_error(error)
            name = wrong.where.split("[")[0].split(".")[0]
            raise InputError(f"set.{name}", values.get(name, wrong.value), wrong.rule) from None
        made._changed = {key: value for key, value in settings.items() if value != usual[key]}
        return made

    def changed(self) -> Draft:
        """What differs from the preset, as JSON has it."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in self._changed.items()
        }


class RowSettings(Settings):
    """What every family's instance from a trace is made with."""

    start: NonNegative = 0.0  # seconds after the trace's first row at which to begin
    every: PositiveCount = 1  # keep every so many rows, which thins the stream of arrivals


def take_rows(table: TraceTable, jobs: int, s: RowSettings) -> list[dict[str, Any]]:
    """So many rows, as the settings choose them; see `records_of`."""
    return records_of(table.window(s.start, (jobs - 1) * s.every + 1).rows.iloc[:: s.every])


def records_of(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a trace table with a unique ``name`` and the seconds ``waited`` since the first.

    Names are the trace's own; with their part before them, or their row behind, to be unique.
    """
    waited = rows["submit_seconds"] - rows["submit_seconds"].iloc[0]
    names = rows["job"].astype(str)
    if not names.is_unique:
        names = rows["part"].astype(str) + "/" + names
    if not names.is_unique:
        names = names + [f"#{number + 1}" for number in range(len(names))]
    records: Any = rows.assign(waited=waited, name=names).to_dict("records")
    return list(records)


def arrivals_of(rows: Sequence[dict[str, Any]], slot_seconds: float, first: int = 1) -> list[int]:
    """Slot of each row's submission; that of the first row is `first`."""
    return [first + int(row["waited"] // slot_seconds) for row in rows]


def traced(
    kind: type[Made], data: Draft, rows: Sequence[dict[str, Any]], table: TraceTable, seed: int,
    s: RowSettings, **notes: object,
) -> Made:  # fmt: skip
    """The instance of a file's data whose jobs have their names in the trace.

    Jobs of the data are ``j1, j2, ...`` (with anything behind), one a row; notes go to the
    provenance.
    """
    jobs, facts = [], {}
    for number, (job, row) in enumerate(zip(data["jobs"], rows, strict=True), start=1):
        name = job["name"].replace(f"j{number}", row["name"], 1)
        jobs.append({**job, "name": name})
        kept = {key: row[key] for key in KEPT}
        facts[name] = {k: v for k, v in kept.items() if v != "" and v == v}  # no NaN
    provenance = {"seed": seed, "settings": s.changed(), **table.provenance(), **notes}
    provenance["trace_rows"] = facts
    return kind.parse({**data, "jobs": jobs, "provenance": provenance})

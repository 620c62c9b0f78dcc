"""Times as they are written: exact nanoseconds from seconds or ISO 8601 stamps, and back.

Every time is a whole number of nanoseconds. Numbers are seconds (or the unit that the user names)
since a zero of the log's own, stamps are since 1970 in UTC; one log holds one of the two. A stamp
without an offset needs a time zone, which only the user knows: none is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Protocol
from zoneinfo import ZoneInfo

import numpy as np

from hindsched.arrays import Ints
from hindsched.errors import InputError

NANO = 10**9
MISSING = int(np.iinfo(np.int64).min)
"""Stands for a time or a number that the log does not give."""
UNITS = {
    "s": NANO, "ms": 10**6, "us": 10**3, "ns": 1, "min": 60 * NANO, "h": 3600 * NANO,
}  # fmt: skip
FARTHEST = 9 * 10**18
"""Nanoseconds, 285 years: what lies beyond is no time of a cluster."""
OVERFLOWED = ("9223372036854775807", "-9223372036854775808", "2147483647", "4294967295")
"""Largest and smallest integers of a machine: what a program writes that has no value."""

INTEGERS = re.compile(r"[0-9\n-]*")
DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s?(Z|z|UTC|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
OFFSET = re.compile(r"[+-]\d\d(?::?\d\d)?", re.ASCII)
SPAN = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d\d)(?:\.(\d+))?", re.ASCII)
NOT_A_TIME = "must be a number of seconds or an ISO 8601 stamp"
NOT_A_SPAN = "must be a number of seconds or [days-]hours:minutes:seconds"
TOO_FAR = "must lie within 285 years"
FAR_OFFSET = "must have an offset of at most 23 hours and 59 minutes"
TOO_FINE = "is finer than a nanosecond: --time-step 0.001 rounds to milliseconds"


class Refuse(Protocol):
    """How a cell that breaks a rule is reported: by its position in the column read."""

    def __call__(self, index: int, column: str, value: str, rule: str) -> None:
        """Report the cell; returns if the row is only to be left out."""


@dataclass
class Clock:
    """Reads the times of one log.

    Parameters
    ----------
    zone : str, optional
        Time zone of stamps without offset, as the IANA data base names it.
    unit : str
        Unit of numbers, one of `UNITS`.
    step : str, optional
        Round every time to a multiple of so many seconds; None refuses what is too fine.
    """

    zone: str | None = None
    unit: str = "s"
    step: str | None = None
    kind: str = ""
    """``seconds`` or ``stamps``: what the log's times are; empty before the first."""
    rounded: int = 0
    most_rounded: int = 0
    """Nanoseconds: the largest change by rounding."""
    offset: str | None = None
    """Offset of the first stamp that had one, such as ``+02:00``."""
    _first: str = ""
    _minutes: dict[tuple[str, str | None], tuple[int, int | None] | str] = field(
        default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InputError("time_unit", self.unit, f"must be one of {', '.join(UNITS)}")
        self._zone: tzinfo | None = None if self.zone is None else find_zone(self.zone)
        self._step = 1 if self.step is None else _step_nanoseconds(self.step)

    def parse(
        self, cells: Sequence[str], column: str, missing: frozenset[str], refuse: Refuse
    ) -> tuple[Ints, dict[int, int]]:
        """Read a column of times.

        Returns
        -------
        ndarray of int
            Nanoseconds, `MISSING` for the words of `missing`.
        dict
            By position, the later of the two times that a stamp means in the hour that a change
            of the clock repeats; the array holds the earlier.
        """
        later: dict[int, int] = {}
        if self.unit == "s" and self.step is None and self.kind != "stamps":
            whole = integers(cells, missing)
            if whole is not None and (np.abs(whole[whole != MISSING]) < FARTHEST // NANO).all():
                self._see("seconds", cells, missing)
                return np.where(whole == MISSING, MISSING, whole * NANO), later
        values = np.empty(len(cells), dtype=np.int64)
        for index, cell in enumerate(cells):
            if cell in missing:
                values[index] = MISSING
                continue
            found = self._one(cell)
            if isinstance(found, str):
                refuse(index, column, cell, found)
                found = MISSING, None
            values[index] = found[0]
            if found[1] is not None:
                later[index] = found[1]
        return values, later

    def span(
        self, cells: Sequence[str], column: str, missing: frozenset[str], refuse: Refuse
    ) -> Ints:
        """Read a column of durations: numbers in the log's unit, or Slurm's ``D-HH:MM:SS``."""
        if self.unit == "s" and self.step is None:
            whole = integers(cells, missing)
            if whole is not None and (np.abs(whole[whole != MISSING]) < FARTHEST // NANO).all():
                return np.where(whole == MISSING, MISSING, whole * NANO)
        values = np.empty(len(cells), dtype=np.int64)
        for index, cell in enumerate(cells):
            if cell in missing:
                values[index] = MISSING
                continue
            match = SPAN.fullmatch(cell)
            found = self._number(cell) if match is None else _span(match)
            if isinstance(found, str):
                refuse(index, column, cell, NOT_A_SPAN if found == NOT_A_TIME else found)
                values[index] = MISSING
            else:
                values[index] = found if match is None else self._round(found)
        return values

    @property
    def display_zone(self) -> str | None:
        """Zone to write stamps in: the user's, or the log's first offset."""
        return self.zone or self.offset

    def _one(self, cell: str) -> tuple[int, int | None] | str:
        match = STAMP.fullmatch(cell)
        kind = "seconds" if match is None else "stamps"
        if self.kind and kind != self.kind and (match or DECIMAL.fullmatch(cell)):
            return f"must be {self.kind} as {self._first} is: one log has one kind of time"
        found = self._number(cell) if match is None else self._stamp(match)
        if isinstance(found, str):
            return found
        if not self.kind:
            self.kind, self._first = kind, cell
        if isinstance(found, int):
            return found, None
        return self._round(found[0]), None if found[1] is None else self._round(found[1])

    def _see(self, kind: str, cells: Sequence[str], missing: frozenset[str]) -> None:
        if not self.kind:
            first = next((cell for cell in cells if cell not in missing), None)
            if first is not None:
                self.kind, self._first = kind, first

    def _number(self, cell: str) -> int | str:
        if not DECIMAL.fullmatch(cell):
            return NOT_A_TIME
        try:
            nanoseconds = Decimal(cell) * UNITS[self.unit]
        except InvalidOperation:
            return NOT_A_TIME
        if not abs(nanoseconds) < FARTHEST:
            return TOO_FAR
        if self._step != 1:
            near = int((nanoseconds / self._step).to_integral_value()) * self._step
            if near != nanoseconds:
                self._note_rounding(abs(near - nanoseconds))
            return near
        if nanoseconds != int(nanoseconds):
            return TOO_FINE
        return int(nanoseconds)

    def _stamp(self, match: re.Match[str]) -> tuple[int, int | None] | str:
        minute, second, fraction, offset = match.groups()
        key = minute, offset
        found = self._minutes.get(key)
        if found is None:
            if len(self._minutes) > 1_000_000:
                self._minutes.clear()
            found = self._minutes[key] = self._minute(minute, offset)
        if isinstance(found, str):
            return found
        within = 0
        if second is not None:
            if second > "59":
                return "must have seconds from 00 to 59"
            within = int(second) * NANO
        if fraction is not None:
            if len(fraction.rstrip("0")) > 9:
                return TOO_FINE
            within += int(fraction[:9].ljust(9, "0"))
        return found[0] + within, None if found[1] is None else found[1] + within

    def _minute(self, minute: str, offset: str | None) -> tuple[int, int | None] | str:
        """Nanoseconds of a minute's begin, and of its second time if the clock repeats it."""
        try:
            naive = datetime.fromisoformat(minute)
        except ValueError as error:
            return f"must be a date and a time of day ({error})"
        if not 1700 < naive.year < 2240:
            return TOO_FAR
        if offset is not None:
            ahead = 0 if offset in ("Z", "z", "UTC") else _offset_minutes(offset)
            if ahead is None:
                return FAR_OFFSET
            self.offset = self.offset or offset
            return _nanoseconds(naive - timedelta(minutes=ahead)), None
        if self._zone is None:
            return "has no offset: --time-zone must name the zone of the cluster's clock"
        times = [
            naive.replace(tzinfo=self._zone, fold=fold).astimezone(UTC).replace(tzinfo=None)
            for fold in (0, 1)
        ]
        back = times[0].replace(tzinfo=UTC).astimezone(self._zone).replace(tzinfo=None)
        if back != naive:
            return f"the clock of {self.zone} skips this time: is that the log's time zone?"
        first, second = _nanoseconds(times[0]), _nanoseconds(times[1])
        return first, second if second != first else None

    def _round(self, nanoseconds: int) -> int:
        if self._step == 1:
            return nanoseconds
        near = (2 * nanoseconds + self._step) // (2 * self._step) * self._step
        if near != nanoseconds:
            self._note_rounding(abs(near - nanoseconds))
        return near

    def _note_rounding(self, change: int | Decimal) -> None:
        self.rounded += 1
        self.most_rounded = max(self.most_rounded, int(change))


def integers(cells: Sequence[str], missing: frozenset[str]) -> Ints | None:
    """A column of plain integers, `MISSING` for the words of `missing`; None if it is none."""
    if not INTEGERS.fullmatch("\n".join(cells)):
        if not missing:
            return None
        cells = [str(MISSING) if cell in missing else cell for cell in cells]
        if not INTEGERS.fullmatch("\n".join(cells)):
            return None
    elif missing:
        cells = [str(MISSING) if cell in missing else cell for cell in cells]
    try:
        return np.fromiter(map(int, cells), dtype=np.int64, count=len(cells))
    except (ValueError, OverflowError):
        return None


def find_zone(name: str) -> tzinfo:
    """A time zone by its name, or `InputError`."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    if OFFSET.fullmatch(name):
        ahead = _offset_minutes(name)
        if ahead is None:
            raise InputError("time_zone", name, FAR_OFFSET)
        return timezone(timedelta(minutes=ahead))
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        rule = "must be a zone of the IANA data base, such as Europe/Berlin, an offset, or UTC"
        raise InputError("time_zone", name, rule) from None


def seconds_text(nanoseconds: int) -> str:
    """Nanoseconds as seconds, with the decimals that they need."""
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), NANO)
    decimals = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{sign}{whole}{decimals}"


def stamp_text(nanoseconds: int, zone: tzinfo) -> str:
    """Nanoseconds since 1970 as an ISO 8601 stamp with offset."""
    whole, rest = divmod(nanoseconds, NANO)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=whole)
    text = moment.astimezone(zone).isoformat()
    return f"{text[:19]}.{rest:09d}".rstrip("0") + text[19:] if rest else text


def _nanoseconds(moment: datetime) -> int:
    elapsed = moment - datetime(1970, 1, 1)
    return (elapsed.days * 86400 + elapsed.seconds) * NANO


def _offset_minutes(offset: str) -> int | None:
    """Minutes ahead of UTC; None for an offset that no clock has."""
    hours, minutes = int(offset[1:3]), int(offset[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        return None
    return (-1 if offset[0] == "-" else 1) * (60 * hours + minutes)


def _span(match: re.Match[str]) -> int | str:
    days, hours, minutes, seconds, fraction = match.groups()
    if int(seconds) > 59 or (hours is not None and int(minutes) > 59):
        return "must be [days-]hours:minutes:seconds"
    if fraction is not None and len(fraction.rstrip("0")) > 9:
        return TOO_FINE
    total = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes)) * 60 + int(seconds)
    if total * NANO >= FARTHEST:
        return TOO_FAR
    return total * NANO + int((fraction or "0")[:9].ljust(9, "0"))


def _step_nanoseconds(step: str) -> int:
    try:
        nanoseconds = Decimal(str(step)) * NANO
    except InvalidOperation:
        nanoseconds = Decimal(0)
    if not nanoseconds.is_finite() or nanoseconds < 1 or nanoseconds != int(nanoseconds):
        raise InputError("time_step", step, "must be seconds above 0, such as 1 or 0.001")
    return int(nanoseconds)

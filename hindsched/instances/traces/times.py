"""Times as logs write them: exact nanoseconds from numbers or ISO 8601 stamps, and back.

Numbers are seconds (or the unit that the user names) since a zero of the log's own, stamps are
since 1970 in UTC; one log holds one of the two. A stamp without an offset needs a time zone, which
only the user or the format's publisher knows: none is assumed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from zoneinfo import ZoneInfo

from hindsched.errors import InputError

NANO = 10**9
UNITS = {"s": NANO, "ms": 10**6, "us": 10**3, "ns": 1, "min": 60 * NANO, "h": 3600 * NANO}
FARTHEST = 9 * 10**18
"""Nanoseconds, 285 years: what lies beyond is no time of a cluster."""
DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?)(?:[.,](\d+))?\s?(Z|z|UTC|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
OFFSET = re.compile(r"[+-]\d\d(?::?\d\d)?", re.ASCII)
SPAN = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d\d)(?:\.(\d+))?", re.ASCII)
TOO_FAR = "must lie within 285 years"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Moment = tuple[int, int | None]
"""Nanoseconds, and the later time of a stamp in the hour that a clock set back repeats."""


@dataclass
class Clock:
    """Reads the times of one log.

    Parameters
    ----------
    zone : str, optional
        Time zone of stamps without offset, as the IANA data base names it, or an offset.
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

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InputError("time_unit", self.unit, f"must be one of {', '.join(UNITS)}")
        self._zone = None if self.zone is None else find_zone(self.zone)
        self._step = 1 if self.step is None else _step_nanoseconds(self.step)

    def time(self, cell: str) -> Moment:
        """A time in nanoseconds; `ValueError` says the rule that a cell breaks."""
        match = STAMP.fullmatch(cell)
        kind = "seconds" if match is None else "stamps"
        if self.kind and kind != self.kind and (match or DECIMAL.fullmatch(cell)):
            rule = f"must be {self.kind} as {self._first} is: one log has one kind of time"
            raise ValueError(rule)
        if match is None:
            found: Moment = self._number(cell, "a number of seconds or an ISO 8601 stamp"), None
        else:
            found = self._stamp(*match.groups())
        if not self.kind:
            self.kind, self._first = kind, cell
        return found

    def span(self, cell: str) -> int:
        """A duration in nanoseconds: a number in the log's unit, or Slurm's ``D-HH:MM:SS``."""
        match = SPAN.fullmatch(cell)
        if match is None:
            return self._number(cell, "a number of seconds or [days-]hours:minutes:seconds")
        days, hours, minutes, seconds, fraction = match.groups()
        if int(seconds) > 59 or (hours is not None and int(minutes) > 59):
            raise ValueError("must be [days-]hours:minutes:seconds")
        total = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes)) * 60 + int(seconds)
        if total * NANO >= FARTHEST:
            raise ValueError(TOO_FAR)
        return self._round(total * NANO + self._fraction(fraction))

    def _number(self, cell: str, what: str) -> int:
        if not DECIMAL.fullmatch(cell):
            raise ValueError(f"must be {what}")
        nanoseconds = Decimal(cell) * UNITS[self.unit]
        if not abs(nanoseconds) < FARTHEST:
            raise ValueError(TOO_FAR)
        return self._round(nanoseconds)

    def _stamp(self, whole: str, fraction: str | None, offset: str | None) -> Moment:
        try:
            moment = datetime.fromisoformat(whole)
        except ValueError as error:
            raise ValueError(f"must be a date and a time of day ({error})") from None
        zone = self._zone
        if offset is not None:
            try:
                zone = find_zone(offset)
            except InputError as error:
                raise ValueError(error.rule) from None
            self.offset = self.offset or offset
        if not 1700 < moment.year < 2240:
            raise ValueError(TOO_FAR)
        if zone is None:
            raise ValueError("has no offset: --time-zone must name the zone of the cluster's clock")
        local = [moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
        if local[0].astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment:
            rule = f"the clock of {self.zone} skips this time: is that the log's time zone?"
            raise ValueError(rule)
        seconds = ((time - EPOCH) // timedelta(seconds=1) for time in local)
        first, second = (self._round(s * NANO + self._fraction(fraction)) for s in seconds)
        return first, None if second == first else second

    @staticmethod
    def _fraction(digits: str | None) -> Decimal:
        return Decimal(f"0.{digits or 0}") * NANO

    def _round(self, nanoseconds: Decimal) -> int:
        near = int((nanoseconds / self._step).to_integral_value()) * self._step
        if near != nanoseconds:
            if self.step is None:
                rule = "is finer than a nanosecond: --time-step 0.001 rounds to milliseconds"
                raise ValueError(rule)
            self.rounded += 1
            self.most_rounded = max(self.most_rounded, abs(near - int(nanoseconds)))
        return near


def find_zone(name: str) -> tzinfo:
    """A time zone by its name or offset, or `InputError`."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        if OFFSET.fullmatch(name):
            return datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo or UTC
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        rule = "must be a zone of the IANA data base, such as Europe/Berlin, UTC, or an offset"
        raise InputError("time_zone", name, f"{rule} of less than a day") from None


def seconds_text(nanoseconds: int) -> str:
    """Nanoseconds as seconds, with the decimals that they need."""
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), NANO)
    decimals = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{sign}{whole}{decimals}"


def stamp_text(nanoseconds: int, zone: tzinfo) -> str:
    """Nanoseconds since 1970 as an ISO 8601 stamp with offset."""
    whole, rest = divmod(nanoseconds, NANO)
    text = (EPOCH + timedelta(seconds=whole)).astimezone(zone).isoformat()
    return f"{text[:19]}.{rest:09d}".rstrip("0") + text[19:] if rest else text


def _step_nanoseconds(step: str) -> int:
    try:
        nanoseconds = Decimal(str(step)) * NANO
    except InvalidOperation:
        nanoseconds = Decimal(0)
    if not nanoseconds.is_finite() or nanoseconds < 1 or nanoseconds != int(nanoseconds):
        raise InputError("time_step", step, "must be seconds above 0, such as 1 or 0.001")
    return int(nanoseconds)

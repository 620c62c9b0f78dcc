"""Times as logs write them, in whole microseconds: numbers, stamps, spans; and back.

Numbers are seconds (or the unit that the user names) since a zero of the log's own, stamps are
since 1970 in UTC; one log holds one of the two. A stamp without an offset needs a time zone, which
only the user or the format's publisher knows: none is assumed. Stamps are ISO 8601 or other dates
with a time of day that pandas reads. Whether 05/06/2024 is in May or in June other dates of the log
show, or the user says.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from hindsched.errors import InputError

SECOND = 10**6  # microseconds
UNITS = {"s": SECOND, "ms": 1000, "us": 1, "ns": 1e-3, "min": 60 * SECOND, "h": 3600 * SECOND}
FARTHEST = 9 * 10**15  # microseconds, 285 years: what lies beyond is no time of a cluster
DECIMAL = r"(?a:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)"
STAMP = (
    r"(?a:^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d+))?"
    r"\s?(Z|z|UTC|[+-]\d\d(?::?\d\d)?)?$)"
)
DATED = (
    r"(?ai:^(?:\d{4}[/.-]\d\d?[/.-]\d\d?|\d\d?[/.-]\d\d?[/.-](?:\d{4}|\d\d)"
    r"|(?=.*\b\d\d?\b)(?=.*\b\d{4}\b)[a-z\d, .-]*"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z\d, .-]*)[T ,]+\d\d?:\d\d)"
)
"""Another date with a time of day."""
NUMBERED = r"(?a:^(\d\d?)([/.-])(\d\d?)[/.-](\d{4}|\d\d)\b)"
"""One of numbers in which day and month, or month and day, stand before the year."""
OFFSET = r"(?a:(?<=\d)\s?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)$)"
DATE_ORDERS = {"day-first": r"\4-\3-\1", "month-first": r"\4-\1-\3"}
SPAN = (
    r"(?a:^(?:(?:(?P<days>\d+)-)?(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d\d)"
    r"(?P<fraction>\.\d+)?$)"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPAN_RULE = "must be a number of seconds or [days-]hours:minutes:seconds"


class LogClock:
    """Reads the times of one log: zone of naive stamps, unit of numbers, step (s) to round to."""

    def __init__(
        self, zone: str | None = None, unit: str = "s", step: str | float | None = None,
        dates: str | None = None,
    ) -> None:  # fmt: skip
        if unit not in UNITS:
            raise InputError("time_unit", unit, f"must be one of {', '.join(UNITS)}")
        if dates not in (None, *DATE_ORDERS):
            raise InputError("dates", dates, f"must be one of {', '.join(DATE_ORDERS)}")
        self.dates = dates
        self.zone, self.unit, self.step = zone, unit, step
        self._zone = None if zone is None else find_zone(zone)
        micro = pd.to_numeric(str(1e-6 if step is None else step), errors="coerce") * SECOND
        self._step = int(micro) if 1 <= micro < FARTHEST else 0
        if not self._step or abs(micro - self._step) > 1e-6:
            raise InputError("time_step", step, "must be seconds above 0, such as 1 or 0.001")
        self.kind, self._first = "", ""  # ``seconds`` or ``stamps``, and the time that says so
        self.offset: str | None = None  # of the first stamp that had one
        self.rounded, self.most_rounded = 0, 0

    def settle_dates(self, texts: pd.Series, where: str) -> None:
        """Find out whether days or months stand first; `InputError` where no date shows."""
        parts = texts.str.extract(NUMBERED)[texts.str.match(DATED)].dropna()
        if self.dates is not None or parts.empty:
            return
        first, second = parts[0].astype(int), parts[2].astype(int)
        if (first > 12).any() or (parts[1] == ".").any():
            self.dates = "day-first"
        elif (second > 12).any() or (first == second).all():
            self.dates = "month-first"
        else:
            text = texts[parts.index[first != second][:1]].reset_index(drop=True)
            days = [_plain_moments(text, order)[0] for order in DATE_ORDERS]
            readings = " or ".join(f"{day.day} {day:%B %Y}" for day in days)
            rule = f"may be {readings}: `dates` {' or '.join(DATE_ORDERS)} says which"
            raise InputError(where, text[0], rule)

    def _as_iso(self, texts: pd.Series) -> pd.Series:
        """Dates in other forms as ISO 8601 stamps; any other text as it stands."""
        other = texts[texts.str.match(DATED) & ~texts.str.match(STAMP)]
        offset = other.str.extract(OFFSET)[0].fillna("").replace("GMT", "UTC")
        moments = _plain_moments(other.str.replace(OFFSET, "", regex=True), self.dates)
        known = moments.notna()
        made = texts.copy()
        iso = moments[known].dt.strftime("%Y-%m-%dT%H:%M:%S.%f")
        made[known.index[known]] = iso.astype(object) + offset[known]
        return made

    def times(self, texts: pd.Series) -> pd.DataFrame:
        """Times in microseconds: ``value``, and the ``rule`` that a text breaks.

        ``later`` is the second time of a stamp in the hour that a clock set back repeats.
        """
        written, texts = texts, self._as_iso(texts)
        stamps = texts.str.match(STAMP)
        known = stamps | texts.str.fullmatch(DECIMAL)
        if not self.kind and known.any():
            self._first = written[known].iloc[0]
            self.kind = "stamps" if stamps[known].iloc[0] else "seconds"
        other = known & (stamps != (self.kind == "stamps"))
        plain = self._numbers(
            texts[~stamps], "must be a number of seconds, or a date and a time of day"
        )
        made = pd.concat([plain, self._stamps(texts[stamps])]).reindex(texts.index)
        made.loc[other, "rule"] = f"must be {self.kind} as {self._first} is: one log, one kind"
        return made

    def spans(self, texts: pd.Series) -> pd.DataFrame:
        """Durations, as `times`: numbers in the log's unit, or Slurm's ``D-HH:MM:SS``."""
        parts = texts.str.extract(SPAN)
        is_span = parts["minutes"].notna()
        parts = parts[is_span]
        part = parts.fillna("0").astype(float)
        minutes = (part["days"] * 24 + part["hours"]) * 60 + part["minutes"]
        seconds = minutes * 60 + part["seconds"] + part["fraction"]
        odd = (part["seconds"] > 59) | ((part["minutes"] > 59) & parts["hours"].notna())
        made = self._rounded(seconds * SECOND, {SPAN_RULE: odd})
        return pd.concat([made, self._numbers(texts[~is_span], SPAN_RULE)]).reindex(texts.index)

    def _numbers(self, texts: pd.Series, rule: str) -> pd.DataFrame:
        values = numbers(texts)
        return self._rounded(values * UNITS[self.unit], {rule: values.isna()})

    def _stamps(self, texts: pd.Series) -> pd.DataFrame:
        parts = texts.str.extract(STAMP)
        offset = parts[3].replace({"Z": "+00", "z": "+00", "UTC": "+00"})
        if self.offset is None and offset.notna().any():
            self.offset = str(offset.dropna().iloc[0])
        plain = parts[0] + "T" + parts[1] + offset.fillna("")
        moments = pd.to_datetime(plain, format="ISO8601", utc=True, errors="coerce")
        naive, fraction = offset.isna(), ("0." + parts[2].fillna("0")).astype(float) * SECOND
        values = []
        for is_first in (True, False):  # the two times of an hour that the clock shows twice
            local: Any = (
                moments[naive]
                .dt.tz_localize(None)
                .dt.tz_localize(
                    self._zone or UTC, ambiguous=np.full(naive.sum(), is_first), nonexistent="NaT"
                )
            )
            exact = moments.where(~naive, local.dt.tz_convert("UTC"))
            values.append((exact - EPOCH) / pd.Timedelta(microseconds=1) + fraction)
        zone_rule = "has no offset: `time_zone` must name the zone of the cluster's clock"
        rules = {
            zone_rule: naive & (self._zone is None),
            "must be a date and a time of day within 285 years": moments.isna(),
            f"the clock of {self.zone} skips this time": values[0].isna(),
        }
        first, later = (self._rounded(value, rules) for value in values)
        repeats = (first["value"] != later["value"]).fillna(False)
        return first.assign(later=later["value"].where(repeats))

    def _rounded(self, micro: pd.Series, rules: Mapping[str, pd.Series]) -> pd.DataFrame:
        """Microseconds rounded to the step, beside the first rule that each breaks."""
        far = ~(micro.abs() < FARTHEST)
        hint = (
            " (is `time_unit` ms, us or ns?)" if self.kind == "seconds" and self.unit == "s" else ""
        )
        made = by_rules(micro, {**rules, f"must lie within 285 years{hint}": far})
        kept = micro.where(made["rule"] == "")
        near = (kept / self._step).round() * self._step
        if self.step is not None:
            change = (near - kept).abs()
            self.rounded += int((change > 0).sum())
            self.most_rounded = max(self.most_rounded, int(np.nan_to_num(change.max()).round()))
        later = pd.array([pd.NA] * len(made), dtype="Int64")
        return made.assign(value=near.round().astype("Int64"), later=later)


def _plain_moments(texts: pd.Series, order: str | None) -> pd.Series:
    """Dates without offset; missing where pandas reads none."""
    if order is not None:
        texts = texts.str.replace(NUMBERED, DATE_ORDERS[order], regex=True)
        texts = texts.str.replace(r"^(\d\d)-", r"20\1-", regex=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the first date shows no common form
        made: Any = pd.to_datetime(texts, errors="coerce")
        rest = pd.to_datetime(texts[made.isna()], format="mixed", errors="coerce")
    return made.fillna(rest)  # type: ignore[no-any-return]


def is_time(texts: pd.Series) -> pd.Series:
    """Whether texts look like times of a log."""
    return texts.str.match(STAMP) | texts.str.match(DATED) | texts.str.fullmatch(DECIMAL)


def numbers(texts: pd.Series) -> pd.Series:
    """Decimals as floats; NaN for any other text."""
    good = texts.str.fullmatch(DECIMAL).astype(bool)
    return pd.to_numeric(texts.where(good), errors="coerce").astype(float)


def by_rules(value: pd.Series, rules: Mapping[str, Any]) -> pd.DataFrame:
    """Values beside the first rule that each breaks."""
    rule = np.select([*rules.values()], [*rules], "")
    return pd.DataFrame({"value": value, "rule": rule}, index=value.index)


def find_zone(name: str) -> tzinfo:
    """A time zone by its name or offset, or `InputError`."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        if name[:1] in ("+", "-"):
            return datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo or UTC
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        rule = "must be a zone of the IANA data base, such as Europe/Berlin, UTC, or an offset"
        raise InputError("time_zone", name, rule) from None


def seconds_text(micro: int) -> str:
    """Microseconds as seconds, with the decimals that they need."""
    whole, rest = divmod(abs(int(micro)), SECOND)
    return f"{'-' * (micro < 0)}{whole}" + (f".{rest:06d}".rstrip("0") if rest else "")


def stamp_text(micro: int, zone: tzinfo) -> str:
    """Microseconds since 1970 as an ISO 8601 stamp with offset."""
    moment = (EPOCH + timedelta(microseconds=micro)).astimezone(zone)
    text = moment.isoformat()
    return text.replace(f".{moment.microsecond:06d}", f".{moment.microsecond:06d}".rstrip("0"))

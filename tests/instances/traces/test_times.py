"""Times are exact: written and read back, whatever the unit, the offset and the decimals."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.errors import InputError
from hindsched.instances.traces.logs import read_frame
from hindsched.instances.traces.times import NANO, Clock, find_zone, seconds_text, stamp_text


def parse(*cells: str, **options: str) -> list[int]:
    clock = Clock(options.get("zone"), options.get("unit", "s"), options.get("step"))
    return [clock.time(cell)[0] for cell in cells]


@given(st.lists(st.integers(-(10**17), 10**17), min_size=1, max_size=20))
def test_seconds_are_read_as_they_are_written(times: list[int]) -> None:
    assert parse(*map(seconds_text, times)) == times
    assert all(Decimal(seconds_text(time)) * NANO == time for time in times)


@given(st.integers(0, 4 * 10**18), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]))
def test_stamps_are_read_as_they_are_written(time: int, zone: str) -> None:
    assert parse(stamp_text(time, find_zone(zone))) == [time]


@given(st.datetimes(datetime(1990, 1, 1), datetime(2037, 1, 1)), st.sampled_from([0, 1]))
def test_naive_stamps_agree_with_the_standard_library(naive: datetime, fold: int) -> None:
    zone = ZoneInfo("America/New_York")
    expected = naive.replace(tzinfo=zone, fold=fold).astimezone(UTC)
    if expected.astimezone(zone).replace(tzinfo=None, fold=0) != naive:
        with pytest.raises(ValueError, match="skips this time"):
            parse(naive.isoformat(), zone="America/New_York")
        return
    first, second = Clock("America/New_York").time(naive.isoformat())
    both = [first, first if second is None else second]
    whole = int(expected.timestamp() // 1 * NANO) + expected.microsecond * 1000
    assert both[fold] == whole


@pytest.mark.parametrize(
    ("cell", "unit", "expected"),
    [
        ("1.5", "min", 90 * NANO),
        ("250", "ms", NANO // 4),
        ("7", "ns", 7),
        ("0.1", "s", NANO // 10),
        ("1e3", "s", 1000 * NANO),
        (".5", "h", 1800 * NANO),
        ("+2", "us", 2000),
    ],
)
def test_units(cell: str, unit: str, expected: int) -> None:
    assert parse(cell, unit=unit) == [expected]


def test_what_is_no_number_is_no_time() -> None:
    for cell in ("1_000", "\u0663", "--1", "inf", "nan", "0x10", "1,5"):
        with pytest.raises(ValueError, match="must be a number"):
            parse("1", cell)


def test_nothing_is_rounded_unless_asked() -> None:
    frame = pd.DataFrame(
        {"job": ["a"], "submit": ["0"], "start": ["0.125"], "end": ["1"], "gpus": 1}
    )
    assert read_frame(frame).slots_per_second == 1000
    frame["start"] = "0.12345678901"
    with pytest.raises(InputError, match="finer than a nanosecond"):
        read_frame(frame)
    log = read_frame(frame, time_step="0.01")
    assert log.slots_per_second == 100
    assert log.schedule["start"].tolist() == [12]
    note = log.notes.summary()[0]
    assert note["rule"] == "rounded to multiples of 0.01 s as asked"
    assert note["first_value"] == "1 times, by at most 0.003456789 s"


def test_slots_too_fine_for_the_span_are_refused() -> None:
    frame = pd.DataFrame(
        {"job": ["a"], "submit": ["0"], "start": ["0.000000001"], "end": ["99999"], "gpus": 1}
    )
    with pytest.raises(InputError, match="--time-step 1 makes slots of a second"):
        read_frame(frame)
    assert len(read_frame(frame, time_step="1").jobs) == 1

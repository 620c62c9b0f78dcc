"""From rows to a log: what each job is, which rows cannot be judged and why.

A job's *run* is a time in which it held GPUs without a break. From its runs follow what it is:

- one run: ``non-preemptive``;
- several runs of one width: ``preemptive``; its duration is the sum of its runs;
- runs of different widths: ``elastic``; its work is the GPU-seconds it held.

Where the log gives a duration that is shorter than the runs (a pause that it does not show), the
job is judged by its completion alone. Runs whose work was lost hold GPUs but count for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hindsched.arrays import Bools, Ints
from hindsched.errors import InputError
from hindsched.instances.logs.log import FORMULATIONS, Log, Waits
from hindsched.instances.logs.profiles import profile_of
from hindsched.instances.logs.reading import Reading
from hindsched.instances.logs.reruns import mark_reruns
from hindsched.instances.logs.times import MISSING, NANO, seconds_text
from hindsched.json_types import JsonObject

Columns = dict[str, NDArray]

MOST_SLOTS = 10**12
"""Slots that an instance may span."""
SET_ASIDE = "set aside: not judged"
NO_START = "no start: never ran, or unknown"
RUNNING = "no end: still running when the log ended"
BEFORE_LOG = "submitted before the log begins"
BEFORE_WINDOW = "submitted before the window"
AFTER_WINDOW = "submitted after the window"
NO_WORK = "start and duration unknown"


@dataclass(frozen=True)
class Window:
    """Submissions that are judged, in nanoseconds; None for no end on that side."""

    begin: int | None = None
    end: int | None = None


def _nothing(reading: Reading) -> InputError:
    rows = f"{reading.rows_read} row{'s' * (reading.rows_read != 1)}"
    return InputError(reading.source.name, rows, "no row can be judged" + _most_frequent(reading))


def assemble(reading: Reading, window: Window) -> Log:
    """Make the log from the rows that a reader has accepted."""
    if not len(reading.rows):
        raise _nothing(reading)
    columns = reading.rows.columns()
    _note_rounding(reading)
    waits = _waits(columns)
    columns = _whole_gpus(reading, columns)
    columns = _sensible_spans(reading, columns)
    if reading.reruns:
        column = reading.columns.get("job", "job")
        mark_reruns(columns, reading.reruns, column, reading.notes)
    codes, names = pd.factorize(columns["job"])
    columns["code"] = codes.astype(np.int64)
    why = _reasons(columns, len(names), window)
    aside = why > 0
    _note_aside(reading, columns, why)
    others = {name: values[aside] for name, values in columns.items()}
    judged = {name: values[~aside] for name, values in columns.items()}
    if not len(judged["row"]):
        raise _nothing(reading)
    jobs = _jobs(reading, judged)
    log = _log(reading, names, jobs, judged, others, why[aside])
    return replace(log, waits=waits)


def _waits(columns: Columns) -> tuple[Waits, ...]:
    known = (columns["submit"] != MISSING) & (columns["start"] != MISSING)
    waits = np.where(known, columns["start"] - columns["submit"], 0)
    amounts = columns["thousandths"]
    kinds: list[tuple[str, Bools]] = [
        ("all", known),
        ("whole GPUs", known & (amounts > 0) & (amounts % 1000 == 0)),
        ("a share of a GPU", known & (amounts > 0) & (amounts % 1000 != 0)),
        ("no GPU", known & (amounts == 0)),
    ]
    made: list[Waits] = []
    for kind, rows in kinds:
        number = int(rows.sum())
        if number and (kind == "all" or number < int(known.sum())):
            found = np.sort(waits[rows])
            at = [found[-(-share * number // 100) - 1] / NANO for share in (50, 95, 99, 100)]
            mean = float(np.sum(found / NANO) / number)
            made.append(Waits(kind, number, mean, *map(float, at)))
    return tuple(made)


def _whole_gpus(reading: Reading, columns: Columns) -> Columns:
    """Leave out rows without whole GPUs."""
    amounts, notes = columns.pop("thousandths"), reading.notes
    column = reading.columns.get("gpus", "gpus")
    unknown, none = amounts == MISSING, amounts == 0
    share = ~unknown & (amounts % 1000 != 0)
    notes.add_all(columns["row"][unknown], column, "", "number of GPUs unknown", SET_ASIDE)
    notes.add_all(columns["row"][none], column, "0", "asks for no GPU", SET_ASIDE)
    shares = amounts[share] / 1000
    notes.add_all(columns["row"][share], column, shares, "a share of a GPU", SET_ASIDE)
    keep = ~(unknown | none | share)
    columns["gpus"] = amounts // 1000
    return _where(columns, keep)


def _sensible_spans(reading: Reading, columns: Columns) -> Columns:
    """Leave out rows that end before they start or run for no time."""
    start, end, rows = columns["start"], columns["end"], columns["row"]
    known = (start != MISSING) & (end != MISSING)
    column = reading.columns.get("end", "end")
    backwards = known & (end < start)
    for index in np.flatnonzero(backwards):
        value = seconds_text(int(end[index] - start[index])) + " s after its start"
        reading.notes.broken(
            int(rows[index]), column, value, "must not precede the start", reading.row_word
        )
    empty = known & (end == start)
    reading.notes.add_all(rows[empty], column, "0 s", "ran for no time", SET_ASIDE)
    if "duration" in columns:
        given, column = columns["duration"], reading.columns.get("duration", "duration")
        negative = (given < 0) & (given != MISSING)
        for index in np.flatnonzero(negative):
            value = seconds_text(int(given[index]))
            reading.notes.broken(
                int(rows[index]), column, value, "must not be negative", reading.row_word
            )
        zero = (given == 0) & ~empty
        reading.notes.add_all(rows[zero], column, "0 s", "ran for no time", SET_ASIDE)
        empty |= negative | zero
    return _where(columns, ~(backwards | empty))


REASONS = ("", NO_START, RUNNING, BEFORE_LOG, NO_WORK, BEFORE_WINDOW, AFTER_WINDOW)


def _reasons(columns: Columns, num_jobs: int, window: Window) -> NDArray[np.int8]:
    """Why each row's job cannot be judged, as a position in `REASONS`; 0 if it can."""
    submit, start, end = columns["submit"], columns["start"], columns["end"]
    no_duration = columns.get("duration", np.full(len(submit), MISSING)) == MISSING
    # Several rows with an unknown start among them make no profile.
    no_duration |= np.bincount(columns["code"], minlength=num_jobs)[columns["code"]] > 1
    tests: list[Bools] = [
        (start == MISSING) & (end == MISSING),
        (start != MISSING) & (end == MISSING),
        submit == MISSING,
        (start == MISSING) & no_duration,
        np.zeros(len(submit), dtype=bool) if window.begin is None else submit < window.begin,
        np.zeros(len(submit), dtype=bool) if window.end is None else submit >= window.end,
    ]
    of_job = np.zeros(num_jobs, dtype=np.int8)
    for number in range(len(tests), 0, -1):  # the first reason counts
        of_job[columns["code"][tests[number - 1]]] = number
    return of_job[columns["code"]]


def _note_aside(reading: Reading, columns: Columns, why: NDArray[np.int8]) -> None:
    roles = {NO_START: "start", RUNNING: "end", NO_WORK: "start"}
    for number, reason in enumerate(REASONS):
        rows = why == number
        if number and rows.any():
            column = reading.columns.get(roles.get(reason, "submit"), roles.get(reason, "submit"))
            jobs = columns["job"][rows]
            reading.notes.add_all(columns["row"][rows], column, jobs, reason, SET_ASIDE)


def _jobs(reading: Reading, rows: Columns) -> Columns:
    """What each judged job is, ordered by submission (then by row)."""
    code = rows["code"]
    order = np.argsort(code, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(code[order]) != 0])
    sizes = np.diff(np.r_[first, len(order)])
    heads = order[first]
    earliest = np.minimum.reduceat(rows["submit"][order], first)
    unknown = rows["start"][heads] == MISSING
    jobs: Columns = {
        "code": code[heads],
        "row": rows["row"][heads],
        "submit": earliest,
        "completion": rows["end"][heads],
        "gpus": rows["gpus"][heads],
        "runs": np.ones(len(heads), dtype=np.int64),
        "ran": np.where(unknown, MISSING, rows["end"][heads] - rows["start"][heads]),
        "area": np.full(len(heads), None, dtype=object),
    }
    optional = {"duration", "deadline", "weight", "user", "paused"} & rows.keys()
    jobs |= {name: rows[name][heads] for name in optional}
    differ = np.maximum.reduceat(rows["submit"][order], first) != earliest
    if differ.any():
        column = reading.columns.get("submit", "submit")
        rule = "rows of one job have different submissions"
        names = rows["job"][heads[differ]]
        reading.notes.add_all(jobs["row"][differ], column, names, rule, "the earliest counts")
    for index in np.flatnonzero(sizes > 1):
        _merge(jobs, int(index), rows, order[first[index] : first[index] + sizes[index]])
    given = jobs.pop("duration", np.full(len(heads), MISSING))
    paused = jobs.pop("paused", np.zeros(len(heads), dtype=np.int64))
    given = np.where((given == MISSING) & (paused > 0), jobs["ran"] - paused, given)
    is_elastic = jobs["area"] != None  # noqa: E711
    takes_given = (given != MISSING) & ~is_elastic
    jobs["completion_only"] = (jobs["ran"] == MISSING) | (takes_given & (given < jobs["ran"]))
    jobs["duration"] = np.where(takes_given, given, jobs["ran"])
    return _where(jobs, np.lexsort((jobs["row"], jobs["submit"])))


def _merge(jobs: Columns, index: int, rows: Columns, members: Ints) -> None:
    """What a job of several rows is, from its profile: how many GPUs it held when."""
    if "lost" in rows and not rows["lost"][members].all():
        members = members[~rows["lost"][members]]
    profile = profile_of(rows, members)
    widths = {width for _, _, width in profile}
    jobs["completion"][index] = profile[-1][1]
    jobs["gpus"][index] = max(widths)
    jobs["runs"][index] = sum(
        k == 0 or begin != profile[k - 1][1] for k, (begin, _, _) in enumerate(profile)
    )
    jobs["ran"][index] = sum(end - begin for begin, end, _ in profile)
    if len(widths) > 1:
        jobs["area"][index] = sum((end - begin) * width for begin, end, width in profile)
    for name in {"duration", "deadline"} & rows.keys():
        jobs[name][index] = rows[name][members].max()  # MISSING is below everything
    if "paused" in rows:
        of_part: dict[int, int] = {}
        for k in members:
            part = int(rows["part"][k])
            of_part[part] = max(of_part.get(part, 0), int(rows["paused"][k]))
        jobs["paused"][index] = sum(of_part.values())


def _log(
    reading: Reading, names: Any, jobs: Columns, rows: Columns, others: Columns, why: NDArray
) -> Log:
    held = _where(rows, rows["start"] != MISSING)
    unit = _slot_nanoseconds(jobs, held, others)
    zero = int(jobs["submit"].min()) // NANO * NANO
    last = int(jobs["completion"].max())
    if (last - zero) // unit > MOST_SLOTS:
        rule = f"spans more than {MOST_SLOTS:.0e} slots: --time-step 1 makes slots of a second"
        raise InputError(reading.source.name, f"slots of {seconds_text(unit)} s", rule)

    def slots(times: Ints) -> Any:
        return _spans(np.where(times == MISSING, MISSING, times - zero), unit)

    duration = jobs["duration"] // unit
    work = duration * jobs["gpus"]
    for index in np.flatnonzero(jobs["area"] != None):  # noqa: E711
        work[index] = jobs["area"][index] // unit
    made: JsonObject = {
        "row": jobs["row"],
        "job": names[jobs["code"]],
        "submit": slots(jobs["submit"]),
        "duration": duration,
        "gpus": jobs["gpus"],
        "work": work,
        "ran": _spans(jobs["ran"], unit),
        "runs": jobs["runs"],
        "completion": slots(jobs["completion"]),
        "completion_only": jobs["completion_only"],
    }
    made |= {"weight": jobs["weight"]} if "weight" in jobs else {}
    made |= {"deadline": slots(jobs["deadline"])} if "deadline" in jobs else {}
    made |= {"user": jobs["user"]} if "user" in jobs else {}
    schedule: JsonObject = {
        "row": held["row"],
        "job": held["job"],
        "start": slots(held["start"]),
        "end": slots(held["end"]),
        "gpus": held["gpus"],
    }
    schedule |= {name: held[name] for name in ("server", "lost", "part") if name in held}
    aside = {
        "row": others["row"],
        "job": others["job"],
        **{name: slots(others[name]) for name in ("submit", "start", "end")},
        "gpus": others["gpus"],
        "why": [REASONS[number] for number in why],
    }
    is_elastic, pauses = jobs["area"] != None, jobs["runs"] > 1  # noqa: E711
    freedom = 2 if is_elastic.any() else int((pauses | jobs["completion_only"]).any())
    return Log(
        format=reading.format.name,
        source=reading.source.path.name,
        sha256=reading.source.sha256,
        jobs=pd.DataFrame(made),
        schedule=pd.DataFrame(schedule),
        others=pd.DataFrame(aside),
        notes=reading.notes,
        capacity=reading.capacity,
        formulation=FORMULATIONS[freedom],
        slots_per_second=NANO // unit,
        zero=zero,
        clock=reading.clock.kind or "seconds",
        zone=reading.clock.display_zone,
        rows_read=reading.rows_read,
        facts=tuple(reading.facts),
        gpus_a_server=reading.gpus_a_server,
    )


def _spans(times: Ints, unit: int) -> Any:
    """Nanoseconds as slots; missing ones are NA."""
    if not (times == MISSING).any():
        return times // unit
    known = pd.array(times // unit, dtype="Int64")
    known[times == MISSING] = pd.NA
    return known


def _slot_nanoseconds(*tables: Columns) -> int:
    """The largest power of ten nanoseconds, at most a second, that divides every time."""
    unit = NANO
    for table in tables:
        for name in ("submit", "start", "end", "completion", "duration", "ran", "deadline"):
            times = table.get(name)
            if times is not None:
                times = times[times != MISSING]
                while unit > 1 and (times % unit != 0).any():
                    unit //= 10
    return unit


def _note_rounding(reading: Reading) -> None:
    clock = reading.clock
    if clock.rounded:
        most = seconds_text(clock.most_rounded) if clock.most_rounded else "0.000000001"
        rule = f"rounded to multiples of {clock.step} s as asked"
        reading.notes.add(0, "(times)", f"{clock.rounded} times, by at most {most} s", rule, "kept")


def _most_frequent(reading: Reading) -> str:
    """Why rows were left out most often, for a log of which nothing remains."""
    summary = reading.notes.summary()
    if not summary:
        return ""
    first = summary[0]
    return f": {first['count']} times {first['rule']} (column {first['column']})"


def _where(columns: Columns, keep: NDArray) -> Columns:
    """The same columns with some rows, by mask or by position."""
    if keep.dtype == bool and keep.all():
        return columns
    return {name: values[keep] for name, values in columns.items()}

"""Pictures of an audit: GPUs in use over time, when each job ran, and how policies compare."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from hindsched.analysis.gang.schedules import Schedule
from hindsched.analysis.gang.violations import held_rows, spans_over, use_over_time
from hindsched.analysis.plots.style import GREY, PALETTE, common_look, new_axes
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.times import NANO, find_zone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hindsched.analysis.gang.judgement import Judgement

LOG_COLOUR, BEST_COLOUR, OVER_COLOUR = PALETTE[0], PALETTE[2], PALETTE[5]
MOST_STEPS = 600
"""Steps drawn of a curve; more are averaged over equal stretches of time."""
JOBS_DRAWN = 80
SPANS_DRAWN = 500
INCHES_PER_JOB = 0.2


@common_look
def plot_use(audit: Judgement, ax: Axes | None = None) -> Axes:
    """Draw GPUs in use over time: the log's, the best schedule's, and how many there are."""
    log, room = audit.log, audit.instance.total_gpus
    ax = new_axes(8.6, 3.2) if ax is None else ax
    held = held_rows(log)
    end = int(audit.schedule.completions.max())
    columns = [held[name].to_numpy() for name in ("start", "end", "gpus")]
    exact = use_over_time(*columns)
    moments, used = _curve(*exact, end)
    times = moments_of(log, moments)
    ax.fill_between(times, used, step="post", color=LOG_COLOUR, alpha=0.35, lw=0, label="log")
    over = spans_over(*exact, room)
    for begin, until, _ in over[:SPANS_DRAWN]:
        ax.axvspan(*moments_of(log, (begin, min(until, end))), color=OVER_COLOUR, lw=1, alpha=0.8)
    best = audit.best
    if best is not None and best.solution is not None and best is not audit.schedule:
        rows = best.solution.rows
        moments, used = _curve(*use_over_time(rows.start, rows.end, rows.gpus), end)
        ax.step(
            moments_of(log, moments), used, where="post", color=BEST_COLOUR, lw=1, label=best.name
        )
    ax.axhline(room, color=GREY, lw=1, ls="--")
    ax.set_ylim(0, None)
    ax.set_ylabel(f"GPUs in use (of {room})")
    ax.set_title("GPUs in use" + (" (red: more than there are)" if over else ""))
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    _time_axis(log, ax)
    return ax


@common_look
def plot_jobs(audit: Judgement, schedule: Schedule, ax: Axes | None = None) -> Axes | None:
    """Draw when each job waits and runs, in the order of submission; None if its runs are unknown.

    Of more than 80 jobs those are drawn that waited longest.
    """
    if schedule.solution is None:
        return None
    log, jobs = audit.log, audit.instance.jobs
    submits = audit.instance.submits
    shown = np.arange(len(jobs))
    if len(jobs) > JOBS_DRAWN:
        waits = schedule.completions - submits - audit.instance.durations
        shown = np.sort(np.argsort(-waits, kind="stable")[:JOBS_DRAWN])
    place = {int(job): at for at, job in enumerate(shown)}
    ax = new_axes(8.6, 1.2 + INCHES_PER_JOB * len(shown)) if ax is None else ax
    rows = schedule.solution.rows
    drawn = np.isin(rows.job, shown)
    height = [place[int(job)] for job in rows.job[drawn]]
    begin, end = (moments_of(log, times[drawn]) for times in (rows.start, rows.end))
    widest = max(1, int(rows.gpus.max(initial=1)))
    shade = 0.35 + 0.65 * rows.gpus[drawn] / widest
    colours = [(*_rgb(LOG_COLOUR), float(alpha)) for alpha in shade]
    lengths = [b - a for a, b in zip(begin, end, strict=True)]
    ax.barh(height, lengths, left=begin, height=0.7, color=colours, lw=0)
    starts = moments_of(log, submits[shown])
    ends = moments_of(log, schedule.completions[shown])
    ax.hlines(range(len(shown)), starts, ends, color=GREY, lw=0.8, zorder=0)
    ax.plot(starts, range(len(shown)), ls="none", marker=">", ms=3, color="black")
    ax.set_yticks(range(len(shown)), [jobs[int(job)].name for job in shown], fontsize=6)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.grid(False, axis="y")
    which = "" if len(shown) == len(jobs) else f" ({len(shown)} of {len(jobs)} that waited longest)"
    ax.set_title(f"{schedule.name}: when jobs wait and run{which}; darker: more GPUs")
    _time_axis(log, ax)
    return ax


@common_look
def plot_policies(audit: Judgement, ax: Axes | None = None) -> Axes:
    """Draw every scheduler's value beside the interval of the best possible."""
    rows = audit.rows()
    ax = new_axes(7.2, 1.1 + 0.28 * len(rows)) if ax is None else ax
    names = [row["scheduler"] + (" *" if row["pauses"] else "") for row in rows]
    colours = [LOG_COLOUR if row["scheduler"] == "log" else GREY for row in rows]
    values = [row["value"] for row in rows]
    ax.barh(range(len(rows)), values, color=colours, height=0.65)
    ax.set_yticks(range(len(rows)), names)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.grid(False, axis="y")
    verdict = audit.verdict
    if verdict.lower is not None and verdict.upper is not None:
        ax.axvspan(verdict.lower, verdict.upper, color=BEST_COLOUR, alpha=0.4, lw=0)
        ax.axvline(verdict.lower, color=BEST_COLOUR, lw=1)
    unit = "" if verdict.objective == "deadlines-met" else " in seconds"
    paused = " (*: pauses jobs)" if any(row["pauses"] for row in rows) else ""
    ax.set_xlabel(f"{verdict.word}{unit}; green: where the best possible lies{paused}")
    return ax


def moments_of(log: Log, slots: Any) -> list[Any]:
    """Slots as the horizontal axis has them: dates for stamps, else hours since the log's zero."""
    unit = NANO // log.slots_per_second
    if log.clock == "stamps":
        zone = UTC if log.zone is None else find_zone(log.zone)
        zero = datetime(1970, 1, 1, tzinfo=UTC)
        return [
            (zero + timedelta(microseconds=(log.zero + int(slot) * unit) // 1000)).astimezone(zone)
            for slot in slots
        ]
    return [(log.zero + int(slot) * unit) / (3600 * NANO) for slot in slots]


def _time_axis(log: Log, ax: Axes) -> None:
    if log.clock == "stamps":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        zone = UTC if log.zone is None else find_zone(log.zone)
        locator = AutoDateLocator(tz=zone)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))
        ax.set_xlabel(f"time ({log.zone or 'UTC'})")
    else:
        ax.set_xlabel("hours")


def _curve(moments: Any, used: Any, end: int) -> tuple[Any, Any]:
    """A curve that few enough steps draw; it ends with the last completion."""
    kept = moments <= end
    moments, used = moments[kept], used[kept]
    if len(moments) <= MOST_STEPS:
        return moments, used
    edges = np.linspace(moments[0], end, MOST_STEPS + 1).astype(np.int64)
    area = np.concatenate([[0.0], np.cumsum(used[:-1] * np.diff(moments).astype(float))])
    last = len(moments) - 1
    at = np.clip(np.searchsorted(moments, edges, side="right") - 1, 0, last)
    total = area[at] + used[at] * (edges - moments[at])
    means = np.diff(total) / np.maximum(np.diff(edges), 1)
    return edges, np.append(means, 0.0)


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)  # type: ignore[no-any-return]

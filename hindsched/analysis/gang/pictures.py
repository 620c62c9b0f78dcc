"""Pictures of an audit: GPUs in use over time, and how policies compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from hindsched.analysis.gang.breaches import held_rows, use_over_time
from hindsched.analysis.plots.style import GREY, PALETTE, common_look, new_axes
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.times import NANO

Audit: TypeAlias = Any
"""As `audit.py` has it, which needs this file."""

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LOG_COLOUR, BEST_COLOUR, OVER_COLOUR = PALETTE[0], PALETTE[2], PALETTE[5]
MOST_STEPS = 600
"""Stretches of time over which a curve with more steps is averaged."""


@common_look
def plot_use(audit: Audit) -> Axes:
    """Draw GPUs in use over time: the log's, the best schedule's, and how many there are."""
    log, room, held = audit.log, audit.instance.total_gpus, held_rows(audit.log)
    ax = new_axes(8.6, 3.2)
    end = int(audit.schedule.solution.completions.max())
    exact = use_over_time(*(held[name].to_numpy() for name in ("start", "end", "gpus")))
    times, used = _curve(log, *exact, end)
    ax.fill_between(times, used, step="post", color=LOG_COLOUR, alpha=0.35, lw=0, label="log")
    times, used = _curve(log, exact[0], np.where(exact[1] > room, exact[1], 0), end)
    if used.any():
        label = "more than there are"
        ax.fill_between(times, used, step="post", color=OVER_COLOUR, lw=1, label=label)
    best = audit.best
    if best is not None and best is not audit.schedule:
        rows = best.solution.rows
        times, used = _curve(log, *use_over_time(rows.start, rows.end, rows.gpus), end)
        ax.step(times, used, where="post", color=BEST_COLOUR, lw=1, label=best.name)
    ax.axhline(room, color=GREY, lw=1, ls="--")
    ax.set_ylim(0, None)
    ax.set_ylabel(f"GPUs in use (of {room})")
    ax.set_xlabel(f"time ({log.zone or 'UTC'})" if log.clock == "stamps" else "hours")
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
    return ax


@common_look
def plot_policies(audit: Audit) -> Axes:
    """Draw every scheduler's value beside the interval of the best possible."""
    frame, verdict = audit.to_frame(), audit.verdict
    ax = new_axes(7.2, 1.1 + 0.28 * len(frame))
    names = frame["scheduler"] + np.where(frame["pauses"], " *", "")
    colours = np.where(frame["scheduler"] == "log", LOG_COLOUR, GREY)
    ax.barh(range(len(frame)), frame["value"], color=colours, height=0.65)
    ax.set_yticks(range(len(frame)), names)
    ax.set_ylim(len(frame) - 0.4, -0.6)
    ax.grid(False, axis="y")
    if verdict.best.lower is not None and verdict.best.upper is not None:
        ax.axvspan(verdict.best.lower, verdict.best.upper, color=BEST_COLOUR, alpha=0.4, lw=1)
    unit = "" if verdict.objective == "deadlines-met" else " in seconds"
    paused = " (*: pauses jobs)" if frame["pauses"].any() else ""
    ax.set_xlabel(f"{verdict.word}{unit}; green: where the best possible lies{paused}")
    return ax


def _curve(log: Log, moments: Any, used: Any, end: int) -> tuple[Any, Any]:
    """Times (dates for stamps, else hours) and values, of few enough steps, until `end`."""
    kept = moments <= end
    moments, used = moments[kept], used[kept]
    if len(moments) > MOST_STEPS:
        edges = np.linspace(moments[0], end, MOST_STEPS + 1).astype(np.int64)
        area = np.concatenate([[0.0], np.cumsum(used[:-1] * np.diff(moments).astype(float))])
        at = np.searchsorted(moments, edges, side="right") - 1
        means = np.diff(area[at] + used[at] * (edges - moments[at])) / np.maximum(np.diff(edges), 1)
        moments, used = edges, np.append(means, 0.0)
    nanoseconds = [log.zero + int(slot) * (NANO // log.slots_per_second) for slot in moments]
    if log.clock == "stamps":
        return pd.to_datetime(nanoseconds, utc=True).tz_convert(log.zone or "UTC"), used
    return [moment / (3600 * NANO) for moment in nanoseconds], used

"""An audit as one self-contained HTML page, and as a folder of files that somebody can check."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hindsched.analysis import plot
from hindsched.analysis.audit.gang.verdict import held_rows
from hindsched.analysis.audit.gang.words import seconds
from hindsched.analysis.report.html import page_environment
from hindsched.analysis.tables import jsonable, to_csv
from hindsched.errors import InputError
from hindsched.instances.io import write, write_bytes, write_json, write_text
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.times import SECOND
from hindsched.printable import printable
from hindsched.solutions.base import write_solution
from hindsched.solutions.gang.solution import use_over_time
from hindsched.solvers.certificates.file import write_certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Audit = Any  # the class `Audit` of the file that calls this one
ROWS_SHOWN = 25
LOG_COLOUR, BEST_COLOUR, OVER_COLOUR = plot.PALETTE[0], plot.PALETTE[2], plot.PALETTE[5]
MOST_STEPS = 600  # stretches of time over which a curve is averaged


def show_table(frame: pd.DataFrame) -> str:
    """The first rows of a frame as HTML; absent values are dashes."""
    from markupsafe import Markup

    shown = frame.head(ROWS_SHOWN).map(_cell)
    shown.columns = [str(name).replace("_", " ") for name in shown.columns]
    note = f"<p class='note'>{len(frame)} in all, {len(shown)} shown.</p>"
    text = shown.to_html(index=False, border=0)
    return Markup(f"<div class='scroll'>{text}</div>{note if len(frame) > len(shown) else ''}")


def _cell(value: object) -> str:
    if value is None or value is pd.NaT or value != value:
        return "–"
    if isinstance(value, float):
        return seconds(value) if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return printable(str(value))


def render_pictures(audit: Audit) -> dict[str, bytes]:
    """Pictures by their name; none without matplotlib."""
    if not plot.has_matplotlib():
        return {}
    drawn = {"schedulers": plot_policies(audit)}
    if audit.schedule.is_known:
        drawn["use"] = plot_use(audit)
    return {name: plot.render(axes.figure, "png") for name, axes in drawn.items()}


def write_folder(audit: Audit, folder: str | Path) -> list[Path]:
    """Write everything; return the files in the order of their importance.

    ``best.json`` is the best schedule found, ``logged.json`` the log's, where every run is known.
    """
    from hindsched.solvers.door.result import versions

    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError("output", str(folder), "must be a folder")
    instance, certificate, best, logged = (
        place / f"{name}.json" for name in ("instance", "certificate", "best", "logged")
    )
    place.mkdir(parents=True, exist_ok=True)
    pictures = render_pictures(audit)
    environment = page_environment("hindsched.analysis.audit.gang")
    environment.globals = {"table": show_table, "frame": pd.DataFrame}
    page = environment.get_template("page.html").render(
        audit=audit, log=audit.log, capacity=audit.log.need_capacity(), versions=versions(),
        pictures={name: base64.b64encode(data).decode("ascii") for name, data in pictures.items()},
        no_pictures="" if plot.has_matplotlib() else plot.NO_PICTURES,
        files=[str(file) for file in (instance, best, certificate)] if audit.best else (),
    )  # fmt: skip
    write_text(page, place / "audit.html")
    write_json(jsonable(audit.to_dict()), place / "audit.json")
    write(audit.instance, instance)
    write_certificate(audit.certificate, certificate)
    written = [place / "audit.html", place / "audit.json", instance, certificate]
    for path, schedule in ((best, audit.best), (logged, audit.schedule)):
        if schedule is not None and schedule.is_known:
            write_solution(schedule.solution, path, {"scheduler": schedule.name})
            written.append(path)
    tables = {
        "jobs": audit.jobs(), "schedulers": audit.to_frame(),
        "notes": audit.log.notes.to_frame(), "breaches": audit.breaches.to_frame(),
    }  # fmt: skip
    if audit.fragmentation is not None:
        for number, level in enumerate(audit.fragmentation.levels[1:], start=2):
            stem = f"{number}-{level.name.replace(' ', '-')}"
            files = [place / f"{stem}-{what}.json" for what in ("instance", "certificate", "best")]
            write(level.instance, files[0])
            write_certificate(level.certificate, files[1])
            if level.best is not None:
                write_solution(level.best, files[2])
            written += files[: 2 + (level.best is not None)]
        tables |= {"kinds": audit.fragmentation.kinds}
    if audit.gap is not None:
        tables |= {"gap_jobs": audit.gap.jobs, "gap_hours": audit.gap.hours}
    content = {f"{name}.csv": to_csv(table).encode() for name, table in tables.items()}
    content |= {f"{name}.png": data for name, data in pictures.items()}
    for name, data in content.items():
        write_bytes(data, place / name)
    return [*written, *(place / name for name in content)]


@plot.look()
def plot_use(audit: Audit) -> Axes:
    """Draw GPUs in use over time: the log's, the best schedule's, and how many there are."""
    log, room, held, best = audit.log, audit.instance.total_gpus, held_rows(audit.log), audit.best
    ax = plot.new_axes(8.6, 3.2)
    end = int(audit.schedule.solution.completions.max())
    used = use_over_time(held["start"], held["end"], held["gpus"])
    areas = {"log": (used, LOG_COLOUR, 0.35, 0)}
    if (used > room).any():
        areas["more than there are"] = (used.where(used > room, 0), OVER_COLOUR, 1.0, 1)
    for label, (curve, color, alpha, lw) in areas.items():
        style: dict[str, Any] = {"step": "post", "color": color, "alpha": alpha, "lw": lw}
        ax.fill_between(*_curve(log, curve, end), label=label, **style)
    if best is not None and best is not audit.schedule:
        rows = best.solution.rows
        curve = use_over_time(rows.start, rows.end, rows.gpus)
        ax.step(*_curve(log, curve, end), where="post", color=BEST_COLOUR, lw=1, label=best.name)
    ax.axhline(room, color=plot.GREY, lw=1, ls="--")
    ax.set_ylim(0, None)
    ax.set_ylabel(f"GPUs in use (of {room})")
    ax.set_xlabel(f"time ({log.zone or 'UTC'})" if log.clock == "stamps" else "hours")
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
    return ax


@plot.look()
def plot_policies(audit: Audit) -> Axes:
    """Draw every scheduler's value beside the interval of the best possible."""
    frame, verdict = audit.to_frame(), audit.verdict
    ax = plot.new_axes(7.2, 1.1 + 0.28 * len(frame))
    names = frame["scheduler"] + np.where(frame["pauses"], " *", "")
    colours = np.where(frame["scheduler"] == "log", LOG_COLOUR, plot.GREY)
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


def _curve(log: Log, used: pd.Series, end: int) -> tuple[Any, Any]:
    """Times (dates for stamps, else hours) until `end`, and mean use from each to the next."""
    moments = used.index.to_numpy(dtype=np.int64)
    edges = np.unique(np.linspace(moments[0], end, MOST_STEPS + 1).astype(np.int64))
    area = np.append(0.0, np.cumsum(used.to_numpy()[:-1] * np.diff(moments)))
    means = np.diff(np.interp(edges, moments, area)) / np.diff(edges)
    times: Any = log.microseconds(edges) / (3600 * SECOND)
    if log.clock == "stamps":
        times = pd.to_datetime(log.microseconds(edges), unit="us", utc=True)
        times = times.tz_convert(log.zone or "UTC")
    return times, np.append(means, 0.0)

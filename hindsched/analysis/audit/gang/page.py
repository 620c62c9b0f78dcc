"""An audit as one self-contained HTML page, and as a folder of files that somebody can check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hindsched.analysis import plot
from hindsched.analysis.audit.gang.verdict import held_rows
from hindsched.analysis.audit.gang.words import UNITS, cell_text
from hindsched.analysis.report.html import page_environment, page_style, svg_markup
from hindsched.analysis.tables import jsonable, to_csv
from hindsched.errors import InputError
from hindsched.instances.gang.instance import GangInstance, GangJob
from hindsched.instances.io import write, write_bytes, write_json, write_text
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.reading import short
from hindsched.instances.traces.times import SECOND
from hindsched.printable import printable
from hindsched.solutions.base import write_solution
from hindsched.solutions.gang.solution import GangSolution, pool_rows, use_over_time
from hindsched.solvers.certificates.file import write_certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Audit = Any  # the class `Audit` of the file that calls this one
ROWS_SHOWN, BARS, NAME_SHOWN = 25, 10, 18
LOG_COLOUR, BEST_COLOUR, OVER_COLOUR = plot.PALETTE[0], plot.PALETTE[2], plot.PALETTE[5]
MOST_STEPS, MOST_STRETCHES = 600, 120  # of a curve, and of the hours with losses
JOBS_DRAWN = 40  # in the two schedules
ALIKE = 1.1  # schedulers whose values differ by less are not drawn


def show_table(frame: pd.DataFrame) -> str:
    """The first rows of a frame as HTML; absent values are dashes."""
    from markupsafe import Markup

    shown = pd.DataFrame({
        str(name).replace("_", " "): [printable(cell_text(str(name), each)) for each in column]
        for name, column in frame.head(ROWS_SHOWN).items()
    })  # fmt: skip
    note = f"<p class='note'>{len(frame)} in all, {len(shown)} shown.</p>"
    text = shown.to_html(index=False, border=0)
    return Markup(f"<div class='scroll'>{text}</div>{note if len(frame) > len(shown) else ''}")


def write_folder(audit: Audit, folder: str | Path) -> list[Path]:
    """Write everything; return the files in the order of their importance.

    ``best.json`` is the best schedule found, ``logged.json`` the log's, where every run is known.
    """
    from markupsafe import Markup

    from hindsched.solvers.door.result import versions

    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError("output", str(folder), "must be a folder")
    place.mkdir(parents=True, exist_ok=True)
    written = [place / "audit.html", place / "audit.json"]
    write_json(jsonable(audit.to_dict()), written[1])
    levels = [("", audit.instance, audit.certificate, audit.best and audit.best.solution)]
    if audit.fragmentation is not None:
        for number, level in enumerate(audit.fragmentation.levels[1:], start=2):
            stem = f"{number}-{level.name.replace(' ', '-')}-"
            levels.append((stem, level.instance, level.certificate, level.best))
    checks = list[list[Path]]()
    for stem, instance, certificate, best in levels:
        files = [place / f"{stem}{what}.json" for what in ("instance", "best", "certificate")]
        write(instance, files[0])
        write_certificate(certificate, files[2])
        if best is not None:
            write_solution(best, files[1], {"scheduler": audit.best.name} if not stem else {})
        checks.append(files if best is not None else files[::2])
        written += checks[-1]
    if audit.schedule.is_known:
        written.append(place / "logged.json")
        write_solution(audit.schedule.solution, written[-1], {"scheduler": audit.schedule.name})
    tables = {
        "jobs": audit.jobs(), "schedulers": audit.to_frame(),
        "notes": audit.log.notes.to_frame(), "breaches": audit.breaches.to_frame(),
    }  # fmt: skip
    if audit.fragmentation is not None:
        tables |= {"kinds": audit.fragmentation.kinds}
    if audit.gap is not None:
        tables |= {"gap_jobs": audit.gap.jobs, "gap_hours": audit.gap.hours}
    for name, table in tables.items():
        written.append(place / f"{name}.csv")
        write_bytes(to_csv(table).encode(), written[-1])
    environment = page_environment("hindsched.analysis.audit.gang")
    environment.globals = {"table": show_table, "frame": pd.DataFrame}
    drawn = plot.has_matplotlib()
    page = environment.get_template("page.html").render(
        audit=audit, log=audit.log, capacity=audit.log.need_capacity(), versions=versions(),
        style=Markup(page_style()), checks=checks, no_pictures="" if drawn else plot.NO_PICTURES,
        panels=[Markup(svg_markup(axes)) for axes in plot_losses(audit)] if drawn else (),
        schedules=[Markup(svg_markup(axes)) for axes in plot_schedules(audit)] if drawn else (),
        drawn=_jobs_drawn(audit),
    )  # fmt: skip
    write_text(page, written[0])
    return written


def plot_losses(audit: Audit) -> Iterator[Axes]:
    """Draw where the loss sits: jobs, hours, users, kinds; schedulers; and GPUs in use."""
    gap = audit.gap
    if gap is not None and (gap.jobs["later"] > 0).any():
        jobs = gap.jobs[gap.jobs["later"] > 0]
        yield plot_bars(jobs["job"], jobs["later"], "Jobs that end later than they need")
        users = audit.log.jobs.set_index("job").get("user")
        if users is not None and users.nunique() > 1:
            lost = jobs.groupby(jobs["job"].map(users))["later"].sum()
            yield plot_bars(lost.index, lost, "Users whose jobs end later, all together")
    if gap is not None and len(gap.hours) > 1:
        yield plot_hours(audit.log, gap.hours)
    if audit.fragmentation is not None and len(kinds := audit.fragmentation.kinds) > 1:
        yield plot_bars(kinds["kind"], kinds["waited"], "Kinds that jobs waited for", "GPU-")
    values = audit.to_frame()["value"]
    if values.max() > ALIKE * values.min():
        yield plot_policies(audit)
    if audit.schedule.is_known:
        yield plot_use(audit)


@plot.look()
def plot_bars(names: Sequence[str], seconds: Any, title: str, of: str = "") -> Axes:
    """Draw the largest of some spans."""
    largest = pd.Series(np.asarray(seconds, dtype=float), [*map(str, names)]).nlargest(BARS)
    largest = largest[largest > 0]
    ax = plot.new_axes(4.6, 1.0 + 0.24 * max(1, len(largest)))
    unit, size = _unit(float(largest.max()) if len(largest) else 0.0)
    ax.barh(range(len(largest)), largest / size, color=OVER_COLOUR, height=0.65)
    ax.set_yticks(range(len(largest)), [short(name, NAME_SHOWN) for name in largest.index])
    ax.set_ylim(max(1, len(largest)) - 0.4, -0.6)
    ax.grid(False, axis="y")
    ax.set_xlabel(f"{of}{unit}")
    ax.set_title(title)
    return ax


@plot.look()
def plot_hours(log: Log, hours: pd.DataFrame) -> Axes:
    """Draw GPU-hours that stood idle while jobs waited, over time."""
    ax, begin, end = plot.new_axes(4.6, 2.6), _slots(log, hours["begin"]), _slots(log, hours["end"])
    count = round((end.max() - begin.min()) / (end - begin).max())
    edges = np.linspace(begin.min(), end.max(), min(MOST_STRETCHES, count) + 1)
    lost, _ = np.histogram(begin, edges, weights=hours["idle"] / 3600)
    ax.stairs(lost, edges, fill=True, color=OVER_COLOUR)
    _time_axis(ax, log, edges[0], edges[-1])
    ax.set_ylabel("GPU-hours")
    ax.set_title("GPUs idle while jobs waited")
    return ax


@plot.look()
def plot_use(audit: Audit) -> Axes:
    """Draw GPUs in use over time: the log's, the best schedule's, and how many there are."""
    log, room, held, best = audit.log, audit.instance.total_gpus, held_rows(audit.log), audit.best
    ax = plot.new_axes(4.6, 2.8)
    first, end = int(log.jobs["submit"].min()), int(audit.schedule.solution.completions.max())
    used = use_over_time(held["start"], held["end"], held["gpus"])
    areas = {"log": (used, LOG_COLOUR, 0.35, 0)}
    if (used > room).any():
        areas["more than there are"] = (used.where(used > room, 0), OVER_COLOUR, 1.0, 1)
    for label, (curve, color, alpha, lw) in areas.items():
        style: dict[str, Any] = {"step": "post", "color": color, "alpha": alpha, "lw": lw}
        ax.fill_between(*_curve(curve, first, end), label=label, **style)
    if best is not None and best is not audit.schedule:
        rows = best.solution.rows
        curve = use_over_time(rows.start, rows.end, rows.gpus)
        ax.step(*_curve(curve, first, end), where="post", color=BEST_COLOUR, lw=1, label=best.name)
    ax.axhline(room, color=plot.GREY, lw=1, ls="--")
    ax.set_ylim(0, None)
    ax.set_ylabel(f"GPUs in use (of {room})")
    _time_axis(ax, log, first, end)
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
    ax.set_title("In use")
    return ax


@plot.look()
def plot_policies(audit: Audit) -> Axes:
    """Draw every scheduler's value beside the interval of the best possible."""
    frame, verdict = audit.to_frame(), audit.verdict
    ax = plot.new_axes(4.6, 1.1 + 0.24 * len(frame))
    of_time = verdict.objective != "deadlines-met"
    unit, size = _unit(float(frame["value"].max())) if of_time else ("", 1)
    names = frame["scheduler"] + np.where(frame["pauses"], " *", "")
    colours = np.where(frame["scheduler"] == "log", LOG_COLOUR, plot.GREY)
    ax.barh(range(len(frame)), frame["value"] / size, color=colours, height=0.65)
    ax.set_yticks(range(len(frame)), names)
    ax.set_ylim(len(frame) - 0.4, -0.6)
    ax.grid(False, axis="y")
    low, high = verdict.best.lower, verdict.best.upper
    if low is not None and high is not None:
        ax.axvspan(low / size, high / size, color=BEST_COLOUR, alpha=0.4, lw=1)
    paused = ", *: pauses jobs" if frame["pauses"].any() else ""
    ax.set_xlabel(f"{verdict.word}, {unit} (green: best possible{paused})".replace(", (", " ("))
    ax.set_title("The same jobs by other schedulers")
    return ax


def plot_schedules(audit: Audit) -> Iterator[Axes]:
    """Draw the same jobs in the log's schedule and in the best one, above each other."""
    members, best = _jobs_drawn(audit), audit.best
    known = [audit.schedule] if best is None else list(dict.fromkeys([audit.schedule, best]))
    parts = [_part(each.solution, members) for each in known]
    last = max(int(part.completions.max()) for part in parts)
    for schedule, part in zip(known, parts, strict=True):
        with plot.look():
            ax = plot.new_axes(5.4, min(12.0, 1.3 + 0.22 * len(members)))
        plot.gantt(part, ax, most=int(part.instance.job_gpus.max()))
        logged = schedule is audit.schedule
        title = "as logged" if logged else f"best schedule ({schedule.name})"
        ax.set_title(title, loc="left")
        ax.figure.axes[-1].set_ylabel("GPUs")
        names = [short(label.get_text(), NAME_SHOWN) for label in ax.get_yticklabels()]
        ax.set_yticks(ax.get_yticks(), names)
        first = int(part.instance.submits.min())
        _time_axis(ax, audit.log, first - (last - first) // 100, last, "triangle: submission")
        yield ax


def _jobs_drawn(audit: Audit) -> range:
    """All jobs, or as many submitted one after the other as fit, those that lose or wait most."""
    jobs = len(audit.instance.jobs)
    ends = audit.schedule.solution.completions
    least = audit.instance.submits + audit.instance.durations if audit.gap is None else (
        audit.best.solution.completions
    )  # fmt: skip
    lost = np.append(0, np.cumsum(np.maximum(ends - least, 0)))
    first = int(np.argmax(lost[JOBS_DRAWN:] - lost[:-JOBS_DRAWN])) if jobs > JOBS_DRAWN else 0
    return range(first, min(first + JOBS_DRAWN, jobs))


def _one_pool(instance: GangInstance, members: Sequence[int]) -> GangInstance:
    """Some jobs on one pool, the GPUs of the first kind."""
    data = [instance.jobs[position].model_dump(exclude_unset=True) for position in members]
    places = {"gpu_kinds", "most_gpus"}
    kept = [{key: each for key, each in job.items() if key not in places} for job in data]
    return GangInstance(
        name=instance.name, horizon=instance.horizon, slot_seconds=instance.slot_seconds,
        gpus=next(iter(instance.gpu_kinds.values())), jobs=tuple(GangJob(**job) for job in kept),
    )  # fmt: skip


def _part(solution: GangSolution, members: range) -> GangSolution:
    """Some jobs of a schedule, on one pool."""
    rows = solution.rows
    mine = (rows.job >= members.start) & (rows.job < members.stop)
    pool = _one_pool(solution.instance, members)
    job, *others = (column[mine] for column in rows[:4])
    return GangSolution(pool, pool_rows(job - members.start, *others), solution.formulation)


def _unit(span: float) -> tuple[str, int]:
    """The largest unit of which a span has several."""
    name, size = next((each for each in UNITS.items() if span >= 2 * each[1]), ("s", 1))
    return {"d": "days", "h": "hours", "min": "minutes", "s": "seconds"}[name], size


def _slots(log: Log, texts: pd.Series) -> Any:
    """Times as the log writes them, in slots."""
    if log.clock == "stamps":
        since = pd.to_datetime(texts, utc=True, format="ISO8601") - pd.Timestamp(0, tz="UTC")
        micro: Any = since / pd.Timedelta(microseconds=1)
    else:
        micro = texts.astype(float) * SECOND
    return (micro.to_numpy() - log.zero) / (SECOND // log.slots_per_second)


def _time_axis(ax: Axes, log: Log, first: float, last: float, says: str = "") -> None:
    """A horizontal axis of slots that shows dates, or spans since the log's zero."""
    from matplotlib import dates, ticker

    places: Any
    ends: Any = log.microseconds(np.array([first, last]))
    if log.clock == "stamps":
        zone = log.zone or "UTC"
        days = pd.to_datetime(ends, unit="us", utc=True).tz_convert(zone)
        locator = dates.AutoDateLocator(tz=days.tz, maxticks=10)
        places = np.asarray(locator.tick_values(*days.to_pydatetime()))
        form = dates.ConciseDateFormatter(locator, tz=days.tz)
        labels, numbers = form.format_ticks(places), dates.date2num(days)
        what = f"{form.get_offset()} ({zone})".strip()
    else:
        what, size = _unit(float(ends[1] - ends[0]) / SECOND)
        numbers = ends / SECOND / size
        places = ticker.MaxNLocator(6).tick_values(*numbers)
        labels = [f"{place:,g}" for place in places]
    inside = (places >= numbers[0]) & (places <= numbers[1])
    slots = np.interp(places[inside], numbers, [first, last])
    ax.set_xticks(slots, [label for label, shown in zip(labels, inside, strict=True) if shown])
    ax.set_xlim(first, last)
    ax.set_xlabel(", ".join(filter(None, [what, says])))


def _curve(used: pd.Series, first: int, end: int) -> tuple[Any, Any]:
    """Slots from `first` to `end`, and mean use from each to the next."""
    moments = used.index.to_numpy(dtype=np.int64)
    edges = np.unique(np.linspace(first, end, MOST_STEPS + 1).astype(np.int64))
    area = np.append(0.0, np.cumsum(used.to_numpy()[:-1] * np.diff(moments)))
    means = np.diff(np.interp(edges, moments, area)) / np.diff(edges)
    return edges, np.append(means, 0.0)

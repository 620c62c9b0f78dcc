"""An audit as one self-contained HTML page, and as a folder of files that somebody can check."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from hindsched.analysis.gang.verdict import seconds
from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.plots.style import NO_PICTURES, has_matplotlib, render
from hindsched.analysis.spreadsheets import for_spreadsheets
from hindsched.errors import InputError
from hindsched.instances.io import write, write_bytes, write_json, write_text
from hindsched.printable import printable
from hindsched.solutions.base import write_solution
from hindsched.solvers.certificates.file import write_certificate

Audit: TypeAlias = Any
"""As `audit.py` has it, which needs this file."""

ROWS_SHOWN = 25


def render_page(
    audit: Audit, commands: Sequence[str] = (), pictures: dict[str, bytes] | None = None
) -> str:
    """Make the page as text, with commands by which somebody else checks the audit."""
    from jinja2 import Environment

    from hindsched.solvers.door.versions import versions

    inline = {
        name: base64.b64encode(data).decode("ascii")
        for name, data in (draw(audit) if pictures is None else pictures).items()
    }
    template = files("hindsched.analysis.gang").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, finalize=lambda value: value if value is None or
                              hasattr(value, "__html__") else printable(str(value)))  # fmt: skip
    environment.globals = {"table": show_table}
    return environment.from_string(template).render(
        audit=audit, log=audit.log, capacity=audit.log.need_capacity(), pictures=inline,
        no_pictures="" if has_matplotlib() else NO_PICTURES, shown=ROWS_SHOWN,
        frame=pd.DataFrame, commands=commands, versions=versions(),
    )  # fmt: skip


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


def draw(audit: Audit) -> dict[str, bytes]:
    """Pictures by their name; none without matplotlib."""
    if not has_matplotlib():
        return {}
    from hindsched.analysis.gang.pictures import plot_policies, plot_use

    drawn = {"schedulers": plot_policies(audit)}
    if audit.schedule.is_known:
        drawn["use"] = plot_use(audit)
    return {name: render(axes.figure, "png") for name, axes in drawn.items()}


def write_folder(audit: Audit, folder: str | Path) -> list[Path]:
    """Write everything; return the files in the order of their importance.

    Files: ``audit.html`` (the page), ``audit.json`` (what ``--json`` prints), ``instance.json``,
    ``certificate.json``, ``best.json`` (best schedule found), ``logged.json`` (the log's schedule,
    where every run is known), tables ``jobs.csv, schedulers.csv, notes.csv, breaches.csv,
    gap_jobs.csv, gap_hours.csv`` and pictures ``use.png, schedulers.png`` (not without matplotlib).
    """
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError("output", str(folder), "must be a folder")
    instance, certificate, best = (
        place / f"{name}.json" for name in ("instance", "certificate", "best")
    )
    pictures = draw(audit)
    commands = [
        f"hindsched verify {instance} {best} --prices {certificate}",
        f"python -m hindsched.kernel {instance} {best} {certificate}",
    ]
    place.mkdir(parents=True, exist_ok=True)
    page = render_page(audit, commands if audit.best is not None else (), pictures)
    write_text(page, place / "audit.html")
    write_json(jsonable(audit.to_dict()), place / "audit.json")
    write(audit.instance, instance)
    write_certificate(audit.certificate, certificate)
    written = [place / "audit.html", place / "audit.json", instance, certificate]
    for path, schedule in ((best, audit.best), (place / "logged.json", audit.schedule)):
        if schedule is not None and schedule.is_known:
            write_solution(schedule.solution, path, {"scheduler": schedule.name})
            written.append(path)
    tables = {
        "jobs": audit.jobs(),
        "schedulers": audit.to_frame(),
        "notes": audit.log.notes.to_frame(),
        "breaches": audit.breaches.to_frame(),
    }
    if audit.gap is not None:
        tables |= {"gap_jobs": audit.gap.jobs, "gap_hours": audit.gap.hours}
    for name, table in tables.items():
        write_text(for_spreadsheets(table).to_csv(index=False), place / f"{name}.csv")
        written.append(place / f"{name}.csv")
    for name, data in pictures.items():
        write_bytes(data, place / f"{name}.png")
        written.append(place / f"{name}.png")
    return written

"""An audit as a folder: files that somebody else can check, tables, pictures and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hindsched.analysis.gang.page import render_page
from hindsched.analysis.gang.pictures import plot_jobs, plot_policies, plot_use
from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.plots.style import has_matplotlib, save
from hindsched.analysis.spreadsheets import for_spreadsheets
from hindsched.errors import InputError
from hindsched.instances.io import write, write_json, write_text
from hindsched.solutions.base import write_solution
from hindsched.solvers.certificates.file import write_certificate

if TYPE_CHECKING:
    from hindsched.analysis.gang.judgement import Judgement

INSTANCE, LOGGED, BEST, CERTIFICATE = (
    "instance.json", "logged.json", "best.json", "certificate.json",
)  # fmt: skip


def write_folder(audit: Judgement, folder: str | Path) -> list[Path]:
    """Write everything; return the files in the order of their importance.

    Files: ``audit.html`` (the page), ``audit.json`` (what ``--json`` prints), ``instance.json``,
    ``certificate.json``, ``best.json`` (best schedule found), ``logged.json`` (the log's schedule,
    where every run is known), tables ``jobs.csv, schedulers.csv, notes.csv, breaches.csv,
    gap_jobs.csv, gap_hours.csv`` and pictures ``use.png, schedulers.png, jobs.png`` (not without
    matplotlib).
    """
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError("output", str(folder), "must be a folder")
    write(audit.instance, place / INSTANCE)
    written = [place / INSTANCE]
    if audit.certificate is not None:
        write_certificate(audit.certificate, place / CERTIFICATE)
        written.append(place / CERTIFICATE)
    for name, schedule in ((BEST, audit.best), (LOGGED, audit.schedule)):
        if schedule is not None and schedule.solution is not None:
            write_solution(schedule.solution, place / name, {"scheduler": schedule.name})
            written.append(place / name)
    tables = {
        "jobs.csv": audit.jobs(),
        "schedulers.csv": audit.to_frame(),
        "notes.csv": audit.log.notes.to_frame(),
        "breaches.csv": audit.breaches.to_frame(),
    }
    if audit.gap is not None:
        tables |= {"gap_jobs.csv": audit.gap.jobs, "gap_hours.csv": audit.gap.hours}
    for name, table in tables.items():
        write_text(for_spreadsheets(table).to_csv(index=False), place / name)
        written.append(place / name)
    if has_matplotlib():
        pictures = {
            "schedulers.png": plot_policies(audit),
            "use.png": plot_use(audit) if audit.schedule.used is not None else None,
            "jobs.png": plot_jobs(audit, audit.schedule),
        }
        for name, axes in pictures.items():
            if axes is not None:
                save(axes.figure, place / name)
                written.append(place / name)
    write_json(jsonable(audit.to_dict()), place / "audit.json")
    write_text(render_page(audit, check_commands(audit, place)), place / "audit.html")
    return [place / "audit.html", place / "audit.json", *written]


def check_commands(audit: Judgement, place: Path) -> list[str]:
    """Commands by which somebody else checks the bound and the best schedule."""
    if audit.certificate is None or audit.best is None or audit.best.solution is None:
        return []
    instance, best, certificate = (place / name for name in (INSTANCE, BEST, CERTIFICATE))
    return [
        f"hindsched verify {instance} {best} --prices {certificate}",
        f"python -m hindsched.kernel {instance} {best} {certificate}",
    ]

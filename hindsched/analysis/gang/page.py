"""An audit as one self-contained HTML page."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hindsched.analysis.gang.pictures import JOBS_DRAWN, plot_jobs, plot_policies, plot_use
from hindsched.analysis.gang.verdict import seconds
from hindsched.analysis.plots.style import NO_PICTURES, has_matplotlib, render
from hindsched.analysis.report.html import page_environment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hindsched.analysis.gang.judgement import Judgement

ROWS_SHOWN = 25
COLUMNS = {
    "scheduler": "scheduler",
    "value": "value",
    "ratio_lower": "ratio ≥",
    "ratio_upper": "ratio ≤",
    "mean_jct": "mean JCT",
    "p50_jct": "p50",
    "p95_jct": "p95",
    "p99_jct": "p99",
    "mean_wait": "mean wait",
    "makespan": "makespan",
    "bounded_slowdown": "bounded slowdown",
    "utilisation": "utilisation",
    "deadlines_met": "deadlines met",
}


def render_page(audit: Judgement, commands: Sequence[str] = ()) -> str:
    """Make the page as text.

    Parameters
    ----------
    audit : Audit
        The judgement.
    commands : sequence of str
        Commands by which somebody else checks it.
    """
    from hindsched.solvers.door.versions import versions

    environment = page_environment("hindsched.analysis.gang")
    environment.filters |= {"number": show_number, "percent": show_percent}
    return environment.get_template("page.html").render(
        audit=audit,
        log=audit.log,
        capacity=audit.log.need_capacity(),
        columns=COLUMNS,
        rows=audit.rows(),
        pictures=list(_pictures(audit)) if has_matplotlib() else [],
        no_pictures=None if has_matplotlib() else NO_PICTURES,
        notes=audit.log.notes.summary(),
        breaches=audit.breaches.listed[:ROWS_SHOWN],
        gap=audit.gap,
        users=audit.schedule.measures(elastic=audit.is_elastic)["users"],
        shown=ROWS_SHOWN,
        commands=commands,
        versions=versions(),
    )


def show_number(value: object) -> str:
    """Write a number for a table; absent is a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return seconds(value) if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_percent(share: float | None) -> str:
    """Write a share as a percentage; absent is a dash."""
    return "–" if share is None else f"{share:.1%}"


def _pictures(audit: Judgement) -> Any:
    yield "Every scheduler beside the best possible", _inline(plot_policies(audit))
    if audit.schedule.used is not None:
        yield "GPUs in use over time", _inline(plot_use(audit))
    best = audit.best
    for schedule in dict.fromkeys(["log", "best"]):
        chosen = audit.schedule if schedule == "log" else best
        if chosen is None or (schedule == "best" and chosen is audit.schedule):
            continue
        axes = plot_jobs(audit, chosen)
        if axes is not None:
            few = len(audit.instance.jobs) <= JOBS_DRAWN
            name = "The log" if schedule == "log" else f"The best schedule ({chosen.name})"
            yield name + (": its jobs" if few else ": the jobs that waited longest"), _inline(axes)


def _inline(axes: Axes) -> str:
    data = base64.b64encode(render(axes.figure, "png")).decode("ascii")
    return f"data:image/png;base64,{data}"

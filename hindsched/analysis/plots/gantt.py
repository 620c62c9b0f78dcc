"""Gantt chart: when each job waits and runs, and with how many workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hindsched.analysis.plots.style import (
    GREY,
    SEQUENTIAL,
    common_look,
    new_axes,
    solution_of,
    whole_slots,
)
from hindsched.analysis.spans import Span, job_spans
from hindsched.solutions.base import Solution
from hindsched.solutions.tables import JobRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS_SHOWN = 60
INCHES_PER_JOB = 0.22


@common_look
def plot_gantt(solution: Any, ax: Axes | None = None) -> Axes:
    """Draw when each job runs.

    Parameters
    ----------
    solution : Solution, Result or SimulationResult
        Any family's solution, or what found it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A bar per job, the darker the more workers are at work; a thin line from arrival to
        completion; jobs that are not served have grey names.

    Examples
    --------
    >>> import hindsched as hs
    >>> run = hs.simulate(hs.generate("oasis", seed=2), "oasis")
    >>> hs.plot.gantt(run).get_ylabel()
    'job (grey: not completed)'
    """
    solution = solution_of(solution)
    found = job_spans(solution)
    return _draw(solution, [(row, found.get(row["job"], [])) for row in solution.job_rows()], ax)


def _draw(solution: Solution, jobs: list[tuple[JobRow, list[Span]]], ax: Axes | None) -> Axes:
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    count = len(jobs)
    if ax is None:
        ax = new_axes(7.2, min(12.0, max(2.2, 1.2 + INCHES_PER_JOB * count)))
    most = max((span.workers for _, spans in jobs for span in spans), default=1.0)
    scale = Normalize(0, max(most, 1.0))
    colours = mpl.colormaps[SEQUENTIAL]
    for place, (row, spans) in enumerate(jobs):
        arrival, completion = row["arrival"], row["completion"]
        if completion is not None:
            ax.plot([arrival - 0.5, completion + 0.5], [place, place], color=GREY, lw=0.8, zorder=1)
        ax.plot(arrival - 0.5, place, marker=">", color="black", ms=3, zorder=3, ls="none")
        for span in spans:
            ax.barh(
                place,
                span.last - span.first + 1,
                left=span.first - 0.5,
                height=0.7,
                color=colours(scale(span.workers)),
                edgecolor=GREY,
                linewidth=0.4,
                zorder=2,
            )
    _label_jobs(ax, jobs)
    ax.grid(False, axis="y")
    ax.set_xlim(0.5, max(_last_slot(jobs), solution.instance.horizon) + 0.5)
    whole_slots(ax.xaxis)
    ax.set_xlabel("slot (triangle: arrival)")
    ax.set_title(f"{solution.instance.name}: objective {solution.objective():.6g}")
    bar = ax.figure.colorbar(ScalarMappable(scale, colours), ax=ax, pad=0.02, aspect=30)
    bar.set_label("workers at work")
    whole_slots(bar.ax.yaxis)
    return ax


def _label_jobs(ax: Axes, jobs: list[tuple[JobRow, list[Span]]]) -> None:
    count = len(jobs)
    step = max(1, -(-count // LABELS_SHOWN))
    shown = range(0, count, step)
    ax.set_yticks(list(shown), [str(jobs[index][0]["job"]) for index in shown])
    for label, index in zip(ax.get_yticklabels(), shown, strict=True):
        if jobs[index][0]["completion"] is None:
            label.set_color(GREY)
            label.set_fontstyle("italic")
    ax.set_ylim(count - 0.4, -0.6)
    ax.set_ylabel("job (grey: not completed)" if _any_unserved(jobs) else "job")


def _any_unserved(jobs: list[tuple[JobRow, list[Span]]]) -> bool:
    return any(row["completion"] is None for row, _ in jobs)


def _last_slot(jobs: list[tuple[JobRow, list[Span]]]) -> int:
    return int(np.max([span.last for _, spans in jobs for span in spans] or [1]))

"""Gantt charts of both schedules of a witness, one above the other, over the same slots."""

from __future__ import annotations

from typing import Any

from hindsched.analysis.plots.gantt import INCHES_PER_JOB, plot_gantt
from hindsched.analysis.plots.style import common_look, new_figure
from hindsched.analysis.worst.facts import Facts
from hindsched.analysis.worst.words import typical_run


@common_look
def plot_both(witness: Facts) -> Any:
    """Draw the algorithm's schedule above the better one; returns the figure."""
    height = 2 * min(8.0, max(1.9, 1.1 + INCHES_PER_JOB * len(witness.instance.jobs)))
    figure = new_figure(7.2, height)
    upper, lower = figure.subplots(2, 1, sharex=True)
    run = typical_run(witness)
    plot_gantt(run.solution, upper)
    end = upper.get_xlim()
    plot_gantt(witness.reference, lower)
    lower.set_xlim(end[0], max(end[1], lower.get_xlim()[1]))
    upper.set_xlabel("")
    upper.set_title(f"{witness.algorithm}: {run.objective:.6g}")
    by = "a better schedule" if witness.against is None else witness.reference_by
    lower.set_title(f"{by}: {witness.reference.objective():.6g}")
    return figure

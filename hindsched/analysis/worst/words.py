"""What goes wrong on a witness, in words that hold for every family.

A job's value, or its cost, is that of its row in both schedules; where they differ, so do the
objectives. The jobs are told in the order of what they contribute.
"""

from __future__ import annotations

import math
from typing import Any, TypedDict

from hindsched.analysis.spans import job_spans
from hindsched.analysis.worst.facts import Facts
from hindsched.solutions.base import Solution
from hindsched.solutions.tables import JobRow

MOST_JOBS = 4
"""Jobs that are told."""


def explain(witness: Facts) -> str:
    """The claim, the jobs that hold the difference, and what stands in their way, a line each."""
    run = typical_run(witness)
    lines = [claim(witness)]
    if len(witness.runs) > 1:
        lines.append(f"What follows is the run of seed {run.seed}, the median of the runs.")
    rows = differing_jobs(run.solution, witness.reference)
    lines += [_sentence(witness, run.solution, row) for row in rows[:MOST_JOBS]]
    if len(rows) > MOST_JOBS:
        lines.append(f"{len(rows) - MOST_JOBS} further jobs differ by less.")
    if not rows and witness.proven > 1:
        lines.append("No job alone holds the difference: the schedules differ as a whole.")
    lines.append(witness.verdict)
    return "\n".join(lines)


def typical_run(witness: Facts) -> Any:
    """The only run, or the one of median objective."""
    ordered = sorted(witness.runs, key=lambda run: run.objective)
    return ordered[(len(ordered) - 1) // 2]


def claim(witness: Facts) -> str:
    """Whose ratio it is, how large, and how far the optimum is known."""
    verb = "earns" if witness.instance.sense == "max" else "costs"
    other = witness.reference.objective()
    than = f"{witness.reference_by}" if witness.against else "a schedule"
    mean = " on average" if len(witness.runs) > 1 else ""
    size = f"{len(witness.instance.jobs)} jobs" if len(witness.instance.jobs) > 1 else "one job"
    text = (
        f"With {size}, {witness.algorithm} {verb} {witness.objective:.6g}{mean} where {than} "
        f"{verb} {other:.6g}: "
    )
    if witness.proven == math.inf:
        return f"{text}an infinite ratio."
    text += f"a ratio of at least {witness.proven:.6g}"
    upper = witness.ratio.interval.upper
    if witness.against is None and upper is not None:
        if witness.optimum.is_proven:
            return f"{text}, and no more on this instance: the schedule is optimal."
        return f"{text}, and at most {upper:.6g} on this instance."
    return f"{text}."


class DifferingJob(TypedDict):
    """A job's rows in a run and in the reference, and what it loses."""

    job: str
    run: JobRow
    reference: JobRow
    loss: float


def differing_jobs(run: Solution, reference: Solution) -> list[DifferingJob]:
    """Rows of the jobs whose value or cost differs, the largest loss first.

    Keys ``job, run, reference`` (their rows in the two schedules) and ``loss``.
    """
    sign = 1 if run.instance.sense == "max" else -1
    better = {row["job"]: row for row in reference.job_rows()}
    rows: list[DifferingJob] = []
    for row in run.job_rows():
        other = better[row["job"]]
        loss = sign * ((other["value"] or 0.0) - (row["value"] or 0.0))
        if abs(loss) > 1e-9 * max(1.0, abs(row["value"] or 0.0)):
            rows.append({"job": row["job"], "run": row, "reference": other, "loss": loss})
    return sorted(rows, key=lambda row: -row["loss"])


def _sentence(witness: Facts, run: Solution, row: DifferingJob) -> str:
    job, here, there = row["job"], row["run"], row["reference"]
    loss = row["loss"]
    change = f"loses {loss:.6g}" if loss > 0 else f"gains {-loss:.6g}"
    if witness.instance.sense == "min":
        change = f"costs {loss:.6g} more" if loss > 0 else f"costs {-loss:.6g} less"
    when = f"{_when(here)} instead of {_when(there)}"
    if _when(here) == _when(there):
        when = f"{_when(here)} in both schedules, in another way"
    text = f"{job} (arrives at {here['arrival']}) {change}: {when}"
    ahead = _in_the_way(run, here, there) if loss > 0 else []
    if ahead:
        text += f"; meanwhile {_list(ahead)} {'runs' if len(ahead) == 1 else 'run'}"
    return f"{text}."


def _when(row: JobRow) -> str:
    if row["completion"] is None or row["start"] is None:
        return "not served" if row["start"] is None else f"begun at {row['start']}, not completed"
    if row["start"] == row["completion"]:
        return f"in slot {row['start']}"
    return f"in slots {row['start']} to {row['completion']}"


def _in_the_way(run: Solution, here: JobRow, there: JobRow) -> list[str]:
    """Jobs that hold the cluster in the slots that the better schedule gives to this one."""
    first, last = there["start"], there["completion"]
    if first is None or last is None:
        return []
    return [
        name
        for name, spans in job_spans(run).items()
        if name != here["job"] and any(span.first <= last and span.last >= first for span in spans)
    ]


def _list(names: list[str]) -> str:
    if len(names) > MOST_JOBS:
        return f"{', '.join(names[:MOST_JOBS])} and {len(names) - MOST_JOBS} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]

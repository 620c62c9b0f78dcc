"""What a candidate's author may read: the score, and everything about the public instances."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hindsched.analysis.score.judge import INSTANCE, OWN, judged
from hindsched.instances.base import Instance
from hindsched.instances.io import read, read_json
from hindsched.printable import printable

COLUMNS, MOST_JOBS, DRAWN = 72, 20, 2
"""Characters of a drawn schedule, jobs of it, and how many are drawn."""


def feedback_of(data: Mapping[str, Any], folder: Path) -> str:
    """The score, then each public instance: what went wrong, where the time went, the schedule."""
    lines = [
        f"score {data['combined_score']:.6f} on {len(data['instances'])} hidden instances of "
        f"{data['family']} (1 is the optimum in hindsight), {data['sandbox']}"
    ]
    for place, row in enumerate(data["public"]):
        here = folder / "public" / row["instance"]
        lines += ["", f"public instance {row['instance']}: score {row['score']:.6f}"]
        ladder = sorted(judged(here).items(), key=lambda item: -item[1]["score"])
        others = (f"{name} {found['score']:.4f}" for name, found in ladder if name != OWN)
        lines.append("  " + ", ".join(others))
        if row["status"] != "ok":
            lines.append(f"  {row['status']}: {row['reason']}")
            continue
        lines.append(
            f"  objective {row['objective']:.6g}, certified bound {row['bound']:.6g}, "
            f"{row['jobs_completed']} of {row['jobs']} jobs completed"
        )
        lines.append(
            f"  seconds: {row['seconds']:.3f} in all, {row['seconds_a_decision']:.4f} a "
            f"decision, {row['seconds_longest']:.4f} the longest"
        )
        if place < DRAWN:
            lines += gantt(read(here / INSTANCE), read_json(here / f"{OWN}.json"))
    return printable("\n".join(lines)) + "\n"


def gantt(instance: Instance, solution: Mapping[str, Any]) -> list[str]:
    """A schedule as text: a line a job, ``.`` from its arrival on, ``#`` where it runs."""
    arrivals = {job.name: instance.arrival_of(job) for job in instance.jobs}
    listed = solution["jobs"][:MOST_JOBS]
    last = max(row["to"] for job in [*listed, {"assignments": [{"to": instance.horizon}]}]
               for row in job["assignments"])  # fmt: skip
    step = -(-last // COLUMNS)
    lines = [f"  slots 1..{last}" + (f", a character is {step} of them" if step > 1 else "")]
    for job in listed:
        spans = [(arrivals[job["name"]], last, ".")]
        spans += [(row["from"], row["to"], "#") for row in job["assignments"]]
        marks = [" "] * -(-last // step)
        for first, end, sign in spans:
            for column in range((max(1, first) - 1) // step, (end - 1) // step + 1):
                marks[column] = sign
        end = job["completion"]
        said = "not done" if end is None else f"done in {end}"
        lines.append(f"  {job['name']:<8} {''.join(marks)} {said}")
    left = len(solution["jobs"]) - len(listed)
    return [*lines, f"  and {left} more jobs"] if left else lines

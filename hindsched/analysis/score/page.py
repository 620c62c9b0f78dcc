"""What people read of a score: the author's feedback, the judge's page, a board of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from hindsched.analysis.score.judge import DRAWN_BY, INSTANCE, OWN, paired, read_score
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.io import read, read_json, write_text
from hindsched.printable import printable

PAGE, FEEDBACK = "score.html", "feedback.txt"
FACTS = ("combined_score", "interval", "sandbox", "family", "suite", "preset", "made")
SHOWN = ("instance", "score", "objective", "bound", "status", "reason",
         "seconds_a_decision", "seconds_longest")  # fmt: skip
HEADS = {
    "combined_score": "score, at least", "score": "score, at least",
    "interval": "95 % interval of the mean", "seconds_a_decision": "seconds a decision",
    "seconds_longest": "longest decision, seconds", "difference": "candidate better by",
    "difference_in": "95 % interval of that", "made": "made at", "ties": "equal on",
    "better": "candidate better on", "worse": "candidate worse on",
}  # fmt: skip
"""What the pages call the columns."""
NOTE = (
    "A score is the mean over instances of ALG/OPT when maximising, OPT/ALG when minimising, at "
    "least: the exact kernel judged every schedule and every denominator. Intervals are of the "
    "mean over resampled instances, 95 %."
)
COLUMNS, MOST_JOBS, DRAWN = 72, 20, 2
"""Characters of a drawn schedule, jobs of it, and how many are drawn."""


def feedback_of(data: Mapping[str, Any], folder: Path) -> str:
    """What a candidate's author may read: the score, and everything about the public instances."""
    lines = [
        f"score {data['combined_score']:.6f} on {len(data['instances'])} hidden instances of "
        f"{data['family']} (1 is the optimum in hindsight), {data['sandbox']}"
    ]
    for place, row in enumerate(data["public"]):
        lines += ["", f"public instance {row['instance']}: score {row['score']:.6f}"]
        ladder = sorted(row["ladder"].items(), key=lambda item: -item[1])
        lines.append("  " + ", ".join(f"{name} {score:.4f}" for name, score in ladder))
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
            here = folder / "public" / row["instance"]
            lines += gantt(read(here / INSTANCE), read_json(here / f"{OWN}.json"))
    return printable("\n".join(lines)) + "\n"


def gantt(instance: Instance, solution: Mapping[str, Any]) -> list[str]:
    """A schedule as text: a line a job, ``.`` from its arrival on, ``#`` where it runs."""
    arrivals = {job.name: instance.arrival_of(job) for job in instance.jobs}
    listed = solution["jobs"][:MOST_JOBS]
    ends = [row["to"] for job in listed for row in job["assignments"]]
    last = max([instance.horizon, *ends])
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


def page_of(data: Mapping[str, Any]) -> str:
    """The page of a score, which tells of the hidden instances: not for the author."""
    facts = [{name: data[name] for name in FACTS}]
    hidden, public = ([{name: row.get(name) for name in SHOWN} for row in data[key]]
                      for key in ("instances", "public"))  # fmt: skip
    tables = {"In short": facts, "Hidden instances": hidden, "Public instances": public,
              "Known algorithms, and the candidate beside them": data["ladder"]}  # fmt: skip
    return _page(f"The score of {data['candidate']}", tables)


def board(folders: Sequence[str | Path]) -> list[dict[str, Any]]:
    """Candidates, best first; equal scores share a rank; who may be the best is a ``tie``.

    `InputError` for a folder of other instances than those of the best.
    """
    found = [read_score(folder) | {"folder": str(folder)} for folder in folders]
    found.sort(key=lambda data: (-data["combined_score"], data["made"]))
    rows: list[dict[str, Any]] = []
    for data in found:
        if any(data[name] != found[0][name] for name in DRAWN_BY):
            rule = f"must be of the instances of {found[0]['folder']}"
            raise InputError("board", data["folder"], rule)
        own, best = ([row["score"] for row in each["instances"]] for each in (data, found[0]))
        better = sum(each["combined_score"] > data["combined_score"] for each in found)
        rows.append({
            "rank": 1 + better, "candidate": data["candidate"], "score": data["combined_score"],
            "interval": data["interval"],
            "tie": "tie" if paired(own, best)["difference_in"][1] >= 0 else "",
            "failed": sum(row["status"] != "ok" for row in data["instances"]),
            "sandbox": data["sandbox"], "made": data["made"], "folder": data["folder"],
        })  # fmt: skip
    return rows


def write_board(rows: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Write a board as a page."""
    write_text(_page("Candidates, best first", {"Board": rows}), path)


def _page(title: str, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """A page of tables; every text in it is text."""
    import pandas as pd

    style = (files("hindsched.analysis.report") / "page.css").read_text(encoding="utf-8")
    style_of_table: dict[str, Any] = {"index": False, "na_rep": "", "border": 0}
    parts = [f"<h2>{escape(head)}</h2>\n<div class='scroll'>"
             f"{pd.DataFrame(rows).rename(columns=HEADS).to_html(**style_of_table)}</div>"
             for head, rows in tables.items() if rows]  # fmt: skip
    policy = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; " \
             "style-src 'unsafe-inline'\">"  # fmt: skip
    head = f"<meta charset='utf-8'>{policy}<title>{escape(title)}</title><style>{style}</style>"
    body = "\n".join([f"<h1>{escape(title)}</h1>", f"<p class='note'>{NOTE}</p>", *parts])
    return f"<!DOCTYPE html>\n<html lang='en'><head>{head}</head>\n<body>{body}</body></html>\n"

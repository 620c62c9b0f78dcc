"""``hindsched audit``: judge the schedule that a log holds."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hindsched.cli.output import Json, emit_json, errors, out, percent, say, table
from hindsched.cli.settings import Settings, check_targets, parse_settings
from hindsched.errors import InputError
from hindsched.instances.files import MOST_BYTES
from hindsched.limits import seconds_to_finish
from hindsched.limits import time_limit as stopped_after

IMPOSSIBLE = 1
ROWS_TOLD = 10
Columns = Annotated[
    list[str] | None, typer.Option("--column", help="The log's column for a role: job=JobID.")
]


def audit(
    log: Annotated[str, typer.Argument(help="Log of a scheduler: a file, a pipe or a folder.")],
    form: Annotated[str, typer.Option("--format", help="csv, swf, sacct, kubernetes, ...")] = "csv",
    gpus: Annotated[int | None, typer.Option(help="GPUs of the cluster, one pool.")] = None,
    servers: Annotated[
        str | None, typer.Option(help="Servers: 16x8, or a=8,b=4, or a CSV file.")
    ] = None,
    column: Columns = None,
    objective: Annotated[
        str, typer.Option(help="mean-jct, makespan or deadlines-met.")
    ] = "mean-jct",
    formulation: Annotated[
        str | None,
        typer.Option(help="How freely the best possible may schedule; as the log did if absent."),
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(help="Policy to replay; may be repeated; all if absent.")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds for everything; 60 for bound and search alone if absent."),
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(help="Zone of times without offset, such as Europe/Berlin.")
    ] = None,
    time_unit: Annotated[str, typer.Option(help="Unit of numbers: s, ms, us, ns, min, h.")] = "s",
    time_step: Annotated[
        str | None, typer.Option(help="Round times to multiples of so many seconds.")
    ] = None,
    submitted_from: Annotated[
        str | None, typer.Option(help="Judge jobs submitted from this time on.")
    ] = None,
    submitted_to: Annotated[
        str | None, typer.Option(help="Judge jobs submitted before this time.")
    ] = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave broken rows out and note them.")
    ] = False,
    settings: Settings = None,
    most_bytes: Annotated[
        int, typer.Option(help="Most bytes of the log, after unpacking.")
    ] = MOST_BYTES,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Folder for page, tables and proofs.")
    ] = None,
    report: Annotated[str | None, typer.Option(help="Write only the HTML page, here.")] = None,
    as_json: Json = False,
) -> int:
    """Judge a scheduler's log: is it possible, how far from the best possible, and where."""
    from hindsched.analysis.audit import audit as judge
    from hindsched.instances.io import write_text

    page = None if output is None else os.path.join(output, "audit.html")
    check_targets([log], output=page, report=report)
    with stopped_after(_seconds_at_all(time_limit)):
        found = judge(
            log,
            form,
            gpus=gpus,
            servers=servers,
            objective=objective,
            formulation=formulation,
            policies=policy,
            time_limit=time_limit,
            columns=parse_columns(column),
            time_zone=time_zone,
            time_unit=time_unit,
            time_step=time_step,
            submitted_from=submitted_from,
            submitted_to=submitted_to,
            skip_broken=skip_broken,
            most_bytes=most_bytes,
            settings=parse_settings(settings),
            say=say if errors.console.is_terminal else None,
        )
        if output is not None:
            found.write(output)
        if report is not None:
            write_text(found.to_html(), report)
        if as_json:
            emit_json(found.to_dict())
        else:
            _tell(found.to_dict())
            if output is not None:
                say(f"page, tables, schedules and certificate: {output}")
    if page is not None or report is not None:
        from hindsched.analysis.plots.style import NO_PICTURES, has_matplotlib

        if not has_matplotlib():
            say(NO_PICTURES)
    return 0 if found.is_possible else IMPOSSIBLE


def _seconds_at_all(limit: float | None) -> float | None:
    """Seconds after which everything is stopped in one line; a limit of 0 means no search."""
    return seconds_to_finish(math.inf) if limit else None


def parse_columns(pairs: list[str] | None) -> dict[str, str]:
    """Read ``ROLE=COLUMN`` pairs."""
    columns: dict[str, str] = {}
    for pair in pairs or ():
        role, equals, name = pair.partition("=")
        if not equals or not role or not name:
            raise InputError("column", pair, "must be ROLE=COLUMN, such as job=JobID")
        if role in columns:
            raise InputError("column", pair, "must not name a role twice")
        columns[role] = name
    return columns


def _tell(found: Mapping[str, Any]) -> None:
    """Print what people read: the sentence, then what is wrong, then the numbers."""
    out.print(found["sentence"], markup=False, soft_wrap=True)
    for remark in found["remarks"]:
        out.print(f"Note: {remark}", markup=False, soft_wrap=True)
    if found["notes"]:
        rows = [
            [note[key] for key in ("count", "column", "first_row", "rule", "done")]
            for note in found["notes"]
        ]
        title = f"Noticed in the log ({found['rows_read']} rows, {found['jobs']} jobs judged)"
        out.print(table(title, ("times", "column", "first row", "rule", "done"), rows))
    if found["breaches_listed"]:
        out.print(f"Impossible: {sum(found['breaches'].values())}", markup=False)
        for line in found["breaches_listed"][:ROWS_TOLD]:
            out.print(f"  {line}", markup=False, soft_wrap=True)
    for text in found["not_checked"]:
        out.print(f"Not checked: {text}.", markup=False, soft_wrap=True)
    out.print(_schedulers(found))
    if found["gap"] is not None:
        out.print(found["gap"]["sentence"], markup=False, soft_wrap=True)


def _schedulers(found: Mapping[str, Any]) -> Any:
    unit = "" if found["objective"] == "deadlines-met" else ", s"
    columns = [
        "scheduler", f"{found['objective']}{unit}", "ratio >=", "ratio <=", "p50 JCT", "p95 JCT",
        "mean wait", "makespan", "use",
    ]  # fmt: skip
    keys = ("value", "ratio_lower", "ratio_upper", "p50_jct", "p95_jct", "mean_wait", "makespan")
    rows = [
        [
            row["scheduler"] + (" *" if row["pauses"] else ""),
            *(row[key] for key in keys),
            percent(row["utilisation"]),
        ]
        for row in found["schedulers"]
    ]
    paused = " (*: pauses jobs)" if any(row["pauses"] for row in found["schedulers"]) else ""
    return table(f"The same jobs by other schedulers{paused}", columns, rows)

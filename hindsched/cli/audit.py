"""``hindsched audit``: judge the schedule that a log holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hindsched.cli.output import Json, emit_json, errors, out, say, table
from hindsched.cli.settings import Settings, check_targets, parse_settings
from hindsched.errors import InputError
from hindsched.instances.files import MOST_BYTES

IMPOSSIBLE = 1
ROWS_TOLD = 10
SHOWN = ("scheduler", "value", "ratio_lower", "ratio_upper", "p95_jct", "mean_wait", "makespan")


def option(text: str, *names: str) -> Any:
    """An option with its help."""
    return typer.Option(*names, help=text)


def audit(
    log: Annotated[str, typer.Argument(help="Log of a scheduler: a file, a pipe or a folder.")],
    form: Annotated[str, option("csv, swf, sacct, kubernetes, ...", "--format")] = "csv",
    gpus: Annotated[int | None, option("GPUs of the cluster, one pool.")] = None,
    servers: Annotated[str | None, option("Servers: 16x8, or a=8,b=4, or a CSV file.")] = None,
    column: Annotated[list[str] | None, option("The log's column for a role: job=JobID.")] = None,
    objective: Annotated[str, option("mean-jct, makespan or deadlines-met.")] = "mean-jct",
    formulation: Annotated[str | None, option("Freedom of the best; the log's own.")] = None,
    policy: Annotated[list[str] | None, option("Policies to replay; all if absent.")] = None,
    time_limit: Annotated[float | None, option("Seconds for everything.")] = None,
    time_zone: Annotated[str | None, option("Zone of times without offset: Europe/Berlin.")] = None,
    time_unit: Annotated[str, option("Unit of numbers: s, ms, us, ns, min, h.")] = "s",
    time_step: Annotated[str | None, option("Round times to multiples of so many seconds.")] = None,
    submitted_from: Annotated[str | None, option("Judge jobs submitted from then on.")] = None,
    submitted_to: Annotated[str | None, option("Judge jobs submitted before then.")] = None,
    skip_broken: Annotated[bool, option("Leave broken rows out.", "--skip-broken")] = False,
    settings: Settings = None,
    most_bytes: Annotated[int, option("Most bytes of the log, after unpacking.")] = MOST_BYTES,
    output: Annotated[str | None, option("Folder for page and proofs.", "-o", "--output")] = None,
    as_json: Json = False,
) -> int:
    """Judge a scheduler's log: is it possible, how far from the best possible, and where."""
    from hindsched.analysis.audit import audit as judge

    check_targets([log], output=None if output is None else f"{output}/audit.html")
    found = judge(
        log, form, gpus=gpus, servers=servers, objective=objective, formulation=formulation,
        policies=policy, time_limit=time_limit, columns=parse_columns(column), time_zone=time_zone,
        time_unit=time_unit, time_step=time_step, submitted_from=submitted_from,
        submitted_to=submitted_to, skip_broken=skip_broken, most_bytes=most_bytes,
        settings=parse_settings(settings), say=say if errors.console.is_terminal else None,
    )  # fmt: skip
    told = found.to_dict()
    if as_json:
        emit_json(told)
    else:
        _tell(told)
    if output is not None:
        from hindsched.analysis.plots.style import NO_PICTURES, has_matplotlib

        found.write(output)
        say(f"page, tables, schedules and certificate: {output}")
        if not has_matplotlib():
            say(NO_PICTURES)
    return 0 if found.is_possible else IMPOSSIBLE


def parse_columns(pairs: list[str] | None) -> dict[str, str]:
    """Read ``ROLE=COLUMN`` pairs."""
    columns: dict[str, str] = {}
    for pair in pairs or ():
        role, equals, name = pair.partition("=")
        if not (role and equals and name) or role in columns:
            raise InputError("column", pair, "must be ROLE=COLUMN, such as job=JobID, once a role")
        columns[role] = name
    return columns


def _tell(found: Mapping[str, Any]) -> None:
    """Print what people read: the sentence, then what is wrong, then the numbers."""
    gap = [found["gap"]["sentence"]] if found["gap"] is not None else []
    wrong = [f"{note['count']} times {note['rule']} (column {note['column']}, first in row "
             f"{note['first_row']}): {note['done']}" for note in found["notes"]]  # fmt: skip
    for line in (
        found["sentence"],
        *(f"Note: {text}" for text in (*found["remarks"], *wrong)),
        *(f"Impossible: {text}" for text in found["breaches_listed"][:ROWS_TOLD]),
        *(f"Not checked: {text}." for text in found["not_checked"]),
        *gap,
    ):
        out.print(line, markup=False, soft_wrap=True)
    rows = [[row[name] for name in SHOWN] for row in found["schedulers"]]
    out.print(table("The same jobs by other schedulers", SHOWN, rows))

"""``hindsched audit``: judge the schedule that a log holds."""

from __future__ import annotations

from typing import Annotated, Any

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import console, emit_json, say, show_rows, tell

IMPOSSIBLE, ROWS_TOLD = 1, 10
SHOWN = ("scheduler", "value", "ratio", "p95_jct", "mean_wait", "makespan")


def audit(
    log: Annotated[str, opt.argument("Log of a scheduler: a file, a pipe or a folder.")],
    form: Annotated[str, opt.option("csv, swf, sacct, kubernetes, ...", "--format")] = "csv",
    gpus: Annotated[int | None, opt.option("GPUs of the cluster, one pool.")] = None,
    servers: Annotated[
        str | None, opt.option("Servers: 16x8, or a=8@V100,b=4, or a CSV file.")
    ] = None,
    column: Annotated[list[str] | None, opt.option("A column's role: job=JobID.")] = None,
    objective: Annotated[str, opt.option("mean-jct, makespan or deadlines-met.")] = "mean-jct",
    time_limit: opt.TimeLimit = None,
    time_zone: Annotated[str | None, opt.option("Of times without offset: Europe/Berlin.")] = None,
    time_unit: Annotated[str, opt.option("Unit of numbers: s, ms, us, ns, min, h.")] = "s",
    time_step: Annotated[str | None, opt.option("Round times to so many seconds.")] = None,
    skip_broken: Annotated[bool, opt.option("Leave broken rows out.", "--skip-broken")] = False,
    settings: opt.Settings = None,
    output: opt.Folder = None,
    as_json: opt.Json = False,
) -> int:
    """Judge a scheduler's log: is it possible, how far from the best possible, and where.

    The time limit is for everything, the folder with page, tables and proofs included.
    """
    from hindsched.analysis.plot import NO_PICTURES, has_matplotlib

    opt.check_targets([log], output=None if output is None else f"{output}/audit.html")
    result = hs.audit(
        log, form, gpus=gpus, servers=servers, objective=objective, time_limit=time_limit,
        columns=opt.parse_settings(column, where="column"), time_zone=time_zone,
        time_unit=time_unit, time_step=time_step, skip_broken=skip_broken,
        settings=opt.parse_settings(settings), say=say if console("stderr").is_terminal else None,
    )  # fmt: skip
    data: dict[str, Any] = result.to_dict()
    if as_json:
        emit_json(data)
    else:
        wrong = [f"{note['count']} times {note['rule']} (column {note['column']}, first in row "
                 f"{note['first_row']}): {note['done']}" for note in data["notes"]]  # fmt: skip
        for line in (
            data["sentence"],
            *(f"Note: {text}" for text in (*data["remarks"], *wrong)),
            *(f"Impossible: {text}" for text in data["breaches_listed"][:ROWS_TOLD]),
            *(f"Not checked: {text}." for text in data["not_checked"]),
            *(data[part]["sentence"] for part in ("fragmentation", "gap") if data[part]),
        ):
            tell(line)
        show_rows("The same jobs by other schedulers", result.shown_rows(), SHOWN)
    if output is not None:
        result.write(output)
        say(f"page, tables, schedules and certificate: {output}")
        if not has_matplotlib():
            say(NO_PICTURES)
    return 0 if result.is_possible else IMPOSSIBLE

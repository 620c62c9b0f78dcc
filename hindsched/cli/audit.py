"""``hindsched audit``: judge the schedule that a log holds."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Context

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import console, emit_json, say, show_rows, tell, with_options
from hindsched.errors import InputError

IMPOSSIBLE, ROWS_SHOWN = 1, 10
HIDDEN = {"p50_jct", "p99_jct", "bounded_slowdown", "utilisation"}


def audit(
    context: Context,
    log: Annotated[str, opt.argument("Log of a scheduler: a file, a pipe or a folder.")],
    form: Annotated[str, opt.option("csv, swf, sacct, kubernetes, ...", "--format")] = "csv",
    gpus: Annotated[int | None, opt.option("GPUs of the cluster, one pool.")] = None,
    servers: Annotated[
        str | None, opt.option("Servers: 16x8, or a=8@V100,b=4, or a CSV file.")
    ] = None,
    column: opt.Columns = None,
    objective: Annotated[str, opt.option("mean-jct, makespan or deadlines-met.")] = "mean-jct",
    time_limit: opt.TimeLimit = None,
    time_zone: Annotated[str | None, opt.option("Of times without offset: Europe/Berlin.")] = None,
    time_unit: Annotated[str, opt.option("Unit of numbers: s, ms, us, ns, min, h.")] = "s",
    time_step: Annotated[str | None, opt.option("Round times to so many seconds.")] = None,
    dates: Annotated[str | None, opt.option("05/06/2024 is day-first or month-first.")] = None,
    check: Annotated[bool, opt.option("Only look the log through.", "--check")] = False,
    skip_broken: Annotated[bool, opt.option("Leave broken rows out.", "--skip-broken")] = False,
    settings: opt.Settings = None,
    output: opt.Folder = None,
    as_json: opt.Json = False,
) -> int:
    """Judge a scheduler's log: is it possible, how far from the best possible, and where.

    The time limit is for everything, the folder with page, tables and proofs included. With
    --check nothing is judged: it says what is missing, doubtful or impossible in the log.
    """
    from hindsched.analysis.plot import NO_PICTURES, has_matplotlib

    opt.check_targets([log], output=None if output is None else f"{output}/audit.html")
    reading: dict[str, Any] = {
        "gpus": gpus, "servers": servers, "columns": opt.parse_settings(column, where="column"),
        "time_zone": time_zone, "time_unit": time_unit, "time_step": time_step, "dates": dates,
        "skip_broken": skip_broken, "settings": opt.parse_settings(settings),
    }  # fmt: skip
    options = context.command.params
    if check:
        if output is not None:
            raise InputError("output", output, "must be absent: --check writes no files")
        looked = hs.check_log(log, form, **reading)
        if as_json:
            emit_json(looked.to_dict())
        for line in () if as_json else looked.lines():
            tell(with_options(line, options))
        return 0
    result = hs.audit(
        log, form, objective=objective, time_limit=time_limit,
        say=say if console("stderr").is_terminal else None, **reading,
    )  # fmt: skip
    data: dict[str, Any] = result.to_dict()
    if as_json:
        emit_json(data)
    else:
        listed = data["breaches_listed"] if result.breaches.are_many else []
        for line in (
            *result.check.lines(),
            data["sentence"],
            *(f"Note: {text}" for text in data["remarks"]),
            *(f"Impossible: {text}" for text in listed[:ROWS_SHOWN]),
            *(f"Not checked: {text}." for text in data["not_checked"]),
            *(data[part]["sentence"] for part in ("fragmentation", "gap") if data[part]),
        ):
            tell(with_options(line, options))
        rows = result.shown_rows()
        shown = [name for name in rows[0] if name not in HIDDEN]
        show_rows("The same jobs by other schedulers", rows, shown)
    if output is not None:
        result.write(output)
        say(f"page, tables, schedules and certificate: {output}")
        if not has_matplotlib():
            say(NO_PICTURES)
    return 0 if result.is_possible else IMPOSSIBLE

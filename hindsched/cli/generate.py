"""``hindsched generate``: make an instance."""

from __future__ import annotations

from typing import Annotated

import typer

from hindsched.cli.output import STDOUT, Json, emit_json, errors, facts, out
from hindsched.cli.settings import (
    Family,
    Jobs,
    Servers,
    Settings,
    SlotSeconds,
    Start,
    TraceFile,
    TraceFormat,
    TracePart,
    check_targets,
    options_named,
    parse_settings,
    refuse_options,
    trace_instance,
)
from hindsched.errors import InputError


def generate(
    family: Family,
    output: Annotated[
        str, typer.Option("-o", "--output", help="Instance file to write; - for standard output.")
    ],
    preset: Annotated[
        str | None,
        typer.Option(help="Preset of the generator; small."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    settings: Settings = None,
    from_trace: TraceFile = None,
    trace_format: TraceFormat = None,
    trace_part: TracePart = None,
    jobs: Jobs = None,
    start: Start = None,
    servers: Servers = None,
    slot_seconds: SlotSeconds = None,
    as_json: Json = False,
) -> None:
    """Make an instance: random by a preset and a seed, or from a cluster trace."""
    from hindsched.instances.base import check_family
    from hindsched.instances.catalogue import shown_name
    from hindsched.instances.generators.registry import generate as generate_instance
    from hindsched.instances.io import write

    check_family(family)
    if output == "-":
        output = STDOUT
    check_targets([from_trace], output=output)
    values = parse_settings(settings)
    refuse_options(values, "family", "preset", "seed")
    if from_trace is None:
        given = {
            "trace-format": trace_format, "trace-part": trace_part, "start": start,
            "servers": servers, "slot-seconds": slot_seconds,
        }  # fmt: skip
        for name, value in given.items():
            if value is not None:
                raise InputError(name, value, "needs --from-trace")
        if jobs is not None:
            refuse_options(values, "jobs")
            values = {"jobs": str(jobs), **values}
        with options_named(["jobs"] if jobs is not None else []):
            instance = generate_instance(family, preset or "small", seed, **values)
    else:
        if preset is not None:
            values = {"preset": preset, **values}
        instance = trace_instance(
            family, from_trace, trace_format, trace_part,
            jobs=jobs, start=start, seed=seed, servers=servers, slot_seconds=slot_seconds,
            settings=dict(values),
        )  # fmt: skip
    write(instance, output)
    summary = {
        "family": instance.family,
        "instance": instance.name,
        "jobs": len(instance.jobs),
        "horizon": instance.horizon,
        "sha256": instance.sha256(),
        "file": output,
    }
    if as_json:
        origin = dict(instance.provenance or {})
        origin.pop("trace_rows", None)  # a row a job: it stands in the file
        emit_json({**summary, "provenance": origin})
    else:
        shown = {**summary, "instance": shown_name(instance)}
        (errors if output == STDOUT else out).print(facts(shown))

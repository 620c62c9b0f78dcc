"""``hindsched generate``: make an instance."""

from __future__ import annotations

from typing import Annotated

from hindsched.cli import settings as opt
from hindsched.cli.output import Json, emit_json, errors, facts, out
from hindsched.errors import InputError


def generate(
    family: opt.Family,
    output: Annotated[str, opt.option("File to write; - for standard output.", "-o", "--output")],
    preset: Annotated[str | None, opt.option("Preset of the generator; small.")] = None,
    seed: opt.Seed = 0,
    settings: opt.Settings = None,
    from_trace: opt.Trace = None,
    trace_format: opt.TraceFormat = None,
    jobs: opt.Jobs = None,
    as_json: Json = False,
) -> None:
    """Make an instance: random by a preset and a seed, or from a cluster trace."""
    from hindsched.instances.base import check_family
    from hindsched.instances.catalogue import shown_name
    from hindsched.instances.generators.registry import generate as generate_instance
    from hindsched.instances.io import write

    check_family(family)
    is_piped = output == "-"
    output = "/dev/stdout" if is_piped else output
    opt.check_targets([from_trace], output=output)
    values = opt.parse_settings(settings)
    opt.refuse_options(values, "family", "preset", "seed", *([] if jobs is None else ["jobs"]))
    if from_trace is not None:
        values |= {} if preset is None else {"preset": preset}
        instance = opt.trace_instance(family, from_trace, trace_format, jobs, seed, values)
    else:
        if trace_format is not None:
            raise InputError("trace-format", trace_format, "needs --from-trace")
        values |= {} if jobs is None else {"jobs": str(jobs)}
        instance = generate_instance(family, preset or "small", seed, **values)
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
        (errors if is_piped else out).print(facts({**summary, "instance": shown_name(instance)}))

"""``hindsched generate``: make an instance."""

from __future__ import annotations

from typing import Annotated

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import answer, show_facts
from hindsched.errors import InputError
from hindsched.instances.base import Instance, check_family


def generate(
    family: opt.Family,
    output: Annotated[str, opt.option("File to write; - for standard output.", "-o", "--output")],
    preset: Annotated[str | None, opt.option("Preset of the generator; small.")] = None,
    seed: opt.Seed = 0,
    settings: opt.Settings = None,
    assumptions: opt.Assumptions = False,
    from_trace: opt.Trace = None,
    trace_format: Annotated[
        str | None, opt.option("csv, elasticflow, philly, chronus, ...")
    ] = None,
    column: opt.Columns = None,
    as_json: opt.Json = False,
) -> None:
    """Make an instance: random by a preset and a seed, or from a cluster trace."""
    check_family(family)
    is_piped = output == "-"
    output = "/dev/stdout" if is_piped else output
    opt.check_targets([from_trace], output=output)
    values = opt.parse_settings(settings, "family", "preset", "seed", "table", "assumptions")
    if (from_trace is None) != (trace_format is None):
        rule = "--from-trace and --trace-format need each other"
        raise InputError("trace-format", trace_format or "(absent)", rule)
    if from_trace is not None and assumptions:
        raise InputError("assumptions", from_trace, "is for what is drawn, not for a trace")
    if from_trace is not None and trace_format is not None:
        values |= {} if preset is None else {"preset": preset}
        columns = opt.parse_settings(column, where="column")
        instance = _of_trace(family, from_trace, trace_format, columns, seed, values)
    else:
        instance = hs.generate(family, preset or "small", seed, assumptions=assumptions, **values)
    hs.write(instance, output)
    summary = {
        "family": instance.family, "instance": instance.name, "jobs": len(instance.jobs),
        "horizon": instance.horizon, "sha256": instance.sha256(), "file": output,
    }  # fmt: skip
    if assumptions:
        from hindsched.analysis.tasks import theorem_of
        from hindsched.online.protocol import unmet

        failing = unmet(theorem_of(instance, family), of_instance=True)
        summary["assumptions_that_fail"] = failing if as_json else "; ".join(failing) or "none"
    if is_piped and not as_json:
        show_facts(summary, "stderr")
        return
    origin = dict(instance.provenance or {})
    origin.pop("trace_rows", None)  # a row a job: it stands in the file
    answer(as_json, summary, {"provenance": origin}, instance=instance)


def _of_trace(
    family: str, path: str, trace_format: str, columns: dict[str, str], seed: int,
    settings: dict[str, str],
) -> Instance:  # fmt: skip
    """Make an instance from a trace file."""
    jobs, part = settings.pop("jobs", None), settings.pop("part", None)
    if jobs is not None and not (jobs.isdecimal() and int(jobs)):
        raise InputError("set.jobs", jobs, "must be at least 1, a whole number")
    table = hs.load_trace(path, trace_format, part, columns=columns)
    count = None if jobs is None else int(jobs)
    return hs.from_trace(family, table, jobs=count, seed=seed, **settings)

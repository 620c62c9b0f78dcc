"""``hindsched simulate`` and ``hindsched ratio``: online runs and what they lose."""

from __future__ import annotations

from typing import Annotated

import typer

from hindsched.cli.output import Json, cell, emit_json, errors, facts, out, say, table
from hindsched.cli.settings import (
    Algorithm,
    Algorithms,
    Engine,
    File,
    Gap,
    Method,
    Settings,
    Solver,
    Threads,
    check_targets,
    load,
    parse_settings,
)


def simulate(
    file: File,
    algorithm: Algorithm,
    seed: Annotated[int, typer.Option(help="Seed of a randomised algorithm.")] = 0,
    settings: Settings = None,
    engine: Engine = None,
    formulation: Annotated[str | None, typer.Option(help="Which of the family's problems.")] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Solution file.")] = None,
    certificate: Annotated[
        str | None, typer.Option(help="Write the algorithm's final prices as a certificate file.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run an online algorithm once."""
    from hindsched.instances.catalogue import shown_name
    from hindsched.online.simulator import simulate as run_online
    from hindsched.solutions.base import write_solution

    instance = load(file)
    check_targets([file], output=output, certificate=certificate)
    values = parse_settings(settings, engine)
    result = run_online(instance, algorithm, seed=seed, settings=values, formulation=formulation)
    if output is not None:
        produced_by = {"algorithm": algorithm, "options": values, "seed": seed}
        write_solution(result.solution, output, produced_by)
    summary = result.to_dict()
    if certificate is not None:
        from hindsched.solvers.certificates.certificate import certificate_of_run
        from hindsched.solvers.certificates.file import write_certificate

        own = certificate_of_run(result)
        write_certificate(own, certificate)
        summary["bound"] = own.bound
    if as_json:
        emit_json(summary)
        return 0
    for key in ("report", "settings", "violations"):
        summary.pop(key)
    out.print(facts({**summary, "instance": shown_name(instance)}))
    for violation in result.violations:
        out.print(f"  breaks {violation}", markup=False, soft_wrap=True)
    return 0


def ratio(
    file: File,
    algorithm: Algorithms = None,
    seed: Annotated[int, typer.Option(help="First seed of randomised algorithms.")] = 0,
    seeds: Annotated[int, typer.Option(help="Seeds of each randomised algorithm.")] = 5,
    settings: Settings = None,
    engine: Engine = None,
    method: Method = "auto",
    solver: Solver = "highs",
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for the offline solve, and for each run.")
    ] = None,
    gap: Gap = 1e-6,
    threads: Threads = 1,
    as_json: Json = False,
) -> int:
    """Bound the competitive ratio of online algorithms on an instance."""
    from hindsched.analysis.compare import ratio as measure
    from hindsched.analysis.ratio import INVERSE_NOTE
    from hindsched.instances.catalogue import shown_name

    instance = load(file)
    found = measure(
        instance,
        algorithm,
        seeds=seeds,
        first_seed=seed,
        settings=parse_settings(settings, engine),
        method=method,
        progress=errors.console.is_terminal,
        solver=solver,
        time_limit=time_limit,
        run_limit=time_limit,
        gap=gap,
        threads=threads,
    )
    if as_json:
        emit_json(found.to_dict())
    else:
        optimum = found.optimum
        name = shown_name(instance)
        say(f"{name}: optimum in {optimum.interval} ({optimum.status}, {optimum.proof})")
        rows = [
            (
                row.algorithm,
                row.objective,
                row.ratio.interval.lower,
                row.ratio.interval.upper,
                str(row.ratio.difference),
                None
                if row.theorem is None
                else f"{row.theorem['kind']} {cell(row.theorem['value'])}",
                row.ratio.reason or "; ".join(row.errors),
            )
            for row in found.algorithms
        ]
        columns = ("algorithm", "objective", "ratio >=", "ratio <=", "OPT - ALG", "theorem", "note")
        out.print(table(name, columns, rows))
        say(INVERSE_NOTE)
    for line in found.errors:
        say(f"failed: {line}")
    return 1 if found.errors else 0

"""``hindsched solve``: the offline optimum, or a bound of it."""

from __future__ import annotations

from typing import Annotated

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import answer, say


def solve(
    file: opt.File,
    method: opt.Method = "auto",
    formulation: opt.Formulation = None,
    solver: Annotated[str, opt.option("highs, scip or gurobi.")] = "highs",
    time_limit: opt.TimeLimit = None,
    gap: Annotated[float, opt.option("Relative gap at which a solve counts as optimal.")] = 1e-6,
    threads: Annotated[int | None, opt.option("Cores of a solve; all if absent.")] = None,
    work_limit: Annotated[int | None, opt.option("In place of seconds: same bytes always.")] = None,
    start: Annotated[str | None, opt.option("Solution file to begin from.")] = None,
    output: opt.Output = None,
    certificate: opt.Certificate = None,
    as_json: opt.Json = False,
) -> int:
    """Solve an instance offline, or bound its optimum; Ctrl-C keeps what is known.

    With --certificate, an optimum that only a solver vouches for is proven by a tree where the
    instance is small and the time allows.
    """
    instance = opt.load_instance(file)  # what is wrong is said before a solver is loaded
    from hindsched.analysis.verify import proof_of

    begun = None if start is None else hs.read_solution(start, instance)
    opt.check_targets([file, *([start] if start else [])], output=output, certificate=certificate)
    result = hs.solve(
        instance, method, formulation=formulation, solver=solver, time_limit=time_limit, gap=gap,
        threads=threads, work_limit=work_limit, start=begun, progress=True,
    )  # fmt: skip
    if certificate is not None:
        result = hs.certify_optimum(result)
    if output is not None and result.solution is not None:
        produced_by = {"method": result.method, "options": dict(result.options)}
        hs.write_solution(result.solution, output, produced_by)
    if certificate is not None and result.certificate is not None:
        hs.write_certificate(result.certificate, certificate)
    proof = proof_of(result)
    summary = {**result.to_dict(), "certified": proof == "certificate", "proof": proof}
    hidden = ("options", "versions", "certified")  # `proof` says it too
    for_people = answer(as_json, summary, hidden=hidden, instance=instance)
    if for_people and result.objective is None and result.bound is not None:
        say(f"no gap: {result.method} found a bound and no schedule to set against it")
    if output is not None and result.solution is None:
        say(f"no solution was found: {output} not written")
    if certificate is not None and result.certificate is None:
        say(f"method {result.method} gives no certificate: {certificate} not written")
    return 0 if result.solution is not None or result.bound is not None else 1

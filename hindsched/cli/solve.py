"""``hindsched solve`` and ``hindsched verify``: the optimum, and its check without a solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hindsched.cli.output import Json, emit_json, facts, out, say
from hindsched.cli.settings import (
    File,
    Gap,
    Method,
    Solver,
    Threads,
    TimeLimit,
    WorkLimit,
    check_targets,
    load,
)
from hindsched.errors import InputError


def solve(
    file: File,
    method: Method = "auto",
    formulation: Annotated[str | None, typer.Option(help="Which of the family's problems.")] = None,
    solver: Solver = "highs",
    time_limit: TimeLimit = None,
    gap: Gap = 1e-6,
    threads: Threads = None,
    work_limit: WorkLimit = None,
    seed: Annotated[int, typer.Option(help="Seed of the solver.")] = 0,
    workers: Annotated[
        int, typer.Option(help="Local processes that a bound's jobs are divided over; 0 for none.")
    ] = 0,
    dask: Annotated[
        str | None, typer.Option(help="Divide them over the workers of this Dask scheduler.")
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Solution file.")] = None,
    certificate: Annotated[str | None, typer.Option(help="Certificate file to write.")] = None,
    as_json: Json = False,
) -> int:
    """Solve an instance offline, or bound its optimum; Ctrl-C keeps what is known.

    Its parts run side by side on --threads cores, on all if absent.

    With --certificate, an optimum that only a solver vouches for is proven by a tree where the
    instance is small and the time allows.
    """
    from hindsched.analysis.exact import proof_of
    from hindsched.instances.catalogue import shown_name
    from hindsched.instances.io import write_json
    from hindsched.solutions.base import write_solution
    from hindsched.solvers.door.api import solve as solve_instance

    instance = load(file)
    check_targets([file], output=output, certificate=certificate)
    options = {
        "solver": solver,
        "time_limit": time_limit,
        "gap": gap,
        "threads": threads,
        "work_limit": work_limit,
        "seed": seed,
        "progress": True,
    }
    if workers or dask is not None:
        from hindsched.analysis.distributed_bound import divided_bound

        result = divided_bound(
            instance, method, workers=workers, dask=dask, formulation=formulation, options=options
        )
    else:
        result = solve_instance(instance, method, formulation=formulation, options=options)
    if certificate is not None:
        from hindsched.solvers.tree.method import certify_optimum

        result = certify_optimum(result)
    if output is not None and result.solution is not None:
        produced_by = {"method": result.method, "options": dict(result.options)}
        write_solution(result.solution, output, produced_by)
    if certificate is not None and result.certificate is not None:
        write_json(result.certificate.to_dict(), certificate)
    proof = proof_of(result)
    summary = {**result.to_dict(), "certified": proof == "certificate", "proof": proof}
    if as_json:
        emit_json(summary)
    else:
        left_out = ("options", "versions")
        shown = {key: summary[key] for key in summary if key not in left_out}
        out.print(facts({**shown, "instance": shown_name(instance)}))
        if result.objective is None and result.bound is not None:
            say(f"no gap: {result.method} found a bound and no schedule to set against it")
    if output is not None and result.solution is None:
        say(f"no solution was found: {output} not written")
    if certificate is not None and result.certificate is None:
        say(f"method {result.method} gives no certificate: {certificate} not written")
    return 0 if result.solution is not None or result.bound is not None else 1


def verify(
    file: Annotated[
        str, typer.Argument(help="Instance: a file, - or a name; or a folder of results.")
    ],
    solution: Annotated[str | None, typer.Argument(help="Solution file.")] = None,
    prices: Annotated[
        list[str] | None,
        typer.Option(help="Certificate file of a bound; may be repeated, each is checked."),
    ] = None,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--fast",
            help="Let the exact kernel check too, however long it takes; if absent, for 5 seconds.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Check a solution, and bounds, without any solver; exit code 1 if it is infeasible.

    Two checkers answer: a fast one in floating point that rounds outward, and the exact kernel,
    which has no tolerance and whose word counts.
    """
    from hindsched.analysis.exact import QUICK_SECONDS, exact_check, has_kernel
    from hindsched.analysis.verify import verify as verify_files
    from hindsched.instances.catalogue import shown_name

    if Path(file).is_dir() and solution is None:
        return _verify_folder(file, as_json=as_json)
    if solution is None:
        raise InputError("solution", "(absent)", "is required beside an instance")
    certificates = prices or []
    if "" in certificates:
        raise InputError("prices", "", "must be a certificate file")
    instance = load(file)
    checked = verify_files(instance, solution, certificates)
    kernel = None
    if exact or (exact is None and has_kernel(instance.family)):
        source = file if Path(file).exists() else instance
        kernel = exact_check(
            source, solution, *certificates, seconds=None if exact else QUICK_SECONDS
        )
    if as_json:
        emit_json({**checked.to_dict(), "exact": None if kernel is None else kernel.to_dict()})
    else:
        summary = checked.to_dict()
        without_certificate = ("certificate", "leaves", "proves_optimal")
        left_out = (
            "violations",
            "claims_less",
            *(without_certificate if checked.kind is None else ()),
        )
        shown = {key: value for key, value in summary.items() if key not in left_out}
        out.print(facts({**shown, "instance": shown_name(instance)}))
        for stated, proven in checked.claims_less:
            text = f"stated {stated!r}, weaker than the bound that the prices prove: {proven!r}"
            out.print(text, soft_wrap=True)
        if checked.proves_optimal:
            out.print("solution and certificate together prove: this solution is optimal")
        for violation in checked.violations:
            out.print(f"  breaks {violation}", markup=False, soft_wrap=True)
        if kernel is not None:
            out.print(f"exact kernel: {kernel.verdict}", markup=False, soft_wrap=True)
        elif exact is None and has_kernel(instance.family):
            say("fast check only; --exact lets the exact kernel finish")
    if kernel is not None and kernel.code:
        if as_json:
            say(f"exact kernel: {kernel.verdict}")
        return kernel.code
    return 0 if checked.is_feasible else 1


def _verify_folder(folder: str, *, as_json: bool) -> int:
    """Compare a folder's files with their hashes and recompute what its records say."""
    from hindsched.analysis.store import ResultStore

    if (Path(folder) / "score.json").exists():
        return _verify_score(folder, as_json=as_json)
    store = ResultStore.open(folder)
    damages = [*store.damages(), *store.recompute()]
    records = len(store.records())
    if as_json:
        emit_json({"records": records, "damages": [str(damage) for damage in damages]})
    else:
        for damage in damages:
            out.print(f"damaged: {damage}", markup=False, soft_wrap=True)
        good = records - len({damage.task for damage in damages})
        out.print(f"{good} records say what their schedules and certificates say")
    return 1 if damages else 0


def _verify_score(folder: str, *, as_json: bool) -> int:
    """Judge a scored folder again, without running its candidate."""
    from hindsched.analysis.score.page import read_score, verify_score

    wrong, stated = verify_score(folder), read_score(folder)["combined_score"]
    if as_json:
        emit_json({"combined_score": stated, "wrong": wrong})
    else:
        for line in wrong:
            out.print(f"wrong: {line}", markup=False, soft_wrap=True)
        said = "does not follow" if wrong else "follows"
        out.print(f"score {stated!r} {said} from the folder's schedules and certificates")
    return 1 if wrong else 0

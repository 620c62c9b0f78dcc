"""``hindsched certify``: a proof of an instance's program that programs of others check."""

from __future__ import annotations

from typing import Annotated

import typer

from hindsched.cli.output import Json, emit_json, facts, out
from hindsched.cli.settings import File, TimeLimit, check_targets, load


def certify(
    file: File,
    vipr: Annotated[str, typer.Option(help="File to write, in VIPR's format, for viprchk.")],
    formulation: Annotated[str | None, typer.Option(help="Which of the family's problems.")] = None,
    form: Annotated[
        str | None, typer.Option(help="How it is written; `printed` is as the paper prints it.")
    ] = None,
    relax: Annotated[bool, typer.Option("--relax", help="The linear relaxation only.")] = False,
    time_limit: TimeLimit = None,
    nodes: Annotated[int, typer.Option(min=1, help="Most nodes of the tree.")] = 2_000,
    as_json: Json = False,
) -> int:
    """Prove a bound on a small instance's program in the format of VIPR.

    The file has the whole program, the best solution found and a proof of the bound, in rational
    numbers: a combination of rows, or a tree of them. What it does not prove is that the program is
    the instance's problem; `hindsched verify` links a bound to the instance itself.
    """
    from hindsched.instances.io import write_text
    from hindsched.limits import overrun
    from hindsched.limits import time_limit as stopped_after
    from hindsched.solvers.vipr.prove import DEFAULT_SECONDS, vipr_proof

    instance = load(file)
    check_targets([file], vipr=vipr)
    seconds = DEFAULT_SECONDS if time_limit is None else time_limit
    with stopped_after(overrun(time_limit)):  # building included
        proof = vipr_proof(
            instance, formulation, form=form, relax=relax, time_limit=seconds, most_nodes=nodes
        )
    write_text(proof.text, vipr)
    found = {**proof.to_dict(), "vipr": vipr}
    if as_json:
        emit_json(found)
    else:
        out.print(facts(found))
    return 0

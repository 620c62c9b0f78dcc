"""``hindsched model``: an instance's program, printed equation by equation or written to a file."""

from __future__ import annotations

from typing import Annotated

import typer

from hindsched.cli.output import Json, emit_json, out, say
from hindsched.cli.settings import File, check_targets, load


def model(
    file: File,
    form: Annotated[
        str | None, typer.Option(help="How it is written; `printed` is as the paper prints it.")
    ] = None,
    formulation: Annotated[str | None, typer.Option(help="Which of the family's problems.")] = None,
    relax: Annotated[bool, typer.Option("--relax", help="The linear relaxation.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print its equations for LaTeX.")] = False,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="File to write, .mps or .lp.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the program that an instance is solved by, or write it for any solver."""
    from hindsched.solvers.model.offline import model as build

    check_targets([file], output=output)
    program = build(load(file), form=form, formulation=formulation, relax=relax)
    if output is not None:
        program.write(output)
    if as_json:
        emit_json({**program.to_dict(), "output": output})
    elif latex:
        out.print(program.to_latex(), markup=False, soft_wrap=True, end="")
    elif output is None:
        out.print(str(program), markup=False, soft_wrap=True)
    else:
        say(f"{program.program.title}: written to {output}")

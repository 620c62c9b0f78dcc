"""``hindsched model``: an instance's program, printed equation by equation or written to a file."""

from __future__ import annotations

from typing import Annotated

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import emit_json, say, tell
from hindsched.limits import time_limit as limited


def model(
    file: opt.File,
    form: Annotated[str | None, opt.option("`printed` is as the paper prints it.")] = None,
    formulation: opt.Formulation = None,
    time_limit: opt.TimeLimit = None,
    relax: Annotated[bool, opt.option("The linear relaxation.", "--relax")] = False,
    latex: Annotated[bool, opt.option("Print its equations for LaTeX.", "--latex")] = False,
    output: opt.Output = None,
    as_json: opt.Json = False,
) -> None:
    """Print the program that an instance is solved by, or write it (.mps, .lp) for any solver."""
    opt.check_targets([file], output=output)
    with limited(time_limit):
        program = hs.model(opt.load_instance(file), form=form, formulation=formulation, relax=relax)
    if output is not None:
        program.write(output)
    if as_json:
        emit_json({**program.to_dict(), "output": output})
    elif latex:
        tell(program.to_latex(), end="")
    elif output is None:
        tell(str(program))
    else:
        say(f"{program.program.title}: written to {output}")

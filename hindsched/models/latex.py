"""A Pyomo model's rules as mathematics: as they are stated, or else as Pyomo prints a row."""

from __future__ import annotations

import re
from typing import Any

import pyomo.environ as pyo
from pyomo.contrib.latex_printer import latex_printer

from hindsched.models.algebra import Notation


def latex(program: Any) -> str:
    """The equations of a `PyomoProgram` for LaTeX or MathJax.

    Each rule stands as its sentence and its mathematics, with the paper's number as tag, and behind
    them the table of symbols. What a rule says in general is behind ``$`` in its ``doc``; of a rule
    without it, which somebody added, its first row is shown.
    """
    lines = [_escaped(program.title)]
    for part in program.components("objective", "constraint"):
        rules = program.model.component_objects((pyo.Objective, pyo.Constraint), active=True)
        rule = next(each for each in rules if each.local_name == part.name and len(each))
        sentence, stated = part.doc, (rule.doc or "").partition("$")[2].strip("$ ")
        number = re.match(r"\(([^()]+)\)\s*(.*)", sentence, re.DOTALL)
        tag = rf" \tag{{{_escaped(number[1])}}}" if number else ""
        heading = number[2] if number else sentence or part.name
        if not stated:
            printed = latex_printer(next(row for row in rule.values() if row.active))
            stated = " ".join(re.sub(r"\\(begin|end)\{equation\*?\}", "", printed).split())
        lines.append(f"{_escaped(heading)}:\n\\[ {stated}{tag} \\]")
    notation: Notation = getattr(program.model, "notation", {})
    if notation:
        entries = [rf"{symbol} & \text{{{_escaped(what)}}} & \texttt{{{_escaped(here)}}} \\"
                   for symbol, (here, what) in notation.items()]  # fmt: skip
        table = "\n".join([r"\begin{array}{lll}", *entries, r"\end{array}"])
        lines.append(f"symbols, and their names here:\n\\[ {table} \\]")
    return "\n\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """A text in which LaTeX takes nothing for a command."""
    return re.sub(r"([_%&#{}$])", r"\\\1", " ".join(text.split()))

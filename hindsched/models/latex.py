"""A Pyomo model's rules as mathematics: as they are stated, or a row of each by Pyomo's printer."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import pyomo.environ as pyo
from pyomo.common.collections import ComponentMap
from pyomo.contrib.latex_printer import latex_printer
from pyomo.core.expr.numeric_expr import SumExpressionBase
from pyomo.core.expr.visitor import ExpressionReplacementVisitor, identify_variables

from hindsched.models.algebra import Notation

MOST_TERMS, FIRST_TERMS = 5, 2
"""A sum of more terms shows so many first ones, dots, and the last."""
LOOKED_AT = 50  # first rows of a rule, of which the one with the most terms is shown
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu",
    "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
}  # fmt: skip


def latex(program: Any, sample: bool = False) -> str:
    """The equations of a `PyomoProgram` for LaTeX or MathJax.

    Each rule stands as its sentence and its mathematics, with the paper's number as tag, and behind
    them the table of symbols. What a rule says in general is behind ``$`` in its ``doc``; of a rule
    without it, and of all for a `sample`, one row is shown.
    """
    lines = [_escaped(program.title)]
    holder = pyo.ConcreteModel()
    holder.dots = pyo.Var()
    for part in program.components("objective", "constraint"):
        rules = program.model.component_objects((pyo.Objective, pyo.Constraint), active=True)
        rule = next(each for each in rules if each.local_name == part.name and len(each))
        sentence, stated = part.doc, (rule.doc or "").partition("$")[2].strip("$ ")
        number = re.match(r"\(([^()]+)\)\s*(.*)", sentence, re.DOTALL)
        tag = rf" \tag{{{_escaped(number[1])}}}" if number else ""
        heading = number[2] if number else sentence or part.name
        if sample or not stated:
            rows = islice((row for row in rule.values() if row.active), LOOKED_AT)
            fullest = max(rows, key=lambda row: sum(1 for _ in identify_variables(row.expr)))
            stated = _mathematics(fullest, holder.dots)
            heading += f", for each {', '.join(part.indices)}" if part.indices else ""
        lines.append(f"{_escaped(heading)}:\n\\[ {stated}{tag} \\]")
    notation: Notation = getattr(program.model, "notation", {})
    if notation and not sample:
        entries = [rf"{symbol} & \text{{{_escaped(what)}}} & \texttt{{{_escaped(here)}}} \\"
                   for symbol, (here, what) in notation.items()]  # fmt: skip
        table = "\n".join([r"\begin{array}{lll}", *entries, r"\end{array}"])
        lines.append(f"symbols, and their names here:\n\\[ {table} \\]")
    return "\n\n".join(lines) + "\n"


def _mathematics(row: Any, dots: Any) -> str:
    """One row or objective as its printer has it, with short sums and short numbers."""
    relation = _Shortened(dots).walk_expression(row.expr)
    names = ComponentMap((each, _name(each)) for each in identify_variables(relation))
    if dots in names:
        names[dots] = r"\cdots"
    text = latex_printer(relation, latex_component_map=names)
    text = re.sub(r"\\begin\{equation\*?\}|\\end\{equation\*?\}", "", text)
    text = re.sub(r"\d+\.\d{4,}(?:e[-+]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)
    text = re.sub(r"(\d)e([-+]?)0*(\d+)", r"\1 \\cdot 10^{\2\3}", text)
    sense = ""
    if row.ctype is pyo.Objective:
        sense = r"\max\; " if row.sense == pyo.maximize else r"\min\; "
    return sense + " ".join(text.split())


class _Shortened(ExpressionReplacementVisitor):
    """Leaves out the middle of long sums."""

    def __init__(self, dots: Any) -> None:
        super().__init__(descend_into_named_expressions=True, remove_named_expressions=True)
        self._dots = dots

    def exitNode(self, node: Any, data: Any) -> Any:
        """The node over its shortened parts."""
        if not node.is_potentially_variable():
            return pyo.value(node)
        made = super().exitNode(node, data)
        if isinstance(made, SumExpressionBase):
            terms = [term for part in made.args for term in _terms(part)]
            if len(terms) > MOST_TERMS:
                return pyo.quicksum([*terms[:FIRST_TERMS], self._dots, terms[-1]])
        return made


def _terms(part: Any) -> list[Any]:
    return list(part.args) if isinstance(part, SumExpressionBase) else [part]


def _name(item: Any) -> str:
    """A variable as its letter, or its word, with its indices below."""
    component = item.parent_component()
    keys = [key for key in (component.parent_block().index(), item.index()) if key is not None]
    flat = [str(part) for key in keys for part in (key if isinstance(key, tuple) else (key,))]
    word = component.local_name
    if word in GREEK:
        word = f"\\{word}"
    elif len(word) > 1:
        word = rf"\mathit{{{_escaped(word)}}}"
    below = ",".join(
        part if part.lstrip("-").isdigit() else rf"\text{{{_escaped(part)}}}" for part in flat
    )
    return f"{word}_{{{below}}}" if flat else word


def _escaped(text: str) -> str:
    """A text in which LaTeX takes nothing for a command."""
    return re.sub(r"([_%&#{}$])", r"\\\1", " ".join(text.split()))

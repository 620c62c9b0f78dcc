"""The mathematics that printed programs are shown by says what their rows say."""

from __future__ import annotations

import importlib
import re

import pyomo.environ as pyo
import pytest
from pyomo.core.expr.visitor import identify_variables

import hindsched as hs
from tests.models.test_golden import PROGRAMS, tiny

TOKEN = re.compile(r"\\(?:bar|mathcal|hat)\s*(?:\{\w+\}|\\\w+|\w)|\\[a-zA-Z]+|[a-zA-Z](?:\^\d)?")
OPERATORS = r"""
\sum \forall \in \ge \le \quad \max \min \Bigl \Bigr \bigl \bigr \lvert \rvert \frac \cap \ne
"""
"""Commands of LaTeX that are no symbols."""
PRINTED = [
    (family, formulation)
    for family, programs in PROGRAMS.items() for formulation, form in programs if form == "printed"
]  # fmt: skip
each_printed = pytest.mark.parametrize(("family", "formulation"), PRINTED)


def module(name):
    """Where a family's printed problem stands; what follows its name says which instance."""
    return importlib.import_module(f"hindsched.models.{name.partition('-')[0]}.printed")


def tokens(text):
    return [token.replace(" ", "") for token in TOKEN.findall(text)]


def rules(family, formulation):
    model = hs.model(tiny(family), formulation=formulation, form="printed").program.model
    return model, list(model.component_objects((pyo.Objective, pyo.Constraint), active=True))


@each_printed
def test_an_equation_names_the_variables_that_its_rows_have(family, formulation):
    model, found = rules(family, formulation)
    notation = module(family).NOTATION
    variables = {variable.local_name for variable in model.component_objects(pyo.Var)}
    letters = {tokens(key)[0]: here for key, (here, _) in notation.items() if here in variables}
    assert set(letters.values()) == variables
    first = [tokens(key)[0] for key in notation]
    assert all(first.count(letter) == 1 for letter in letters)
    for rule in found:
        in_rows = {
            variable.parent_component().local_name
            for row in rule.values() for variable in identify_variables(row.expr)
        }  # fmt: skip
        shown = {letters[token] for token in tokens(rule.doc.partition("$")[2]) if token in letters}
        assert not in_rows or shown == in_rows, rule.name


@pytest.mark.parametrize("family", sorted({name.partition("-")[0] for name in PROGRAMS}))
def test_the_symbols_are_those_of_the_equations(family):
    notation, shown = module(family).NOTATION, list(module(family).EQUATIONS.values())
    for name, formulation in PRINTED:
        if name.partition("-")[0] == family:
            shown += [rule.doc.partition("$")[2] for rule in rules(name, formulation)[1]]
    used = {token for text in shown for token in tokens(text)}
    symbols = {token for key in notation for token in tokens(key)}
    numbers = {name for _, what in notation.values() for name in re.findall(r"\[(\w)\]", what)}
    assert used - set(OPERATORS.split()) <= symbols | numbers
    assert {tokens(key)[0] for key in notation} <= used | {
        token for key in notation for token in tokens(key)[1:]
    }


def test_every_equation_belongs_to_a_rule():
    names = {family.partition("-")[0]: set() for family, _ in PRINTED}
    for family, formulation in PRINTED:
        own = {rule.local_name for rule in rules(family, formulation)[1]}
        names[family.partition("-")[0]] |= own
    assert {family: set(module(family).EQUATIONS) for family in names} == names

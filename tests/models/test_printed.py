"""The mathematics that programs are shown by says what their rows say."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict

import pyomo.environ as pyo
import pytest
from pyomo.core.expr.visitor import identify_variables

import hindsched as hs
from tests.models.test_golden import CASES, tiny

TOKEN = re.compile(r"\\(?:bar|mathcal|hat)\s*(?:\{\w+\}|\\\w+|\w)|\\[a-zA-Z]+|[a-zA-Z](?:\^\d)?")
OPERATORS = r"""
\sum \forall \in \ge \le \quad \max \min \Bigl \Bigr \bigl \bigr \lvert \rvert \frac \tfrac \cap \ne
"""
"""Commands of LaTeX that are no symbols."""
PRINTED = [case for case in CASES if case[-1] == "printed"]
FAMILIES = sorted({name.partition("-")[0] for name, _, _ in CASES})
"""What follows a family's name in a case says which instance it is of."""
each_case = pytest.mark.parametrize("case", CASES)


def module(family):
    return importlib.import_module(f"hindsched.models.{family}.printed")


def tokens(text):
    return [token.replace(" ", "") for token in TOKEN.findall(text)]


def stated(rule):
    """Symbols of the mathematics that a rule is shown by."""
    return tokens(rule.doc.partition("$")[2])


def built(name, formulation, form):
    return hs.model(tiny(name), formulation=formulation, form=form).program.model


def rules(model):
    found = model.component_objects((pyo.Objective, pyo.Constraint), active=True)
    return [rule for rule in found if len(rule)]


@each_case
def test_an_equation_names_the_variables_that_its_rows_have(case):
    model, in_rows, shown = built(*case), defaultdict(set), defaultdict(set)
    variables = {variable.local_name for variable in model.component_objects(pyo.Var)}
    letters = {tokens(key)[0]: here for key, (here, _) in model.notation.items()
               if here in variables}  # fmt: skip
    assert set(letters.values()) == variables
    first = [tokens(key)[0] for key in model.notation]
    assert all(first.count(letter) == 1 for letter in letters)
    for rule in rules(model):
        in_rows[rule.local_name] |= {
            variable.parent_component().local_name
            for row in rule.values() for variable in identify_variables(row.expr)
        }  # fmt: skip
        shown[rule.local_name] |= {letters[token] for token in stated(rule) if token in letters}
    assert shown == in_rows


@pytest.mark.parametrize("family", FAMILIES)
def test_all_symbols_are_explained_and_the_printed_ones_used(family):
    used = {token for text in module(family).EQUATIONS.values() for token in tokens(text)}
    for case in CASES:
        if case[0].partition("-")[0] != family:
            continue
        model = built(*case)
        symbols = {token for key in model.notation for token in tokens(key)}
        ranges = re.findall(r"\[(\w)\]", str([what for _, what in model.notation.values()]))
        known = symbols | set(ranges) | set(OPERATORS.split())
        assert {token for rule in rules(model) for token in stated(rule)} <= known
        if case in PRINTED:
            used |= {token for rule in rules(model) for token in stated(rule)}
    notation = module(family).NOTATION
    used |= {token for key in notation for token in tokens(key)[1:]}
    assert {tokens(key)[0] for key in notation} <= used


def test_every_equation_belongs_to_a_printed_rule():
    names = {family: set() for family in FAMILIES}
    for case in PRINTED:
        found = built(*case).component_objects((pyo.Objective, pyo.Constraint), active=True)
        names[case[0].partition("-")[0]] |= {rule.local_name for rule in found}
    assert {family: set(module(family).EQUATIONS) for family in FAMILIES} == names


def test_a_sample_shows_rows_and_so_does_a_rule_without_an_equation():
    model = hs.model(tiny("oasis"), form="printed")
    stated_all, sample = model.to_latex(), model.to_latex(sample=True)
    assert r"\forall i \in [I]" in stated_all
    assert r"\begin{array}" in stated_all
    assert r"\forall" not in sample
    assert r"\begin{array}" not in sample
    assert "an admitted job does its work, for each job:" in sample
    model.pyomo.mine = pyo.Constraint(expr=model.pyomo.x[0] <= 0.5, doc="(mine) half of a job")
    own = model.to_latex().removeprefix(stated_all.partition("symbols, and")[0])
    assert r"half of a job:" in own
    assert r"x_{0} \leq 0.5 \tag{mine}" in own

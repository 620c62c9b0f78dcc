"""A recorder of linear rows that stands in for Pyomo while a formulation's rules run.

Pyomo takes most of the time of a program that is solved once and thrown away, as an online
algorithm does at every arrival: its expressions are trees that are built, walked and compiled. The
recorder offers the part of Pyomo's interface that the formulations use (variables, rules, blocks,
sums, comparisons) and writes down coefficients at once. The formulation is the same code:

    with recording():
        program = build_offline(instance, relax=True)   # program.model is a RecordedModel

Only linear expressions can be recorded; anything else is a `TypeError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import pyomo.environ as pyo

from hindsched.arrays import Floats, Ints
from hindsched.models import algebra
from hindsched.models.algebra import Expr, recording
from hindsched.models.linear import (
    Column,
    Linear,
    Relation,
    as_linear,
    inequality,
    quicksum,
)
from hindsched.models.recorded_variables import Var, all_keys, key_parts

__all__ = ["RecordedModel", "Row", "SumRows", "recording"]


class Row:
    """One constraint."""

    __slots__ = ("index", "local_name", "relation")

    def __init__(self, local_name: str, index: Any, relation: Any = None) -> None:
        self.local_name, self.index, self.relation = local_name, index, relation

    @property
    def name(self) -> str:
        """Name with its index."""
        return self.local_name if self.index is None else f"{self.local_name}[{self.index}]"


class Constraint:
    """Rows by index, made when the constraint is given to a block."""

    Skip: ClassVar[Any] = object()
    Infeasible: ClassVar[Any] = Relation(Linear([], [], 1.0), 0.0, 0.0)

    def __init__(
        self, *sets: Any, rule: Any = None, expr: Any = None, doc: str | None = None
    ) -> None:
        self.sets, self.rule, self.expr, self.doc = sets, rule, expr, doc
        self.data: dict[Any, Row] = {}

    def build(self, block: RecordedBlock, name: str) -> None:
        """Run the rule, and forget it: it refers to the model, which would never be freed."""
        rule, sets = self.rule, self.sets
        self.rule, self.sets = None, ()
        if not sets:
            relation = rule(block) if rule is not None else self.expr
            self._add(block.record, name, None, relation)
            return
        for key in all_keys(sets):
            own = rule(block, *key) if isinstance(key, tuple) else rule(block, key)
            self._add(block.record, name, key, own)

    def _add(self, record: Record, name: str, key: Any, relation: Any) -> Row | None:
        if relation is Constraint.Skip:
            return None
        if relation is True:
            return None
        if not isinstance(relation, Relation):
            raise TypeError(f"{name}[{key}] is no comparison of linear expressions")
        row = self.data[key] = Row(name, key, relation)
        record.rows.append(row)
        return row

    def items(self) -> Any:
        """Keys and rows."""
        return self.data.items()

    def keys(self) -> Any:
        """Keys."""
        return self.data.keys()

    def values(self) -> Any:
        """Rows."""
        return self.data.values()

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.data)

    def __getitem__(self, key: Any) -> Row:
        return self.data[key]


class SumRows:
    """Rows given by arrays; see `models.sums`.

    Parameters
    ----------
    index : sequence, or ndarray of shape (rows, parts)
        Key of each row.
    terms : sequence of Terms
        What is added up.
    kind : {"<=", ">=", "=="}
        How the sums stand to the sides.
    sides : ndarray or float
        The sides, or that of all rows.
    doc : str
        The constraint's sentence.
    """

    def __init__(
        self,
        index: Sequence[Any] | Ints,
        terms: Sequence[Expr],
        kind: str,
        sides: Floats | float,
        doc: str,
    ) -> None:
        self.index, self.terms, self.kind, self.sides, self.doc = index, terms, kind, sides, doc
        self.name = ""
        self.place: slice | None = None
        """Where the rows stand in the compiled program."""

    def build(self, block: RecordedBlock, name: str) -> None:
        """Give the rows to the model."""
        self.name = name
        block.record.rows.append(self)

    def keys(self) -> Sequence[Any] | Ints:
        """Keys."""
        return self.index

    def __len__(self) -> int:
        return len(self.index)


class ConstraintList(Constraint):
    """Rows numbered from 1 as they are added."""

    def build(self, block: RecordedBlock, name: str) -> None:
        """Remember where rows go."""
        self.record, self.name = block.record, name

    def add(self, relation: Expr) -> Row | None:
        """Add a row."""
        return self._add(self.record, self.name, len(self.data) + 1, relation)


class Objective:
    """What is minimised or maximised."""

    def __init__(self, expr: Expr, sense: int = 1, doc: str | None = None) -> None:
        self.expr, self.sense, self.doc = as_linear(expr), sense, doc


class Block:
    """Blocks by index."""

    def __init__(self, index: Iterable[Any], rule: Callable[..., Any] | None = None) -> None:
        self.index, self.rule = list(index), rule
        self.data: dict[Any, RecordedBlock] = {}

    def build(self, block: RecordedBlock, name: str) -> None:
        """Make them, and run the rule on each."""
        rule, self.rule = self.rule, None
        for key in self.index:
            self.data[key] = RecordedBlock(block.record)
            if rule is not None:
                rule(self.data[key], key)

    def __getitem__(self, key: Any) -> RecordedBlock:
        return self.data[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


def Expression(*sets: Any, expr: Any = None, rule: Any = None) -> Any:
    """The expression itself."""
    if sets:
        raise TypeError("only expressions without indices are recorded")
    return expr if rule is None else rule(None)


class Record:
    """What all blocks of a model write to."""

    def __init__(self) -> None:
        self.variables: list[Var | Column] = []
        self.num_columns = 0
        self.rows: list[Row | SumRows] = []
        self.objectives: list[Objective] = []

    def add(self, name: str, variable: Var | Column) -> None:
        """Add a variable."""
        variable.declare(name, self.num_columns)
        self.variables.append(variable)
        self.num_columns += variable.num_columns


class RecordedBlock:
    """A block; what is assigned to it is recorded."""

    record: Record

    def __init__(self, record: Record) -> None:
        object.__setattr__(self, "record", record)

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        if isinstance(value, Constraint | SumRows | Block):
            value.build(self, name)
        elif isinstance(value, Var) or (isinstance(value, Column) and not value.local_name):
            self.record.add(name, value)
        elif isinstance(value, Objective):
            self.record.objectives.append(value)

    def add_component(self, name: str, value: object) -> None:
        """Assign under a name."""
        setattr(self, name, value)

    def Constraint(
        self, *sets: Any, doc: str | None = None
    ) -> Callable[[Callable[..., Expr]], None]:
        """Decorator of a rule."""

        def add(rule: Callable[..., Expr]) -> None:
            setattr(self, rule.__name__, Constraint(*sets, rule=rule, doc=doc))

        return add

    def Expression(
        self, *sets: Any, doc: str | None = None
    ) -> Callable[[Callable[..., Expr]], None]:
        """Decorator of a rule of expressions."""

        def add(rule: Callable[..., Expr]) -> None:
            found = {key: rule(self, *key_parts(key)) for key in all_keys(sets)}
            object.__setattr__(self, rule.__name__, found)

        return add


class RecordedModel(RecordedBlock):
    """All columns, rows and objectives in the order in which they were declared."""

    def __init__(self, name: str = "") -> None:
        super().__init__(Record())
        object.__setattr__(self, "name", name)

    name: str

    @property
    def columns(self) -> list[Column]:
        """All columns, one by one."""
        return [column for variable in self.record.variables for column in variable.values()]

    @property
    def rows(self) -> list[Row | SumRows]:
        """All rows, one by one or many at once."""
        return self.record.rows

    @property
    def objectives(self) -> list[Objective]:
        """All objectives."""
        return self.record.objectives

    def component_data_objects(self, kind: Any, active: Any = None) -> list[Column]:
        """The columns; only variables are asked for."""
        if kind is not pyo.Var and kind is not Var:
            raise TypeError(f"a recorded model lists variables, not {kind}")
        return self.columns


algebra.RECORDER = {
    "Block": Block,
    "ConcreteModel": RecordedModel,
    "Constraint": Constraint,
    "ConstraintList": ConstraintList,
    "Expression": Expression,
    "Objective": Objective,
    "SumRows": SumRows,
    "Var": Var,
    "inequality": inequality,
    "quicksum": quicksum,
}

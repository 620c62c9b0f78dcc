"""A Pyomo model that can describe itself: its parts, its size, its file, its labelled numbers.

A family's program, subproblem or dual is a `PyomoProgram`: it *has* a `ConcreteModel` whose
variables and constraints carry a sentence each (Pyomo's ``doc``, beginning with the paper's number
in round brackets), and a table of `Symbol` that says what the indices are and in which unit the
numbers count.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pyomo.environ as pyo
from pyomo.opt import ProblemFormat

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.io import write_bytes
from hindsched.json_types import JsonObject
from hindsched.models.algebra import ModelComponent

if TYPE_CHECKING:
    import pandas as pd

IndexValue = int | str  # of a component's index: a position, a slot, or a word
FORMATS = {".mps": ProblemFormat.mps, ".lp": ProblemFormat.cpxlp}  # by the file's ending


class Symbol(NamedTuple):
    """How a component's indices and numbers read.

    The index of the job's block that it stands in comes before its own ones as ``job``. Where forms
    of the program differ in the number of indices, the alternatives stand with ``|`` between them.
    """

    indices: str = ""  # joined by commas: ``"server, slot"``
    unit: str = ""  # what its value, or for a constraint its dual, counts in


def symbols(table: Mapping[tuple[str, str], str]) -> dict[str, Symbol]:
    """Symbols by component: a table of the components of each indices and unit."""
    return {name: Symbol(*key) for key, names in table.items() for name in names.split()}


@dataclass(frozen=True)
class Component:
    """One variable, constraint or objective of a model, over all jobs."""

    name: str  # without its block: ``eq_4``
    kind: str  # ``variable``, ``constraint`` or ``objective``
    doc: str  # its sentence
    indices: tuple[str, ...]  # their names
    unit: str  # what its numbers count in
    size: int  # active elements
    integers: int = 0  # of a variable: how many must be whole
    path: str = ""  # as the Pyomo model has it: ``job[:].eq_4``


@dataclass(kw_only=True, eq=False, repr=False)
class DeclarativeProgram(ABC):
    """What every declarative program can say of itself, whatever it is written in."""

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = {}
    """Indices and units by component, without the block's index."""
    OBJECTIVE_UNIT: ClassVar[str] = ""
    """What the objective counts in."""
    BLOCKS: ClassVar[tuple[str, ...]] = ("job",)
    """What the indices of nested blocks are."""

    instance: Instance
    formulation: str

    @property
    def title(self) -> str:
        """What this is, in one line."""
        return f"{self.instance.family}: {self.instance.name} ({self.formulation})"

    def label(self, index: str, value: IndexValue) -> IndexValue:
        """What an index value is called: the job's name for its position, and the like."""
        if isinstance(value, str):
            return value
        name = self.instance.jobs[value].name if index == "job" else self.name_of(index, value)
        return value if name is None else name

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        return None

    def symbol(self, name: str) -> Symbol:
        """Indices and unit of a component; empty for one that somebody else added."""
        return self.SYMBOLS.get(name, Symbol())

    def unit(self, name: str, kind: str) -> str:
        """Unit of a component's numbers; a row without one of its own is worth the objective's."""
        symbol = self.symbol(name)
        return symbol.unit or (self.OBJECTIVE_UNIT if kind == "constraint" and any(symbol) else "")

    def _labelled(
        self, name: str, unit: str, indices: tuple[str, ...],
        numbers: Mapping[tuple[IndexValue, ...], float],
    ) -> pd.Series[float]:  # fmt: skip
        """A component's numbers by what its indices are called; the unit is in the name."""
        import pandas as pd

        keys = [
            tuple(self.label(index, value) for index, value in zip(indices, key, strict=True))
            for key in numbers
        ]
        index = pd.MultiIndex.from_tuples(keys, names=indices) if indices else None
        title = f"{name} ({unit})" if unit else name
        return pd.Series(list(numbers.values()), index=index, name=title, dtype=float)

    @abstractmethod
    def components(self, *kinds: str) -> list[Component]:
        """The components of some kinds (all) by name, over all blocks.

        Kinds are ``objective``, ``constraint`` and ``variable``.
        """

    def to_dict(self) -> JsonObject:
        """What `print` shows, for JSON."""
        parts = self.components()
        return {
            "family": self.instance.family,
            "instance": self.instance.name,
            "formulation": self.formulation,
            "title": self.title,
            "rows": sum(part.size for part in parts if part.kind == "constraint"),
            "columns": sum(part.size for part in parts if part.kind == "variable"),
            "integers": sum(part.integers for part in parts),
            "components": [{**asdict(part), "indices": list(part.indices)} for part in parts],
        }

    def __str__(self) -> str:
        sizes, parts = self.to_dict(), self.components()
        size = "{rows} rows, {columns} columns, {integers} of them integer".format(**sizes)
        lines, width = [self.title, size], max((len(part.path) for part in parts), default=0)
        for part in parts:
            unit = f" [{part.unit}]" if part.unit else ""
            lines.append(f"  {part.path:{width}s}  {part.doc}{unit}")
            if part.kind != "objective":
                kind = "rows" if part.kind == "constraint" else "columns"
                integers = f", {part.integers} integer," if part.integers else ""
                over = f" over {', '.join(part.indices)}" if part.indices else ""
                lines.append(f"  {'':{width}s}  {part.size} {kind}{integers}{over}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title}>"


@dataclass(kw_only=True, eq=False, repr=False)
class PyomoProgram(DeclarativeProgram):
    """A Pyomo model that belongs to an instance and can say what it is."""

    model: pyo.ConcreteModel

    @property
    def pyomo(self) -> pyo.ConcreteModel:
        """The Pyomo model, to be read, changed, or given to any solver."""
        return self.model

    def components(self, *kinds: str) -> list[Component]:
        """The components by name, over all blocks: objectives, constraints, variables."""
        listed: list[Component] = []
        for kind in kinds or _KINDS:
            for name, components in _by_name(self.model, kind).items():
                first, is_variable = max(components, key=len), kind == "variable"
                data = [item for component in components for item in component.values()]
                active = [item for item in data if is_variable or item.active]
                if active:
                    integers = sum(not item.is_continuous() for item in active if is_variable)
                    indices, unit = self.indices(first), self.unit(name, kind)
                    doc = (first.doc or "").partition("$")[0].strip()
                    path = re.sub(r"\[[^\]]*\]", "[:]", first.name)
                    size = len(active), integers
                    listed.append(Component(name, kind, doc, indices, unit, *size, path))
        return listed

    def indices(self, component: ModelComponent) -> tuple[str, ...]:
        """Names of a component's indices, the block's first."""
        depth, width = len(block_index(component)), 0
        for key in component if component.is_indexed() else ():
            width = len(key) if isinstance(key, tuple) else 1
            break
        listed = self.symbol(component.local_name).indices.split("|")
        written = [tuple(n.strip() for n in each.split(",") if n.strip()) for each in listed]
        fitting = [names for names in written if len(names) == width]
        if not fitting:
            return tuple(f"index_{position}" for position in range(depth + width))
        # outside the jobs' blocks a row of a job says so, inside one it does not
        blocks = self.BLOCKS[:depth]
        names = min(fitting, key=lambda names: ("job" in names) == ("job" in blocks))
        return (*blocks, *names)

    def row_name(self, row: ModelComponent) -> str:
        """An element of a component by its equation, its index in words, and its sentence."""
        component, own = row.parent_component(), row.index()
        key = () if own is None else own if isinstance(own, tuple) else (own,)
        places = zip(self.indices(component), (*block_index(component), *key), strict=True)
        where = ", ".join(f"{index} {self.label(index, value)}" for index, value in places)
        doc = (component.doc or "").partition("$")[0].strip()
        return f"{component.local_name}{f' at {where}' if where else ''}{f': {doc}' if doc else ''}"

    def table(
        self, name: str, value_of: Callable[[ModelComponent], float | None], unit: str | None = None
    ) -> pd.Series[float]:
        """A component's numbers over all blocks, labelled; None leaves an element out.

        The unit, by default the symbol's, is in the name of the series.
        """
        kind = "variable" if name in _by_name(self.model, "variable") else "constraint"
        components = _by_name(self.model, kind).get(name)
        if not components:
            raise InputError("component", name, "must be a variable or constraint of the model")
        numbers: dict[tuple[IndexValue, ...], float] = {}
        for component in components:
            prefix = block_index(component)
            for key, item in component.items():
                value = value_of(item)
                if value is not None:
                    key = () if key is None else key if isinstance(key, tuple) else (key,)
                    numbers[*prefix, *key] = value
        unit = self.unit(name, kind) if unit is None else unit
        return self._labelled(name, unit, self.indices(max(components, key=len)), numbers)

    def to_latex(self, sample: bool = False) -> str:
        """The rules as mathematics with their symbols, or one row of each as a `sample`."""
        from hindsched.models.latex import latex

        return latex(self, sample)

    def write(self, path: str | Path) -> None:
        """Write the model, with readable names, to a path that ends in ``.mps`` or ``.lp``."""
        ending = Path(path).suffix.lower()
        if ending not in FORMATS:
            raise InputError("output", str(path), f"must end in {' or '.join(FORMATS)}")
        with TemporaryDirectory() as folder:  # what is there stays until the new file is whole
            written = Path(folder) / f"model{ending}"
            self.model.write(
                str(written), format=FORMATS[ending], io_options={"symbolic_solver_labels": True}
            )
            write_bytes(written.read_bytes(), path)


_KINDS = {"objective": pyo.Objective, "constraint": pyo.Constraint, "variable": pyo.Var}


def _by_name(model: pyo.ConcreteModel, kind: str) -> dict[str, list[ModelComponent]]:
    """Active components of a kind by their name without the block, blocks in order."""
    by_name: dict[str, list[ModelComponent]] = {}
    active = None if kind == "variable" else True
    for component in model.component_objects(_KINDS[kind], active=active):
        by_name.setdefault(component.local_name, []).append(component)
    return by_name


def block_index(component: ModelComponent) -> tuple[IndexValue, ...]:
    """Indices of the blocks that a component stands in; empty on the model itself."""
    index: tuple[IndexValue, ...] = ()
    block = component.parent_block()
    while block.parent_block() is not None:
        outer = block.index()
        index = (*(outer if isinstance(outer, tuple) else (outer,)), *index)
        block = block.parent_block()
    return index

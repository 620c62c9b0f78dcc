"""The labelled numbers of a solved model, made when they are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hindsched.errors import InputError, SolveFailed
from hindsched.models.declared import Face
from hindsched.solvers.door.status import Status

if TYPE_CHECKING:
    import pandas as pd


class Numbers(Mapping[str, "pd.Series[float]"]):
    """One labelled pandas Series a component: ``numbers["y"]``.

    Parameters
    ----------
    names : list of str
        The components.
    table : callable
        Makes a component's Series.

    Examples
    --------
    >>> import hindsched as hs
    >>> lp = hs.model(hs.generate("oasis", jobs=2, horizon=6), relax=True).solve()
    >>> lp.duals["eq_4"].index.names
    FrozenList(['worker server', 'resource', 'slot'])
    """

    def __init__(self, names: list[str], table: Callable[[str], pd.Series[float]]) -> None:
        self._names, self._table = names, table

    def __getitem__(self, name: str) -> pd.Series[float]:
        if name not in self._names:
            raise InputError("component", name, f"must be one of {', '.join(self._names)}")
        return self._table(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def get(self, name: str, default: Any = None) -> Any:
        """The component's Series, or `default` if the model has none of that name."""
        return self._table(name) if name in self else default

    def to_frame(self) -> pd.DataFrame:
        """All numbers in one table: component, its index in words, value; one row a number."""
        import pandas as pd

        parts = [
            pd.DataFrame({
                "component": name,
                "index": [", ".join(map(str, key)) if isinstance(key, tuple) else ""
                          for key in series.index],
                "value": series.to_numpy(),
            })
            for name, series in self.items()
        ]  # fmt: skip
        columns = ["component", "index", "value"]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class LabelledResult(ABC):
    """What is known of a model after a solve: status, objective, labelled values and duals."""

    declared: Face
    """What was solved."""

    @property
    @abstractmethod
    def status(self) -> Status:
        """What is known of the model's optimum."""

    @property
    @abstractmethod
    def objective(self) -> float | None:
        """The model's objective at its point."""

    @property
    @abstractmethod
    def has_point(self) -> bool:
        """Whether there is a checked point."""

    @property
    def values(self) -> Numbers:
        """Values of the variables by name."""
        if not self.has_point:
            raise SolveFailed(f"{self.declared.title}: {self.status}, there is no point")
        return self._numbers("variable", self._value_table)

    @property
    def duals(self) -> Numbers:
        """Shadow prices of the constraints by name: d objective / d right side."""
        return self._numbers("constraint", self._dual_table())

    @abstractmethod
    def _value_table(self, name: str) -> pd.Series[float]:
        """Values of one variable."""

    @abstractmethod
    def _dual_table(self) -> Callable[[str], pd.Series[float]]:
        """What makes the shadow prices of one constraint; raises if there are none."""

    def _numbers(self, kind: str, table: Callable[[str], pd.Series[float]]) -> Numbers:
        return Numbers([part.name for part in self.declared.components(kind)], table)

    def __repr__(self) -> str:
        return f"<{self}>"

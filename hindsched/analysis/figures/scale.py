"""How large an experiment is, and which instances it runs on: generated ones, or a trace's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject, Keywords

if TYPE_CHECKING:
    from hindsched.instances.traces.table import TraceTable

Made = TypeVar("Made", bound=Instance)
QUICK_SEEDS, FULL_SEEDS = 1, 5
FROM_A_TRACE = ("jobs", "servers", "utility", "minibatch_scale")
"""Settings of an experiment that also say something about an instance made from a trace."""


@dataclass(frozen=True, eq=False)
class TraceInput:
    """A trace to make instances from; each seed begins in another part of it.

    Parameters
    ----------
    table : TraceTable
        Its rows.
    path : str
        File it was read from, for messages.
    """

    table: TraceTable
    path: str

    def start(self, seed: int, seeds: int) -> float:
        """Second at which a seed's window begins: windows are spread evenly over the trace."""
        span = float(self.table.rows["submit_seconds"].max())
        return round(span * (seed + 1) / (seeds + 1))


@dataclass(frozen=True)
class FigureScale:
    """How large to run an experiment.

    Parameters
    ----------
    quick : bool
        A small version of the same experiment that ends within about 20 seconds.
    seeds : int
        Number of seeds; the spread over them is shown.
    settings : mapping
        Settings of the generator in place of the experiment's. What the experiment varies takes a
        list: the values to run.
    trace : TraceInput, optional
        Make the instances from this trace.
    schemes : tuple of str, optional
        Only these of the figure's schemes.
    """

    quick: bool = False
    seeds: int = FULL_SEEDS
    settings: Keywords = field(default_factory=dict, hash=False)
    trace: TraceInput | None = field(default=None, hash=False)
    schemes: tuple[str, ...] | None = None
    axes: dict[str, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)
    """Filled while the experiment runs: how many values each axis has in full mode, and now."""
    middles: JsonObject = field(default_factory=dict, compare=False, repr=False)
    """Filled likewise: the middle one of the values that each axis has in full mode."""

    def pick(self, full: object, quick: object) -> Any:
        """Choose between the full and the quick setting."""
        return quick if self.quick else full

    def chosen(self, schemes: Iterable[str]) -> list[str]:
        """Those of a figure's schemes that are to be run; `InputError` for one it does not have."""
        known = list(schemes)
        for name in self.schemes or ():
            if name not in known:
                raise InputError("schemes", name, f"must be one of {', '.join(known)}")
        return known if self.schemes is None else [n for n in known if n in self.schemes]

    def axis(self, name: str, full: Iterable[object], quick: Iterable[object]) -> list[Any]:
        """Values of a generator's setting that the experiment varies.

        Raises
        ------
        InputError
            If the settings name no values, or one of them twice.
        """
        whole = list(full)
        given = self.settings.get(name, self.pick(whole, list(quick)))
        values = given if isinstance(given, list) else [given]
        if not values:
            raise InputError(f"set.{name}", given, "must hold at least one value")
        if any(value in values[:index] for index, value in enumerate(values)):
            raise InputError(f"set.{name}", given, "must not hold a value twice")
        self.axes[name] = len(whole), len(values)
        self.middles[name] = whole[len(whole) // 2]
        return values

    def over(self, name: str, full: Iterable[object], quick: Iterable[object]) -> list[JsonObject]:
        """One setting for each value of an `axis`."""
        return [{name: value} for value in self.axis(name, full, quick)]

    def each(
        self, settings: Iterable[JsonObject], make: Callable[[int, JsonObject], Made]
    ) -> Iterator[tuple[JsonObject, Made, int]]:
        """Every setting with every seed: the setting, the instance made of both, the seed.

        Parameters
        ----------
        settings : iterable of dict
            What a row of the table says of the instance.
        make : callable
            Makes it of a seed and a setting.
        """
        for setting in settings:
            for seed in range(self.seeds):
                yield setting, make(seed, setting), seed

    def instance(
        self,
        family: str,
        preset: str,
        seed: int,
        varied: Keywords | None = None,
        **fixed: object,
    ) -> Instance:
        """Make one instance of the experiment.

        Parameters
        ----------
        family, preset : str
            Whose generator, and with which preset.
        seed : int
            Of the draws; with a trace also of the window.
        varied : mapping, optional
            What the experiment varies: the settings cannot change it.
        **fixed
            What it does not: the settings can.

        Raises
        ------
        InputError
            For a setting that the experiment varies otherwise, or that the generator lacks.
        """
        from hindsched.instances.generators.registry import generate

        varied = varied or {}
        given = {name: value for name, value in self.settings.items() if name not in self.axes}
        for name in given:
            if name in varied:
                raise InputError(f"set.{name}", given[name], "is what this figure varies itself")
        if self.trace is not None:
            return self._from_trace(self.trace, family, seed, varied, fixed, given)
        return generate(family, preset, seed, **{**fixed, **given, **varied})

    def _from_trace(
        self,
        trace: TraceInput,
        family: str,
        seed: int,
        varied: Keywords,
        fixed: Keywords,
        given: Keywords,
    ) -> Instance:
        from hindsched.instances.generators.registry import from_trace, trace_settings

        known = trace_settings(family) | {"jobs"}
        for name in varied:
            if name not in known:
                rule = f"an instance from a trace has no {name}, which this figure varies"
                raise InputError("from-trace", trace.path, rule)
        kept = {name: fixed[name] for name in FROM_A_TRACE if name in fixed and name in known}
        settings: dict[str, Any] = {
            "start": trace.start(seed, self.seeds),
            **kept,
            **given,
            **varied,
        }
        table, jobs = trace.table, settings.pop("jobs", None)
        if "start" not in known:
            begin = _seconds(settings.pop("start"))
            table = table.window(begin, int((table.rows["submit_seconds"] >= begin).sum()))
        return from_trace(family, table, jobs=jobs, seed=seed, **settings)


def _seconds(start: object) -> float:
    """Where in the trace to begin."""
    if isinstance(start, (int, float)) and not isinstance(start, bool) and start >= 0:
        return float(start)
    raise InputError("set.start", start, "must be a number of seconds, at least 0")

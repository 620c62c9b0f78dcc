"""Settings that the papers print, and those in which an experiment differs from them.

``printed/FAMILY.csv`` has a line a setting: the figures that it holds for, its value, the place and
the sentence that print it (the texts at hand have no pages), and what is compared: ``is``: it has
this value everywhere; ``ends``: an axis reaches both; ``within``: a value of it lies between them;
``jobs``: that field of every job drawn does. ``python benchmarks/printed.py`` prints what differs.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hindsched.analysis.figures.base import Experiment, FigureScale, TraceInput, figure
from hindsched.instances.base import family_module
from hindsched.instances.generators.registry import family_generator, generate, presets

TABLES = Path(__file__).parent / "printed"
FROM_THE_TRACE = "from the trace"
BY_THE_TRACE = ("tenants", "epochs", "chunks", "minibatches", "minibatch_slots")
"""What a family whose trace settings lack it takes from the rows of a trace."""
AS_DRAWN = ("minibatch_scale",)
"""What such a family leaves out."""


@dataclass(frozen=True)
class PrintedSetting:
    """A setting as a paper prints it."""

    figures: tuple[str, ...]
    setting: str
    kind: str
    value: Any
    place: str
    sentence: str

    def holds(self, used: Sequence[Any]) -> bool:
        """Whether an experiment with these values is the paper's."""
        if self.kind == "is":
            return all(_ends(value) == _ends(self.value) for value in used)
        low, high = self.value
        if self.kind == "within":
            return any(low <= value <= high for value in used)
        numbers = [end for value in used for end in _ends(value)]
        if self.kind == "ends":
            return min(numbers) <= low and max(numbers) >= high
        return low <= min(numbers) and max(numbers) <= high


def _ends(value: Any) -> list[Any]:
    """A range by its ends, a number as a range."""
    ends = list(value) if isinstance(value, list | tuple) else [value]
    return ends[:1] if len(ends) == 2 and ends[0] == ends[1] else ends


@cache
def printed_settings(family: str) -> tuple[PrintedSetting, ...]:
    """What a family's paper prints."""
    with (TABLES / f"{family}.csv").open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    return tuple(
        PrintedSetting(tuple(row.pop("figures").split()), value=json.loads(row.pop("value")), **row)
        for row in rows
    )


@dataclass(frozen=True)
class RecordedScale(FigureScale):
    """A scale that makes no instance and runs nothing, but keeps what would be made."""

    made: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def make(self, family: str, preset: str, seed: int, settings: Any) -> Any:
        """Keep preset and settings."""
        whole: dict[str, Any] = dict(presets(family)[preset])
        if self.trace is not None:
            model = family_generator(family).trace_settings
            assert model is not None
            defaults = {name: info.default for name, info in model.model_fields.items()}
            drawn = "preset" in defaults or settings.get("minibatch_scale") is not None
            taken = ("tenants",) if drawn else BY_THE_TRACE + AS_DRAWN
            whole = {name: value for name, value in whole.items() if name not in taken} | defaults
        self.made.append((preset, {**whole, **settings}))
        return SimpleNamespace(name="", sha256=lambda: "")

    def once(self, key: Any, make: Any) -> list[dict[str, Any]]:
        """Run nothing."""
        return []


def differences(
    family: str, number: str, settings: dict[str, Any], *, traced: bool = False
) -> dict[str, tuple[str, str]]:
    """What an experiment's settings are and what is printed, by setting that differs."""
    printed = [item for item in printed_settings(family) if number in item.figures]
    if not printed:
        return {}
    trace: Any = TraceInput(None, "") if traced else None  # type: ignore[arg-type]
    scale = RecordedScale(False, 1, settings, trace)
    run = figure(family, number).run
    if isinstance(run, Experiment):
        run = replace(run, finish=None, facts=None, before=None)
    run(scale, lambda text: None)
    differing = {}
    for item in printed:
        used = _used(family, item, scale)
        if used is None and item.setting in AS_DRAWN:
            continue
        if used is None:
            differing[item.setting] = (FROM_THE_TRACE, json.dumps(item.value))
        elif not item.holds(used):
            words = dict.fromkeys(json.dumps(value) for value in used)
            differing[item.setting] = (", ".join(words), json.dumps(item.value))
    return differing


def _used(family: str, item: PrintedSetting, scale: RecordedScale) -> list[Any] | None:
    """A setting's values; None where a trace gives them."""
    preset, first = scale.made[0]
    if item.setting in first:
        return [settings[item.setting] for _, settings in scale.made]
    constants = family_module("analysis.figures", family, "figures")
    if hasattr(constants, item.setting.upper()):
        return [getattr(constants, item.setting.upper())]
    if scale.trace is not None:
        return None
    return [getattr(job, item.setting) for job in drawn_jobs(family, preset)]


@cache
def drawn_jobs(family: str, preset: str) -> Sequence[Any]:
    """Jobs of a preset's first instance."""
    return generate(family, preset, 0).jobs


def words_of(differing: dict[str, tuple[str, str]]) -> str:
    """Differences in words."""
    return "; ".join(
        f"{name} {used} (printed {value})" for name, (used, value) in differing.items()
    )


if __name__ == "__main__":
    from claims_plan import PLAN

    for plan in PLAN:
        for number in plan.figures:
            said = words_of(differences(plan.family, number, plan.settings, traced=plan.traced))
            print(f"{plan.name}, figure {number}: {said or 'as printed'}")

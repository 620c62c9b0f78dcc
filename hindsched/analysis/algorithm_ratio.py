"""An algorithm on one instance, over its seeds: its ratio from what it reaches on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median
from typing import Literal

from hindsched.analysis.interval import Interval
from hindsched.analysis.ratio import Optimum, Ratio, competitive_ratio, spread
from hindsched.analysis.records import Record
from hindsched.json_types import JsonObject, Keywords
from hindsched.online.protocol import FORECASTS, SEES_ALL, Theorem

RunFact = Literal[
    "jobs_completed", "jobs_rejected", "decision_ms_median", "decision_ms_max", "seconds"
]
RUN_FACTS: tuple[RunFact, ...] = (
    "jobs_completed", "jobs_rejected", "decision_ms_median", "decision_ms_max", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class AlgorithmRatio:
    """An algorithm on one instance, over its seeds.

    Parameters
    ----------
    instance, family, algorithm : str
        What ran on what.
    settings : dict
        Its settings.
    runs : list of (Record, Ratio)
        Each seed's record and ratio; one for a deterministic algorithm.
    optimum : Optimum
        What is known of the instance's optimum.
    theorem : dict, optional
        ``{kind, value, assumptions}`` of the paper's own algorithm.
    """

    instance: str
    family: str
    algorithm: str
    settings: Keywords
    runs: Sequence[tuple[Record, Ratio]]
    optimum: Optimum
    theorem: Theorem | None = None

    @property
    def objective(self) -> float | None:
        """Mean objective over the seeds; None if a run failed."""
        found = [record.get("objective") for record, _ in self.runs]
        known = [value for value in found if value is not None]
        return fmean(known) if known and len(known) == len(found) else None

    @cached_property
    def ratio(self) -> Ratio:
        """``OPT / E[ALG]`` (``E[ALG] / OPT`` minimising), E being the mean over the seeds.

        None of the seeds' own ratios is averaged: where an algorithm is near nothing on one seed,
        the mean of ratios says nothing of what it earns.
        """
        if len(self.runs) == 1:
            return self.runs[0][1]
        failed = [ratio for record, ratio in self.runs if record.get("objective") is None]
        broken = [ratio for _, ratio in self.runs if not ratio.exists and ratio not in failed]
        if failed or self.objective is None:
            return Ratio(Interval(), Interval(), f"{len(failed)} of {len(self.runs)} runs failed")
        mean = competitive_ratio(self.optimum, self.objective, in_feasible_set=self.in_feasible_set)
        if broken:
            reasons = dict.fromkeys(str(ratio.reason) for ratio in broken)
            return Ratio(Interval(), mean.difference, "; ".join(reasons))
        return mean

    @property
    def label(self) -> str:
        """Its name, with a word behind it if it knows more than an online algorithm does."""
        return self.algorithm + self.mark

    @property
    def mark(self) -> str:
        """What stands behind its name, empty for a plain online algorithm."""
        return str(next((r["mark"] for r, _ in self.runs if r.get("mark")), ""))

    @property
    def commitment(self) -> str:
        """When it is bound by what it decides, in words; empty where no run says it."""
        return next((r["commitment"] for r, _ in self.runs if r.get("commitment")), "")

    @property
    def has_foresight(self) -> bool:
        """Whether it knows of the future what no online algorithm does."""
        return self.mark.startswith((SEES_ALL, FORECASTS))

    @property
    def errors(self) -> list[str]:
        """Why runs failed."""
        return [str(record["error"]) for record, _ in self.runs if record["status"] != "ok"]

    @property
    def in_feasible_set(self) -> bool:
        """False for a baseline that may do what the offline problem forbids."""
        return all(record.get("in_feasible_set", True) for record, _ in self.runs)

    def to_dict(self) -> JsonObject:
        """One entry of ``algorithms`` that ``ratio --json`` prints."""
        lower_spread, upper_spread = spread([ratio for _, ratio in self.runs])
        seeds = [
            {
                "seed": record["seed"],
                "objective": record.get("objective"),
                **ratio.to_dict(),
                "error": record["error"],
            }
            for record, ratio in self.runs
        ]
        facts: JsonObject = {
            name: _median([record.get(name) for record, _ in self.runs]) for name in RUN_FACTS
        }
        return {
            "algorithm": self.algorithm,
            "settings": dict(self.settings),
            "objective": self.objective,
            **self.ratio.to_dict(),
            "in_feasible_set": self.in_feasible_set,
            "spread": {"lower": lower_spread.to_dict(), "upper": upper_spread.to_dict()},
            "seeds": seeds,
            "theorem": self.theorem,
            **facts,
        }

    def rows(self) -> list[JsonObject]:
        """Rows of `Comparison.to_frame`: a run and its ratio each."""

        def written(settings: Keywords) -> str:
            return ", ".join(f"{key}={value}" for key, value in settings.items())

        return [
            {
                "family": self.family,
                "instance": self.instance,
                "algorithm": self.algorithm,
                "seed": record["seed"],
                "settings": written(record["settings"]),
                "objective": record.get("objective"),
                "ratio_lower": ratio.interval.lower,
                "ratio_upper": ratio.interval.upper,
                "difference_lower": ratio.difference.lower,
                "difference_upper": ratio.difference.upper,
                "starred": ratio.starred,
                "reason": ratio.reason,
                "commitment": record.get("commitment"),
                "optimum_lower": self.optimum.interval.lower,
                "optimum_upper": self.optimum.interval.upper,
                "optimum_status": self.optimum.status,
                "theorem": theorem["value"] if (theorem := record.get("theorem")) else None,
                "in_feasible_set": record.get("in_feasible_set"),
                "violations": len(record.get("violations", ())),
                **{name: record.get(name) for name in RUN_FACTS},
                "error": record["error"],
            }
            for record, ratio in self.runs
        ]


def ratio_of(optimum: Optimum, record: Record) -> Ratio:
    """Ratio of one run, from its record."""
    return competitive_ratio(
        optimum,
        record.get("objective"),
        in_feasible_set=record.get("in_feasible_set", True),
        violations=len(record.get("violations", ())),
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None

"""What a comparison found: each algorithm's ratio on each instance, from the tasks' records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from hindsched.analysis.ratio import (
    INVERSE_NOTE,
    Interval,
    Optimum,
    Ratio,
    Sense,
    competitive_ratio,
    mean_ratio,
    optimum_of,
)
from hindsched.analysis.tables import RUN_FACTS, optimum_row, run_row, summary_row, text_table
from hindsched.analysis.tasks import OFFLINE, ONLINE, Record
from hindsched.errors import SolveFailed

if TYPE_CHECKING:
    import pandas as pd


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
    theorem : dict, optional
        ``{kind, value, assumptions}`` of the paper's own algorithm.
    """

    instance: str
    family: str
    algorithm: str
    settings: Mapping[str, Any]
    runs: Sequence[tuple[Record, Ratio]]
    theorem: Mapping[str, Any] | None = None

    @property
    def objective(self) -> float | None:
        """Mean objective over the seeds; None if a run failed."""
        found = [record.get("objective") for record, _ in self.runs]
        known = [value for value in found if value is not None]
        return fmean(known) if known and len(known) == len(found) else None

    @cached_property
    def ratio(self) -> Ratio:
        """Mean ratio and mean difference over the seeds."""
        if len(self.runs) == 1:
            return self.runs[0][1]
        ratios = [ratio for _, ratio in self.runs]
        mean, _, _ = mean_ratio(ratios)
        differences = [Ratio(ratio.difference, Interval()) for ratio in ratios]
        reasons = list(dict.fromkeys(ratio.reason for ratio in ratios if ratio.reason))
        return Ratio(mean, mean_ratio(differences)[0], "; ".join(reasons) or None)

    @property
    def errors(self) -> list[str]:
        """Why runs failed."""
        return [str(record["error"]) for record, _ in self.runs if record["status"] != "ok"]

    @property
    def in_feasible_set(self) -> bool:
        """False for a baseline that may do what the offline problem forbids."""
        return all(record.get("in_feasible_set", True) for record, _ in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """One entry of ``algorithms`` that ``ratio --json`` prints."""
        _, lower_spread, upper_spread = mean_ratio([ratio for _, ratio in self.runs])
        seeds = [
            {
                "seed": record["seed"],
                "objective": record.get("objective"),
                **ratio.to_dict(),
                "error": record["error"],
            }
            for record, ratio in self.runs
        ]
        facts = {name: _median(record.get(name) for record, _ in self.runs) for name in RUN_FACTS}
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


@dataclass(frozen=True)
class InstanceComparison:
    """All algorithms on one instance, against what is known of its optimum.

    Parameters
    ----------
    instance, family : str
        Name of the instance and the family's word.
    optimum : Optimum
        What is known of the optimum, from the offline solve and every feasible online schedule.
    offline : Record
        Record of the offline solve.
    algorithms : list of AlgorithmRatio
        In the order asked for.
    contradiction : str, optional
        A schedule that is better than a proven bound: one of the two is wrong.
    """

    instance: str
    family: str
    optimum: Optimum
    offline: Record
    algorithms: Sequence[AlgorithmRatio]
    contradiction: str | None = None

    def algorithm(self, name: str) -> AlgorithmRatio:
        """Find an algorithm by name; KeyError if it was not compared."""
        for row in self.algorithms:
            if row.algorithm == name:
                return row
        raise KeyError(name)

    @property
    def errors(self) -> list[str]:
        """Everything that failed, one line each."""
        lines = [] if self.offline["status"] == "ok" else [f"offline: {self.offline['error']}"]
        lines += [] if self.contradiction is None else [self.contradiction]
        for row in self.algorithms:
            lines += [f"{row.algorithm}: {line}" for line in row.errors]
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The object that ``ratio --json`` prints."""
        return {
            "instance": self.instance,
            "family": self.family,
            "optimum": self.optimum.to_dict(),
            "offline": {
                "method": self.offline.get("method"),
                "objective": self.offline.get("objective"),
                "bound": self.offline.get("bound"),
                "gap": self.offline.get("gap"),
                "seconds": self.offline.get("seconds"),
                "error": self.offline["error"],
            },
            "algorithms": [row.to_dict() for row in self.algorithms],
            "note": INVERSE_NOTE,
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a run, as a pandas frame."""
        return Comparison([self.offline, *self._online_records()]).to_frame()

    def __str__(self) -> str:
        return text_table([self])

    def __repr__(self) -> str:
        return str(self)

    def _online_records(self) -> list[Record]:
        return [record for row in self.algorithms for record, _ in row.runs]


@dataclass(frozen=True)
class Comparison:
    """Algorithms on many instances, from the records of the tasks that finished.

    Parameters
    ----------
    records : sequence of Record
        In the order of the tasks; an instance without a record of its offline solve is left out.
    """

    records: Sequence[Record] = field(repr=False)

    @cached_property
    def instances(self) -> list[InstanceComparison]:
        """One comparison per instance, in order."""
        offline = {item["instance"]: item for item in self.records if item["kind"] == OFFLINE}
        online: dict[str, list[Record]] = {}
        for record in self.records:
            if record["kind"] == ONLINE:
                online.setdefault(record["instance"], []).append(record)
        return [_compare_one(item, online.get(name, [])) for name, item in offline.items()]

    def __str__(self) -> str:
        return text_table(self.instances)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Notebooks show the summary as a table."""
        import pandas as pd

        return str(pd.DataFrame(self.summary_rows()).to_html(index=False, na_rep="-"))

    @property
    def errors(self) -> list[str]:
        """Everything that failed, one line each."""
        return [f"{item.instance}: {line}" for item in self.instances for line in item.errors]

    def summary_rows(self) -> list[dict[str, Any]]:
        """One row per family and algorithm over its instances.

        Returns
        -------
        list of dict
            ``family, algorithm, instances``; ``mean_lower, mean_upper``: mean of the lower and of
            the upper ends of the ratios; ``worst_lower, worst_upper``: the largest of them;
            ``without_ratio``: instances on which there is none, which the means leave out. An
            upper number is None if the optimum of one of the instances has no bound.
        """
        grouped: dict[tuple[str, str], list[AlgorithmRatio]] = {}
        for item in self.instances:
            for row in item.algorithms:
                grouped.setdefault((item.family, row.algorithm), []).append(row)
        return [summary_row(*key, found) for key, found in grouped.items()]

    def to_frame(self) -> pd.DataFrame:
        """Tidy table of runs: one row per (instance, algorithm, seed)."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for item in self.instances:
            for algorithm in item.algorithms:
                for record, ratio in algorithm.runs:
                    rows.append(run_row(item, algorithm, record, ratio))
        return pd.DataFrame(rows, columns=None if rows else ["family", "instance", "algorithm"])

    def optima_frame(self) -> pd.DataFrame:
        """Tidy table of offline solves: one row an instance."""
        import pandas as pd

        return pd.DataFrame([optimum_row(item) for item in self.instances])

    def job_frame(self) -> pd.DataFrame:
        """Tidy table of jobs: one row per (instance, algorithm, seed, job)."""
        return self._rows_frame("jobs")

    def slot_frame(self) -> pd.DataFrame:
        """Tidy table of use and prices: a row per (instance, algorithm, seed, slot, resource)."""
        return self._rows_frame("slots")

    def _rows_frame(self, key: str) -> pd.DataFrame:
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for record in self.records:
            who = {
                "family": record.get("family"),
                "instance": record["instance"],
                "algorithm": record["algorithm"] or "offline",
                "seed": record["seed"],
            }
            rows += [{**who, **row} for row in record.get(key, [])]
        return pd.DataFrame(rows, columns=None if rows else ["family", "instance", "algorithm"])


def _compare_one(offline: Record, online: Sequence[Record]) -> InstanceComparison:
    optimum, contradiction = _optimum(offline, online)
    grouped: dict[str, list[Record]] = {}
    for record in online:
        grouped.setdefault(record["algorithm"], []).append(record)
    rows = [
        AlgorithmRatio(
            instance=offline["instance"],
            family=offline.get("family", ""),
            algorithm=name,
            settings=records[0]["settings"],
            runs=[(record, _ratio_of(optimum, record)) for record in records],
            theorem=next((item["theorem"] for item in records if item.get("theorem")), None),
        )
        for name, records in grouped.items()
    ]
    family = offline.get("family", "")
    return InstanceComparison(offline["instance"], family, optimum, offline, rows, contradiction)


def _optimum(offline: Record, online: Sequence[Record]) -> tuple[Optimum, str | None]:
    sense: Sense = next((item["sense"] for item in (offline, *online) if "sense" in item), "max")
    optimum = optimum_of(
        sense,
        offline.get("objective"),
        offline.get("bound"),
        str(offline.get("solve_status", "failed")),
        certified=bool(offline.get("certified")),
    )
    solved = optimum
    for record in online:
        feasible = record["status"] == "ok" and record["in_feasible_set"]
        if feasible and not record["violations"]:
            try:
                optimum = optimum.improved(record["objective"], str(record["algorithm"]))
            except SolveFailed as error:
                return replace(solved, status="contradicted", proof="none"), str(error)
    return optimum, None


def _ratio_of(optimum: Optimum, record: Record) -> Ratio:
    return competitive_ratio(
        optimum,
        record.get("objective"),
        in_feasible_set=record.get("in_feasible_set", True),
        violations=len(record.get("violations", ())),
    )


def _median(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None

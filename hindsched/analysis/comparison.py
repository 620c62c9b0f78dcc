"""What a comparison found: each algorithm's ratio on each instance, from the tasks' records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from hindsched.analysis.algorithm_ratio import AlgorithmRatio, ratio_of
from hindsched.analysis.ratio import INVERSE_NOTE, STAR_NOTE, Optimum, Sense, optimum_of
from hindsched.analysis.records import Record
from hindsched.analysis.statistics import CONFIDENCE, paired_rows, profile_rows, summary_numbers
from hindsched.analysis.summary import SummaryRow, interval_of, summary_row
from hindsched.analysis.tasks import OFFLINE, ONLINE
from hindsched.analysis.verdict import verdicts
from hindsched.errors import InputError, SolveFailed
from hindsched.json_types import JsonObject
from hindsched.notebook_card import card

if TYPE_CHECKING:
    import pandas as pd


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

    def to_dict(self) -> JsonObject:
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

    def optimum_row(self) -> JsonObject:
        """One row of `Comparison.optima_frame`: what is known of the optimum."""
        facts = (
            "method", "formulation", "objective", "bound", "gap", "stopped_by", "seconds",
            "backend",
        )  # fmt: skip
        return {
            "family": self.family,
            "instance": self.instance,
            "lower": self.optimum.interval.lower,
            "upper": self.optimum.interval.upper,
            "status": self.optimum.status,
            "best": self.optimum.best,
            "proof": self.optimum.proof,
            **{name: self.offline.get(name) for name in facts},
            "error": self.offline["error"],
        }

    def lines(self) -> list[tuple[str, ...]]:
        """Cells of the text table: the optimum, then objective and ratio of each algorithm."""
        interval = self.optimum.interval
        optimum = f"optimum {'' if interval.is_point else 'in '}{interval}"
        lines: list[tuple[str, ...]] = [(self.instance, "(offline)", "", "", optimum)]
        for row in self.algorithms:
            objective = "-" if row.objective is None else f"{row.objective:.6g}"
            ratio = str(row.ratio.interval) if row.ratio.exists else "none"
            star = "*" if row.ratio.starred else ""
            note = "; ".join([*filter(None, [row.ratio.reason]), *row.errors])
            lines.append(("", row.label, objective, ratio + star, note))
        return lines

    def __str__(self) -> str:
        return _text_table([self])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Notebooks show the optimum and each algorithm's ratio."""
        facts = {
            "optimum in": self.optimum.interval,
            "status": f"{self.optimum.status} ({self.optimum.proof})",
        }
        rows = [
            {
                "algorithm": row.label + (" *" if row.ratio.starred else ""),
                "objective": row.objective,
                "ratio in": row.ratio.interval if row.ratio.exists else None,
                "OPT - ALG in": row.ratio.difference,
                "note": row.ratio.reason,
            }
            for row in self.algorithms
        ]
        return card(f"Ratios on {self.instance}", facts, rows, most=len(rows))

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
        return _text_table(self.instances)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Notebooks show the verdict, and each algorithm over its instances."""
        rows = [
            {
                "family": row["family"],
                "algorithm": row["label"] + (" *" if row["starred"] else ""),
                "instances": row["instances"],
                **{f"{name} ratio": interval_of(row, name) for name in ("median", "worst")},
            }
            for row in self.summary_rows()
        ]
        found = verdicts(self)
        note = " ".join(f"{item.sentence()} {item.proof()}" for item in found)
        return card("Comparison", rows=rows, note=note, most=len(rows))

    @property
    def errors(self) -> list[str]:
        """Everything that failed, one line each."""
        return [f"{item.instance}: {line}" for item in self.instances for line in item.errors]

    def summary_rows(self) -> list[SummaryRow]:
        """One row per family and algorithm over its instances.

        Returns
        -------
        list of dict
            Columns of `summary.summary_row`.
        """
        return [summary_row(*key, found) for key, found in self._by_algorithm().items()]

    def _by_algorithm(self) -> dict[tuple[str, str], list[AlgorithmRatio]]:
        grouped: dict[tuple[str, str], list[AlgorithmRatio]] = {}
        for item in self.instances:
            for row in item.algorithms:
                grouped.setdefault((item.family, row.algorithm), []).append(row)
        return grouped

    def summary_frame(self, confidence: float = CONFIDENCE) -> pd.DataFrame:
        """One row a family and algorithm: mean, median and worst ratio over the instances.

        Parameters
        ----------
        confidence : float
            Level of the interval of the mean, by the bootstrap over the instances.

        Returns
        -------
        DataFrame
            ``family, algorithm, commitment, starred`` and the numbers of
            `statistics.summary_numbers`; infinite ratios are counted apart.
        """
        import pandas as pd

        rows = [
            {
                "family": family,
                "algorithm": algorithm,
                "commitment": rows[0].commitment,
                "starred": any(row.ratio.starred for row in rows),
                **summary_numbers(rows, _level(confidence)),
            }
            for (family, algorithm), rows in self._by_algorithm().items()
        ]
        return pd.DataFrame(rows)

    def paired_frame(self, confidence: float = CONFIDENCE) -> pd.DataFrame:
        """Each two algorithms on the same instances, see `statistics.paired_rows`."""
        import pandas as pd

        level = _level(confidence)
        found = self.by_family().values()
        return pd.DataFrame([row for item in found for row in paired_rows(item, confidence=level)])

    def profile_frame(self) -> pd.DataFrame:
        """Performance profiles, see `statistics.profile_rows`."""
        import pandas as pd

        rows = [row for item in self.by_family().values() for row in profile_rows(item)]
        return pd.DataFrame(rows)

    def by_family(self) -> dict[str, dict[str, list[AlgorithmRatio]]]:
        """Ratios by family and algorithm."""
        found: dict[str, dict[str, list[AlgorithmRatio]]] = {}
        for (family, algorithm), rows in self._by_algorithm().items():
            found.setdefault(family, {})[algorithm] = rows
        return found

    def to_frame(self) -> pd.DataFrame:
        """Tidy table of runs: one row per (instance, algorithm, seed)."""
        import pandas as pd

        rows = [row for item in self.instances for found in item.algorithms for row in found.rows()]
        return pd.DataFrame(rows, columns=None if rows else ["family", "instance", "algorithm"])

    def optima_frame(self) -> pd.DataFrame:
        """Tidy table of offline solves: one row an instance."""
        import pandas as pd

        return pd.DataFrame([item.optimum_row() for item in self.instances])

    def job_frame(self) -> pd.DataFrame:
        """Tidy table of jobs: one row per (instance, algorithm, seed, job)."""
        return self._rows_frame("jobs")

    def slot_frame(self) -> pd.DataFrame:
        """Tidy table of use and prices: a row per (instance, algorithm, seed, slot, resource)."""
        return self._rows_frame("slots")

    def _rows_frame(self, key: Literal["jobs", "slots"]) -> pd.DataFrame:
        import pandas as pd

        rows: list[JsonObject] = []
        for record in self.records:
            who = {
                "family": record.get("family"),
                "instance": record["instance"],
                "algorithm": record["algorithm"] or "offline",
                "seed": record["seed"],
            }
            rows += [{**who, **row} for row in record.get(key, ())]
        return pd.DataFrame(rows, columns=None if rows else ["family", "instance", "algorithm"])


def _level(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise InputError("confidence", confidence, "must be above 0 and below 1")
    return confidence


def _compare_one(offline: Record, online: Sequence[Record]) -> InstanceComparison:
    optimum, contradiction = _optimum(offline, online)
    for_rivals, contradicted = _optimum_for_rivals(optimum, offline, online)
    grouped: dict[str, list[Record]] = {}
    for record in online:
        grouped.setdefault(str(record["algorithm"]), []).append(record)
    rows = [
        AlgorithmRatio(
            instance=offline["instance"],
            family=offline.get("family", ""),
            algorithm=name,
            settings=records[0]["settings"],
            runs=[(record, ratio_of(measure, record)) for record in records],
            optimum=measure,
            theorem=next((item["theorem"] for item in records if item.get("theorem")), None),
        )
        for name, records in grouped.items()
        for measure in [for_rivals if for_rivals and _are_rivals(records) else optimum]
    ]
    family = offline.get("family", "")
    contradiction = contradiction or contradicted
    return InstanceComparison(offline["instance"], family, optimum, offline, rows, contradiction)


def _are_rivals(records: Sequence[Record]) -> bool:
    """Whether all runs keep the rules that hold for rivals outside the feasible set."""
    return all(
        record["status"] == "ok"
        and not record["in_feasible_set"]
        and record.get("rival_violations") == 0
        for record in records
    )


def _optimum_for_rivals(
    optimum: Optimum, offline: Record, online: Sequence[Record]
) -> tuple[Optimum | None, str | None]:
    """What is known of the optimum of the problem that rivals solve; None without its bound.

    Every solution of the problem itself is one of that problem.
    """
    rivals = offline.get("rivals")
    bound = None if rivals is None else rivals["bound"]
    if bound is None:
        return None, None
    known = optimum.interval.lower if optimum.sense == "max" else optimum.interval.upper
    found = replace(
        optimum_of(optimum.sense, known, bound, "feasible", proof="checked fast"), for_rivals=True
    )
    for record in online:
        objective = record.get("objective")
        if objective is not None and _are_rivals([record]):
            try:
                found = found.improved(objective, str(record["algorithm"]))
            except SolveFailed as error:
                return None, str(error)
    return found, None


def _optimum(offline: Record, online: Sequence[Record]) -> tuple[Optimum, str | None]:
    sense: Sense = next((item["sense"] for item in (offline, *online) if "sense" in item), "max")
    optimum = optimum_of(
        sense,
        offline.get("objective"),
        offline.get("bound"),
        str(offline.get("solve_status", "failed")),
        proof=offline.get("proof") or ("checked fast" if offline.get("certified") else "solver"),
    )
    solved = optimum
    for record in online:
        objective = record.get("objective")
        feasible = record["status"] == "ok" and record["in_feasible_set"]
        if objective is not None and feasible and not record["violations"]:
            try:
                optimum = optimum.improved(objective, str(record["algorithm"]))
            except SolveFailed as error:
                return replace(solved, status="contradicted", proof="none"), str(error)
    return optimum, None


def _text_table(items: Sequence[InstanceComparison]) -> str:
    """Aligned lines, and what a star means where there is one."""
    lines: list[tuple[str, ...]] = [("instance", "algorithm", "objective", "ratio", "")]
    lines += [line for item in items for line in item.lines()]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    texts = [
        "  ".join(
            [*(text.ljust(width) for text, width in zip(line, widths, strict=False)), line[4]]
        ).rstrip()
        for line in lines
    ]
    starred = any(row.ratio.starred for item in items for row in item.algorithms)
    return "\n".join([*texts, *([STAR_NOTE] if starred else [])])

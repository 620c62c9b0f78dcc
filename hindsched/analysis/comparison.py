"""What a comparison found: each algorithm's ratio on each instance, from the tasks' records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hindsched.analysis import statistics as stats
from hindsched.analysis.bounds import ratio_text
from hindsched.analysis.ratio import INVERSE_NOTE, STAR_NOTE, AlgorithmRatio, Optimum, optimum_of
from hindsched.analysis.statistics import CONFIDENCE, FamilyVerdict, Summary
from hindsched.analysis.tasks import OFFLINE, ONLINE, Record
from hindsched.errors import SolveFailed
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    import pandas as pd

OPTIMUM_FACTS = (
    "method", "formulation", "objective", "bound", "gap", "stopped_by", "seconds", "backend",
    "error",
)  # fmt: skip


@dataclass(frozen=True)
class InstanceComparison:
    """All algorithms on one instance, against what is known of its optimum."""

    instance: str
    family: str
    optimum: Optimum  # from the offline solve and every feasible online schedule
    offline: Record  # of the offline solve
    algorithms: Sequence[AlgorithmRatio]  # in the order asked for
    contradiction: str | None = None  # a schedule better than a proven bound: one is wrong

    def algorithm(self, name: str) -> AlgorithmRatio:
        """Find an algorithm by name; KeyError if it was not compared."""
        return {row.algorithm: row for row in self.algorithms}[name]

    @property
    def errors(self) -> list[str]:
        """Everything that failed, one line each."""
        lines = [] if self.offline["status"] == "ok" else [f"offline: {self.offline['error']}"]
        lines += [] if self.contradiction is None else [self.contradiction]
        lines += [f"{row.algorithm}: {line}" for row in self.algorithms for line in row.errors]
        return lines

    def to_dict(self) -> JsonObject:
        """The object that ``ratio --json`` prints."""
        facts = ("method", "objective", "bound", "gap", "seconds", "error")
        return {
            "instance": self.instance,
            "family": self.family,
            "optimum": self.optimum.to_dict(),
            "offline": {name: self.offline.get(name) for name in facts},
            "algorithms": [row.to_dict() for row in self.algorithms],
            "note": INVERSE_NOTE,
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a run, as a pandas frame."""
        return _table([row for each in self.algorithms for row in each.rows()])

    def is_better(self, first: str, second: str) -> bool:
        """Whether one algorithm's mean objective is better than another's, if both have one."""
        objectives = {row.algorithm: row.objective for row in self.algorithms}
        value, rival = objectives.get(first), objectives.get(second)
        if value is None or rival is None:
            return False
        return value > rival if self.optimum.sense == "max" else value < rival

    def lines(self) -> list[tuple[str, ...]]:
        """Cells of the text table: the optimum, then objective and ratio of each algorithm."""
        interval = self.optimum.interval
        optimum = f"optimum {'' if interval.is_point else 'in '}{interval}"
        lines: list[tuple[str, ...]] = [(self.instance, "(offline)", "", "", optimum)]
        for row in self.algorithms:
            objective = "-" if row.objective is None else f"{row.objective:.6g}"
            ratio = ratio_text(row.ratio.interval)
            drawn = f"mean over {len(row.runs)} seeds" if len(row.runs) > 1 else None
            note = "; ".join([*filter(None, [drawn, row.ratio.reason]), *row.errors])
            lines.append(("", row.label, objective, ratio + "*" * row.ratio.starred, note))
        return lines

    def __str__(self) -> str:
        return _text_table([self])

    __repr__ = __str__


@dataclass(frozen=True)
class Comparison:
    """Algorithms on many instances, from the records of the tasks that finished.

    An instance without a record of its offline solve is left out.
    """

    records: Sequence[Record] = field(repr=False)  # in the order of the tasks

    @cached_property
    def instances(self) -> list[InstanceComparison]:
        """One comparison per instance, in order."""
        online: dict[str, list[Record]] = {}
        for record in self.records:
            if record["kind"] == ONLINE:
                online.setdefault(record["instance"], []).append(record)
        return [
            _instance_comparison(item, online.get(item["instance"], []))
            for item in self.records
            if item["kind"] == OFFLINE
        ]

    def __str__(self) -> str:
        return _text_table(self.instances)

    __repr__ = __str__

    @property
    def errors(self) -> list[str]:
        """Everything that failed, one line each."""
        return [f"{item.instance}: {line}" for item in self.instances for line in item.errors]

    @cached_property
    def by_family(self) -> dict[str, dict[str, list[AlgorithmRatio]]]:
        """Ratios by family and algorithm."""
        families: dict[str, dict[str, list[AlgorithmRatio]]] = {}
        for item in self.instances:
            ratios = families.setdefault(item.family, {})
            for row in item.algorithms:
                ratios.setdefault(row.algorithm, []).append(row)
        return families

    @cached_property
    def summaries(self) -> list[Summary]:
        """One per family and algorithm, over its instances."""
        return [
            stats.summary(rows) for ratios in self.by_family.values() for rows in ratios.values()
        ]

    def verdicts(self) -> list[FamilyVerdict]:
        """The verdict on each family, in their order."""
        verdicts = []
        for family in self.by_family:
            items = [item for item in self.instances if item.family == family]
            summaries = [each for each in self.summaries if each.family == family]
            online = stats.ranked([each for each in summaries if each.is_online])
            ahead = [each.algorithm for each in online[:2]]
            verdict = FamilyVerdict(
                family,
                ranking=online,
                optima=[item.optimum for item in items],
                paper=next((each for each in summaries if each.algorithm == family), None),
                left_out=[each.label for each in summaries if not each.keeps_rules],
                is_ahead=len(ahead) == 2 and all(item.is_better(*ahead) for item in items),
            )
            verdicts.append(verdict)
        return verdicts

    def paired_frame(self, confidence: float = CONFIDENCE) -> pd.DataFrame:
        """Each two algorithms on the instances that both finished.

        Returns
        -------
        DataFrame
            ``family, algorithm, rival, instances``; ``better, worse, ties``: on how many instances;
            ``advantage``: geometric mean of how many times better the algorithm's objective is (1
            is equal), with ``advantage_lower, advantage_upper``, its bootstrap interval at the
            ``level``, None where an objective is not positive; ``wilcoxon_p``: two-sided signed
            ranks of the logarithms, or of the differences then; ``holm_p``: the same corrected by
            Holm over all pairs of the family; ``winner`` if that is at most 1 - ``level``.
        """
        families = self.by_family.values()
        return _table([row for ratios in families for row in stats.paired_rows(ratios, confidence)])

    def standing_rows(self, family: str) -> list[dict[str, Any]]:
        """A row an algorithm: whom it beats and who beats it for certain; none if nobody does."""
        labels = {each.algorithm: each.label for each in self.summaries if each.family == family}
        return stats.standing_rows(self.by_family[family], labels)

    def to_frame(self) -> pd.DataFrame:
        """Tidy table of runs: one row per (instance, algorithm, seed)."""
        return _table(
            [row for item in self.instances for each in item.algorithms for row in each.rows()]
        )

    def optima_frame(self) -> pd.DataFrame:
        """Tidy table of offline solves: one row an instance."""
        return _table([
            {
                "family": item.family, "instance": item.instance,
                "lower": item.optimum.interval.lower, "upper": item.optimum.interval.upper,
                "status": item.optimum.status, "best": item.optimum.best,
                "proof": item.optimum.proof, **{k: item.offline.get(k) for k in OPTIMUM_FACTS},
            }
            for item in self.instances
        ])  # fmt: skip

    def job_frame(self) -> pd.DataFrame:
        """Tidy table of jobs: one row per (instance, algorithm, seed, job)."""
        return self._rows_frame("jobs")

    def slot_frame(self) -> pd.DataFrame:
        """Tidy table of use and prices: a row per (instance, algorithm, seed, slot, resource)."""
        return self._rows_frame("slots")

    def _rows_frame(self, key: str) -> pd.DataFrame:
        return _table([
            {"family": record.get("family"), "instance": record["instance"],
             "algorithm": record["algorithm"] or "offline", "seed": record["seed"], **row}
            for record in self.records for row in record.get(key, ())
        ])  # fmt: skip


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=None if rows else ["family", "instance", "algorithm"])


def _instance_comparison(offline: Record, online: Sequence[Record]) -> InstanceComparison:
    sense: Any = next((item["sense"] for item in (offline, *online) if "sense" in item), "max")
    proof = str(offline.get("proof", "none"))
    status = str(offline.get("solve_status", "failed"))
    solved = optimum_of(sense, offline.get("objective"), offline.get("bound"), status, proof=proof)
    feasible = [
        item for item in online
        if item["status"] == "ok" and item["in_feasible_set"] and not item["violations"]
    ]  # fmt: skip
    optimum, contradiction = _improved(solved, feasible)
    if contradiction is not None:
        optimum = replace(solved, status="contradicted", proof="none")
    grouped: dict[str, list[Record]] = {}
    for record in online:
        grouped.setdefault(str(record["algorithm"]), []).append(record)
    name, family, rows = offline["instance"], offline.get("family", ""), []
    for records in grouped.values():
        rows.append(AlgorithmRatio.of(name, family, records, optimum))
    return InstanceComparison(name, family, optimum, offline, rows, contradiction)


def _improved(optimum: Optimum, records: Sequence[Record]) -> tuple[Optimum, str | None]:
    """What is known of an optimum beside these schedules of its problem; what contradicts it."""
    for record in records:
        try:
            optimum = optimum.improved(record["objective"], str(record["algorithm"]))
        except SolveFailed as error:
            return optimum, str(error)
    return optimum, None


def _text_table(items: Sequence[InstanceComparison]) -> str:
    """Aligned lines, and what a star means where there is one."""
    lines = [("instance", "algorithm", "objective", "ratio", "")]
    lines += [line for item in items for line in item.lines()]  # type: ignore[misc]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    texts = ["  ".join([*map(str.ljust, line, widths), line[4]]).rstrip() for line in lines]
    starred = any(row.ratio.starred for item in items for row in item.algorithms)
    return "\n".join([*texts, *([STAR_NOTE] if starred else [])])

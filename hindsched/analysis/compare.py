"""Comparing online algorithms with the offline optimum, on one instance or many."""

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
from hindsched.analysis.sweep import run_tasks
from hindsched.analysis.tasks import DEFAULT_SEEDS, OFFLINE, ONLINE, Record, plan_tasks
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance

if TYPE_CHECKING:
    import pandas as pd

RUN_FACTS = (
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
        return _text_table([self])

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
        return [_summary_row(*key, found) for key, found in grouped.items()]

    def to_frame(self) -> pd.DataFrame:
        """Tidy table of runs: one row per (instance, algorithm, seed)."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for item in self.instances:
            for algorithm in item.algorithms:
                for record, ratio in algorithm.runs:
                    rows.append(_run_row(item, algorithm, record, ratio))
        return pd.DataFrame(rows, columns=None if rows else ["family", "instance", "algorithm"])

    def optima_frame(self) -> pd.DataFrame:
        """Tidy table of offline solves: one row an instance."""
        import pandas as pd

        return pd.DataFrame([_optimum_row(item) for item in self.instances])

    def job_frame(self) -> pd.DataFrame:
        """Tidy table of jobs: one row per (instance, algorithm, seed, job)."""
        return self._rows_frame("jobs")

    def slot_frame(self) -> pd.DataFrame:
        """Tidy table of use: one row per (instance, algorithm, seed, slot, resource)."""
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


def compare(
    instances: Instance | Sequence[Instance],
    algorithms: Sequence[str] | None = None,
    *,
    seeds: int = DEFAULT_SEEDS,
    first_seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    method: str = "auto",
    workers: int = 0,
    progress: bool = True,
    **options: Any,
) -> Comparison:
    """Solve or bound each instance, run the algorithms and compare.

    Parameters
    ----------
    instances : Instance or sequence of Instance
        What to compare on.
    algorithms : sequence of str, optional
        Names; None for all of the family.
    seeds : int
        Seeds of each randomised algorithm; the others run once.
    first_seed : int
        The first seed.
    settings : mapping, optional
        Settings, each handed to every algorithm that has it.
    method : str
        Method of the offline solves.
    workers : int
        Local processes; 0 for this one.
    progress : bool
        Whether to show a bar on standard error.
    **options
        Options of the offline solves, for example ``time_limit=60``.

    Raises
    ------
    InputError
        For an unknown algorithm, setting, method or option.

    Examples
    --------
    >>> import hindsched as hs
    >>> frame = hs.compare(hs.generate("oasis"), ["oasis", "fifo"]).to_frame()  # doctest: +SKIP
    """
    chosen = [instances] if isinstance(instances, Instance) else list(instances)
    tasks = plan_tasks(
        chosen,
        algorithms,
        seeds=seeds,
        first_seed=first_seed,
        settings=settings,
        offline={"method": method, **options},
    )
    stop = len(chosen) > 1
    if not progress:
        records = run_tasks(tasks, chosen, workers=workers, stop_when_interrupted=stop)
        return Comparison(records)
    from hindsched.analysis.progress import progress_bar

    with progress_bar(len(tasks), "comparing") as advance:
        records = run_tasks(
            tasks,
            chosen,
            workers=workers,
            on_record=lambda item: advance(item["task"]),
            stop_when_interrupted=stop,
        )
    return Comparison(records)


def ratio(
    instance: Instance, algorithms: Sequence[str] | None = None, **arguments: Any
) -> InstanceComparison:
    """Competitive-ratio intervals on one instance; the arguments are those of `compare`.

    Raises
    ------
    SolveFailed
        If the offline solve failed, or a schedule is better than a proven bound.
    """
    comparison = compare(instance, algorithms, **arguments).instances[0]
    if comparison.offline["status"] != "ok":
        failure = SolveFailed(str(comparison.offline["error"]))
        failure.exit_code = comparison.offline.get("exit_code", failure.exit_code)
        raise failure
    if comparison.contradiction is not None:
        raise SolveFailed(comparison.contradiction)
    return comparison


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


def _summary_row(family: str, algorithm: str, found: Sequence[AlgorithmRatio]) -> dict[str, Any]:
    intervals = [row.ratio.interval for row in found if row.ratio.exists]
    mean, lower_spread, upper_spread = mean_ratio([Ratio(item, Interval()) for item in intervals])
    return {
        "family": family,
        "algorithm": algorithm,
        "instances": len(found),
        "mean_lower": mean.lower,
        "mean_upper": mean.upper,
        "worst_lower": lower_spread.upper,
        "worst_upper": upper_spread.upper,
        "without_ratio": len(found) - len(intervals),
    }


def _run_row(
    item: InstanceComparison, algorithm: AlgorithmRatio, record: Record, ratio: Ratio
) -> dict[str, Any]:
    return {
        "family": item.family,
        "instance": item.instance,
        "algorithm": algorithm.algorithm,
        "seed": record["seed"],
        "settings": ", ".join(f"{key}={value}" for key, value in record["settings"].items()),
        "objective": record.get("objective"),
        "ratio_lower": ratio.interval.lower,
        "ratio_upper": ratio.interval.upper,
        "difference_lower": ratio.difference.lower,
        "difference_upper": ratio.difference.upper,
        "reason": ratio.reason,
        "optimum_lower": item.optimum.interval.lower,
        "optimum_upper": item.optimum.interval.upper,
        "optimum_status": item.optimum.status,
        "theorem": None if not record.get("theorem") else record["theorem"]["value"],
        "in_feasible_set": record.get("in_feasible_set"),
        "violations": len(record.get("violations", ())),
        **{name: record.get(name) for name in RUN_FACTS},
        "error": record["error"],
    }


def _optimum_row(item: InstanceComparison) -> dict[str, Any]:
    offline = item.offline
    facts = (
        "method",
        "formulation",
        "objective",
        "bound",
        "gap",
        "stopped_by",
        "seconds",
        "backend",
    )
    return {
        "family": item.family,
        "instance": item.instance,
        "lower": item.optimum.interval.lower,
        "upper": item.optimum.interval.upper,
        "status": item.optimum.status,
        "best": item.optimum.best,
        "proof": item.optimum.proof,
        **{name: offline.get(name) for name in facts},
        "error": offline["error"],
    }


def _text_table(items: Sequence[InstanceComparison]) -> str:
    """Aligned lines: optimum of each instance, then objective and ratio of each algorithm."""
    lines = [("instance", "algorithm", "objective", "ratio", "")]
    for item in items:
        optimum = item.optimum
        lines.append((item.instance, "(offline)", "", "", f"optimum in {optimum.interval}"))
        for row in item.algorithms:
            objective = "-" if row.objective is None else f"{row.objective:.6g}"
            interval = str(row.ratio.interval) if row.ratio.exists else "none"
            lines.append(("", row.algorithm, objective, interval, row.ratio.reason or ""))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(
        "  ".join(
            [*(text.ljust(width) for text, width in zip(line, widths, strict=False)), line[4]]
        ).rstrip()
        for line in lines
    )


def _median(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None

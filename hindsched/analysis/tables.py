"""The tables of a comparison: tidy rows for frames and files, and aligned text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hindsched.analysis.ratio import Interval, Ratio, mean_ratio

if TYPE_CHECKING:
    from hindsched.analysis.comparison import AlgorithmRatio, InstanceComparison
    from hindsched.analysis.tasks import Record

RUN_FACTS = (
    "jobs_completed", "jobs_rejected", "decision_ms_median", "decision_ms_max", "seconds",
)  # fmt: skip


def summary_row(family: str, algorithm: str, found: Sequence[AlgorithmRatio]) -> dict[str, Any]:
    """One row of `Comparison.summary_rows`: an algorithm over its instances."""
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


def run_row(
    item: InstanceComparison, algorithm: AlgorithmRatio, record: Record, ratio: Ratio
) -> dict[str, Any]:
    """One row of `Comparison.to_frame`: a run and its ratio."""
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


def optimum_row(item: InstanceComparison) -> dict[str, Any]:
    """One row of `Comparison.optima_frame`: what is known of an instance's optimum."""
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


def text_table(items: Sequence[InstanceComparison]) -> str:
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

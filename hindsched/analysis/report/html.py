"""One self-contained HTML page from a result store: tables, pictures, proofs, versions."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hindsched.analysis.algorithm_ratio import AlgorithmRatio
from hindsched.analysis.comparison import Comparison, InstanceComparison
from hindsched.analysis.plots.ratios import plot_ratios
from hindsched.analysis.plots.style import render
from hindsched.analysis.ratio import INVERSE_NOTE
from hindsched.analysis.report.drawings import gantt_svg, utilisation_svg
from hindsched.analysis.store import REPORT, ResultStore
from hindsched.instances.base import Instance
from hindsched.instances.io import write_text
from hindsched.solutions.base import read_solution

JOBS_DRAWN = 80
PROOFS = {
    "certificate": "prices in the result store prove the bound, hindsched verify recomputes it",
    "solver": "the solver's word for the bound",
    "none": "no bound",
}


def write_report(store: ResultStore) -> Path:
    """Write ``report.html`` of a store from what the store holds, and return its path."""
    path = store.folder / REPORT
    write_text(render_report(store), path)
    return path


def render_report(store: ResultStore) -> str:
    """Make the page as text."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("hindsched.analysis.report", "."), autoescape=True, trim_blocks=True
    )
    environment.filters |= {"number": show_number, "percent": show_percent}
    comparison = Comparison(store.records())
    instances = {instance.name: instance for instance in store.instances()}
    families = list(dict.fromkeys(item.family for item in comparison.instances))
    summary = comparison.summary_rows()
    sections = [
        {
            "family": family,
            "summary": [row for row in summary if row["family"] == family],
            "ratios": _ratio_picture(comparison, family),
            "instances": [
                _instance_section(store, item, instances[item.instance])
                for item in comparison.instances
                if item.family == family
            ],
        }
        for family in families
    ]
    return environment.get_template("report.html").render(
        title=store.folder.name,
        overview=[_overview(family, comparison) for family in families],
        sections=sections,
        errors=comparison.errors,
        missing=[task.key for task in store.missing()],
        tasks=len(store.tasks),
        created=store.manifest["created"],
        settings=store.manifest["settings"],
        versions=store.manifest["versions"],
        hashes=store.manifest["instances"],
        note=INVERSE_NOTE,
        proofs=PROOFS,
    )


def show_number(value: Any) -> str:
    """Write a number for a table: four digits, absent is a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def show_percent(share: float | None) -> str:
    """Write a share as a percentage; absent is a dash."""
    return "–" if share is None else f"{share:.2%}"


def _overview(family: str, comparison: Comparison) -> dict[str, Any]:
    """How much is proven of a family's optima."""
    optima = [item.optimum for item in comparison.instances if item.family == family]
    proofs = [optimum.proof for optimum in optima if optimum.is_proven]
    gaps = [optimum.gap for optimum in optima]
    return {
        "family": family,
        "instances": len(optima),
        "by_certificate": proofs.count("certificate"),
        "by_solver": proofs.count("solver"),
        "open": len(optima) - len(proofs),
        "largest_gap": None if None in gaps else max(gap for gap in gaps if gap is not None),
    }


def _instance_section(
    store: ResultStore, item: InstanceComparison, instance: Instance
) -> dict[str, Any]:
    rows = [
        {
            "label": row.label,
            "objective": row.objective,
            "ratio": row.ratio,
            "seeds": len(row.runs),
            "spread": _spread(row),
            "completed": _mean_fact(row, "jobs_completed"),
            "decision_ms": _mean_fact(row, "decision_ms_median"),
            "theorem": row.theorem,
            "marked": not row.in_feasible_set,
        }
        for row in item.algorithms
    ]
    return {
        "item": item,
        "jobs": len(instance.jobs),
        "horizon": instance.horizon,
        "sense": instance.sense,
        "gap": item.optimum.gap,
        "rows": rows,
        "pictures": _pictures(store, item, instance),
    }


def _pictures(
    store: ResultStore, item: InstanceComparison, instance: Instance
) -> list[Mapping[str, Any]]:
    """Offline schedule beside that of the first algorithm, where there are not too many jobs."""
    from markupsafe import Markup

    if len(instance.jobs) > JOBS_DRAWN:
        return []
    records = [item.offline, *(row.runs[0][0] for row in item.algorithms[:1])]
    found: list[Mapping[str, Any]] = []
    for record in records:
        path = store.solution_file(record)
        if path is None:
            continue
        solution = read_solution(path, instance)
        name = record["algorithm"] or f"offline ({record.get('method')})"
        found.append(
            {
                "caption": f"{name}: when jobs run (darker: more workers)",
                "svg": Markup(gantt_svg(solution)),
            }
        )
        if solution.usage_rows():
            caption = f"{name}: how full servers are"
            found.append({"caption": caption, "svg": Markup(utilisation_svg(solution))})
    return found


def _ratio_picture(comparison: Comparison, family: str) -> str:
    return _inline(plot_ratios(comparison, family=family).figure)


def _inline(figure: Any) -> str:
    data = base64.b64encode(render(figure, "png")).decode("ascii")
    return f"data:image/png;base64,{data}"


def _spread(row: AlgorithmRatio) -> str:
    """Smallest to largest ratio end over the seeds."""
    ends = [
        end
        for _, ratio in row.runs
        for end in (ratio.interval.lower, ratio.interval.upper)
        if end is not None
    ]
    return f"{min(ends):.4g} to {max(ends):.4g}" if len(row.runs) > 1 and ends else ""


def _mean_fact(row: AlgorithmRatio, name: str) -> float | None:
    values: Sequence[float] = [
        record[name] for record, _ in row.runs if record.get(name) is not None
    ]
    return sum(values) / len(values) if values else None

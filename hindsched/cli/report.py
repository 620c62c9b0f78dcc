"""``hindsched report``, and the tables that ``bench`` prints."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

from hindsched.cli import settings as opt
from hindsched.cli.output import console, emit_json, say, show_rows, tell

if TYPE_CHECKING:
    from hindsched.analysis.comparison import Comparison
    from hindsched.analysis.store import ResultStore

RATIO_LEGEND = """\
on: number of instances; [at least, at most] of a ratio, 1 is perfect; median, worst: over
the instances; inf: earns nothing; proof: who vouches
for the bound; gap: between the ends of the optimum, of which the best schedule is one;
-: no bound; better than, worse than: for certain at 5 %, by signed ranks of objectives,
corrected by Holm for all pairs"""
MOST_COLUMNS = 100  # of a table; a wider one is folded, also in a pipe


def report(folder: Annotated[str, opt.argument("Folder of results of `hindsched bench`.")]) -> int:
    """Rebuild the tables and the HTML report from a folder of results.

    Every record, schedule and certificate is compared with the hash in the manifest. What is
    damaged is named, left out, and exit code 1.
    """
    from hindsched.analysis.compare import write_all
    from hindsched.analysis.store import ResultStore

    store = ResultStore.open(folder)
    damages = store.damages()
    comparison = write_all(store)
    show(comparison, store)
    total = len(comparison.records)
    say(f"{total} records compared with their hashes; hindsched verify {folder} recomputes them")
    for task, what in damages.items():
        say(f"damaged: {task}: {what}")
    again = f"hindsched bench --resume --out {shlex.quote(folder)}"
    if damages:
        say(f"{again} makes them again")
    elif total < len(store.tasks):
        say(f"{len(store.tasks) - total} of {len(store.tasks)} tasks have no record: {again}")
    return 1 if damages else 0


def show(comparison: Comparison, store: ResultStore, *, as_json: bool = False) -> None:
    """Print what a comparison found, and where its page is."""
    from hindsched.analysis.bounds import ratio_text
    from hindsched.analysis.ratio import STAR_NOTE
    from hindsched.analysis.store import REPORT
    from hindsched.instances.catalogue import shown_name

    path = store.folder / REPORT
    for line in comparison.errors:
        say(f"failed: {line}")
    if as_json:
        missing = len(store.missing(comparison.records))
        emit_json({
            "out": str(store.folder), "report": str(path), "tasks": len(store.tasks),
            "missing": missing, "failed": comparison.errors,
            "instances": [item.to_dict() for item in comparison.instances],
        })  # fmt: skip
        return
    names = {item.name: shown_name(item) for item in store.instances}
    width = min(console("stdout").width, MOST_COLUMNS)
    for family in comparison.by_family:
        optima = [
            {"instance": names[item.instance], "optimum in": str(item.optimum.interval),
             "status": item.optimum.status, "proof": item.optimum.proof,
             "gap": None if item.optimum.gap is None else f"{item.optimum.gap:.2%}",
             "seconds": item.offline.get("seconds")}
            for item in comparison.instances if item.family == family
        ]  # fmt: skip
        show_rows(f"{family}: optima", optima, width=width)
        ratios = [
            {"algorithm": s.label, "on": s.instances, "median ratio": ratio_text(s.median),
             "worst ratio": ratio_text(s.worst), "note": s.note}
            for s in comparison.summaries if s.family == family
        ]  # fmt: skip
        show_rows(f"{family}: competitive ratios", ratios, width=width)
        if len(ratios) > 1 and len(optima) > 1:
            standings = comparison.standing_rows(family)
            if standings:
                show_rows(f"{family}: who is better than whom", standings, width=width)
            else:
                tell(f"{family}: {len(optima)} instances tell no two algorithms apart (at 5 %)")
    tell(RATIO_LEGEND)
    if any(s.starred for s in comparison.summaries):
        say(STAR_NOTE)
    tell(f"report: {path}")
    for line in (line for verdict in comparison.verdicts() for line in verdict.lines()):
        tell(line, width=width)

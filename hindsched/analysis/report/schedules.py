"""Schedules as compact data that the page draws: bars, how full servers are, prices, the gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from hindsched.analysis.plots.prices import price_lines
from hindsched.analysis.plots.utilisation import utilisation
from hindsched.analysis.records import Record
from hindsched.analysis.spans import job_spans
from hindsched.errors import InputError
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Solution
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.certificates.explain import Explainer

SERVERS_DRAWN = 60
STRIPS_DRAWN = 6
TERMS_SHOWN = 8
LEAST_SHARE = 1e-3
"""Terms that hold less of a gap are not shown."""


def schedule_data(solution: Solution, record: Record, explainer: Explainer | None) -> JsonObject:
    """Everything the page shows of one schedule.

    Parameters
    ----------
    solution : Solution
        The schedule.
    record : Record
        Of the task that found it: its posted prices.
    explainer : Explainer, optional
        Of a bound of the same instance, against which the schedule's loss is explained.

    Returns
    -------
    dict
        ``name, arrive, done`` by job; ``spans``: first, last, workers, one after the other, by job;
        ``end``: last slot; ``use``: how full each server is, see `use_data`; ``strips``: posted
        prices by resource; ``gap``: see `gap_data`.
    """
    rows = solution.job_rows()
    spans = job_spans(solution)
    own = [spans.get(row["job"], []) for row in rows]
    last = max([solution.instance.horizon, *(span.last for item in own for span in item)])
    return {
        "name": [str(row["job"]) for row in rows],
        "arrive": [row["arrival"] for row in rows],
        "done": [row["completion"] for row in rows],
        "spans": [[n for s in item for n in (s.first, s.last, short(s.workers))] for item in own],
        "end": last,
        "use": use_data(solution),
        "strips": posted_strips(record, last),
        "gap": None if explainer is None else gap_data(solution, explainer),
    }


def use_data(solution: Solution) -> JsonObject | None:
    """How full servers are with the fullest resource: per cent and number of slots, in turns."""
    try:
        resource, servers, share = utilisation(solution)
    except InputError:  # the instance has no capacity
        return None
    rows = []
    for line in share[:SERVERS_DRAWN]:
        turns = [(value, len(list(run))) for value, run in groupby(line.tolist())]
        rows.append([number for value, length in turns for number in (round(100 * value), length)])
    return {
        "resource": resource,
        "of": solution.capacity_name,
        "mean": round(100 * float(share.mean())),
        "servers": servers[:SERVERS_DRAWN],
        "hidden": max(0, len(servers) - SERVERS_DRAWN),
        "rows": rows,
    }


def posted_strips(record: Record, last: int) -> list[JsonObject]:
    """Prices that an algorithm posted, a value a slot and resource."""
    found: dict[str, list[float]] = {}
    for row in record.get("slots", ()):
        if row["price"] is not None and row["slot"] <= last:
            path = found.setdefault(f"{row['resource']}: posted price", [0.0] * last)
            path[row["slot"] - 1] = row["price"]
    return _strips({name: (1, path) for name, path in found.items()})


def worth_strips(certificate: Certificate) -> list[JsonObject]:
    """What capacity is worth in each slot by the prices of a certificate."""
    worth: dict[str, tuple[int, list[float]]] = {}
    for name, (slots, path) in price_lines(certificate).items():
        rows, _, resource = name.partition(": ")
        worth[f"{resource}: worth of {rows}" if resource else f"worth of {rows}"] = (
            slots[0],
            path.tolist(),
        )
    return _strips(worth)


def _strips(lines: Mapping[str, tuple[int, Sequence[float]]]) -> list[JsonObject]:
    """The largest lines as data of the page; what is 0 everywhere is left out."""
    largest = sorted(lines, key=lambda name: -sum(abs(value) for value in lines[name][1]))
    return [
        {"name": name, "from": int(lines[name][0]), "values": [short(v) for v in lines[name][1]]}
        for name in largest[:STRIPS_DRAWN]
        if any(lines[name][1])
    ]


def gap_data(solution: Solution, explainer: Explainer) -> JsonObject:
    """Where a schedule loses against a bound: totals and the largest terms, or why not known."""
    try:
        found = explainer.explain(solution)
    except InputError as error:
        return {"reason": str(error)}
    terms = [row for row in found.terms() if row["kind"] != "rounding"]
    labels, _, matrix = found.heat_map()
    sums = matrix.sum(axis=1).tolist()
    places = sorted(zip(labels, sums, strict=True), key=lambda item: -item[1])
    return {
        "gap": short(found.gap),
        "bound": short(found.bound),
        "jobs": [
            [row["name"], short(row["term"]), short(row["share"])]
            for row in terms
            if row["kind"] == "job" and row["share"] >= LEAST_SHARE
        ][:TERMS_SHOWN],
        "places": [
            [name, short(term), short(term / found.gap if found.gap else 0.0)]
            for name, term in places[:TERMS_SHOWN]
            if term > LEAST_SHARE * found.gap
        ],
        "from_jobs": short(float(found.job_terms.sum())),
        "from_idle": short(float(found.row_terms.sum())),
        "note": found.note,
    }


def short(number: float) -> float | int:
    """A number with five digits, whole where it is whole: what a picture needs."""
    rounded = float(f"{number:.5g}")
    return int(rounded) if rounded.is_integer() else rounded

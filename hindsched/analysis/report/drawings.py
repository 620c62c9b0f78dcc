"""Small pictures of a schedule as inline SVG: quick to make, sharp, with a tooltip on every bar."""

from __future__ import annotations

from html import escape
from itertools import groupby

from hindsched.analysis.plots.utilisation import utilisation
from hindsched.analysis.spans import job_spans
from hindsched.solutions.base import Solution

LIGHT, DARK = (222, 235, 247), (8, 48, 107)
GREY = "#8A8A8A"
INK = "currentColor"
"""The page's own, so that pictures can be read on light and on dark."""
ROW, LABELS, PLOT, AXIS = 14, 90, 520, 34
"""Pixels: height of a row, width of the labels, width of the plot, height of the axis."""
TICKS = 10
ROWS_DRAWN = 100


def gantt_svg(solution: Solution) -> str:
    """Draw when each job runs; the darker a bar, the more workers are at work."""
    found = job_spans(solution)
    jobs = [(row, found.get(row["job"], [])) for row in solution.job_rows()]
    ends = [span.last for _, spans in jobs for span in spans]
    last = max([solution.instance.horizon, *ends])
    most = max((span.workers for _, spans in jobs for span in spans), default=1.0)
    unit = PLOT / last
    parts: list[str] = []
    for place, (row, spans) in enumerate(jobs):
        name, top = str(row["job"]), place * ROW
        arrival, completion = row["arrival"], row["completion"]
        parts.append(_label(name, top, INK if completion is not None else GREY))
        left = LABELS + (arrival - 1) * unit
        if completion is not None:
            right = LABELS + completion * unit
            middle = top + ROW / 2
            parts.append(
                f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}" '
                f'stroke="{GREY}"/>'
            )
        for span in spans:
            what = f"{name}: slots {span.first}-{span.last}, {span.workers:g} workers"
            x, width = LABELS + (span.first - 1) * unit, (span.last - span.first + 1) * unit
            parts.append(_bar(x, top + 1, width, ROW - 2, span.workers / most, what))
        parts.append(
            f'<path d="M{left:.1f} {top + 3} l5 4 l-5 4 z" stroke="#fff" stroke-width=".6">'
            f"<title>{escape(name)} arrives in slot {arrival}</title></path>"
        )
    return _frame(parts, len(jobs), last, "slot (triangle: arrival; grey: not completed)")


def utilisation_svg(solution: Solution) -> str:
    """Draw used over capacity of the fullest resource by server and slot; dark is full."""
    resource, servers, share = utilisation(solution)
    last = share.shape[1]
    unit = PLOT / last
    parts: list[str] = []
    for place, server in enumerate(servers[:ROWS_DRAWN]):
        top = place * ROW
        parts.append(_label(server, top, INK))
        slot = 1
        for value, run in groupby(share[place].tolist()):
            length = len(list(run))
            what = f"{server}: slots {slot}-{slot + length - 1}, {value:.0%} of {resource}"
            x = LABELS + (slot - 1) * unit
            parts.append(_bar(x, top, length * unit, ROW, value, what))
            slot += length
    hidden = len(servers) - ROWS_DRAWN
    note = f"; {hidden} more servers not drawn" if hidden > 0 else ""
    title = (
        f"slot ({resource}, {float(share.mean()):.0%} of {solution.capacity_name} on average{note})"
    )
    return _frame(parts, min(len(servers), ROWS_DRAWN), last, title)


def _bar(x: float, y: float, width: float, height: float, share: float, what: str) -> str:
    share = min(1.0, max(0.0, share))
    red, green, blue = (
        round(light + share * (dark - light)) for light, dark in zip(LIGHT, DARK, strict=True)
    )
    fill = f"rgb({red},{green},{blue})" if share else "#fff"
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{fill}" '
        f'stroke="#c3ccd5" stroke-width=".5"><title>{escape(what)}</title></rect>'
    )


def _label(text: str, top: float, colour: str) -> str:
    shown = text if len(text) <= 14 else text[:13] + "…"
    return (
        f'<text x="{LABELS - 5}" y="{top + ROW - 3}" text-anchor="end" fill="{colour}">'
        f"{escape(shown)}</text>"
    )


def _frame(parts: list[str], rows: int, last: int, title: str) -> str:
    height = rows * ROW
    step = next(size for size in _steps() if last / size <= TICKS)
    axis = [
        f'<line x1="{LABELS}" x2="{LABELS + PLOT}" y1="{height}" y2="{height}" stroke="{INK}"/>'
    ]
    for slot in range(step, last + 1, step):
        x = LABELS + (slot - 0.5) * PLOT / last
        axis.append(f'<text x="{x:.1f}" y="{height + 13}" text-anchor="middle">{slot}</text>')
    middle = LABELS + PLOT / 2
    axis.append(f'<text x="{middle}" y="{height + 28}" text-anchor="middle">{escape(title)}</text>')
    return (
        f'<svg viewBox="0 0 {LABELS + PLOT + 5} {height + AXIS}" width="100%" role="img" '
        f'font-size="11" font-family="sans-serif" fill="{INK}">'
        f"{''.join(parts)}{''.join(axis)}</svg>"
    )


def _steps() -> list[int]:
    return [size * 10**power for power in range(9) for size in (1, 2, 5)]

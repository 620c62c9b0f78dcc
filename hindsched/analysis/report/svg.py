"""Small pictures of the report as inline SVG, which need no plotting library and no script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from hindsched.analysis.interval import Interval
from hindsched.analysis.plots import PALETTE
from hindsched.analysis.spans import job_spans
from hindsched.printable import printable
from hindsched.solutions.base import Solution

LEFT, WIDTH, LINE = 190, 560, 16
"""Room for names, room for the picture, height of a line of text: pixels."""
BEYOND = 8.0
"""A picture of ratios up to more than this has a logarithmic axis."""


def intervals(rows: Mapping[str, Sequence[Interval]]) -> str:
    """A line an algorithm; on it each instance's ratio from lower to upper end."""
    ends = [end for own in rows.values() for i in own for end in (i.lower, i.upper)]
    largest = max([1.01, *(end for end in ends if end is not None and math.isfinite(end))])
    least = min([1.0, *(end for end in ends if end is not None and end > 0)])
    logarithmic = largest > BEYOND
    scale = math.log if logarithmic else float
    low, high = scale(least), scale(largest)

    def place(value: float) -> float:
        return LEFT + WIDTH * (scale(max(value, least)) - low) / (high - low)

    parts = []
    for at, (name, own) in enumerate(rows.items()):
        y = at * LINE * 1.4 + LINE
        parts.append(_text(LEFT - 8, y + 4, name, "end"))
        for index, interval in enumerate(own):
            if interval.lower is None or not math.isfinite(interval.lower):
                continue
            is_open = interval.upper is None or not math.isfinite(interval.upper)
            upper = interval.lower if is_open else interval.upper
            assert upper is not None
            where = y + 6 * (index / max(1, len(own) - 1) - 0.5)
            colour = PALETTE[at % 8]  # as in the profiles
            fill = "none" if is_open else colour
            first, last = place(interval.lower), place(upper)
            parts.append(
                f'<path d="M{first:.1f} {where:.1f}H{last:.1f}" stroke="{colour}"/>'
                f'<circle cx="{last:.1f}" cy="{where:.1f}" r="2" fill="{fill}"'
                f' stroke="{colour}"/>'
            )
    height = len(rows) * LINE * 1.4 + LINE
    parts.append(f'<path d="M{place(1.0):.1f} 0V{height:.0f}" class="axis"/>')
    ticks = dict.fromkeys([1.0, _half(least, largest, logarithmic), largest])
    parts += [_text(place(tick), height + LINE, f"{tick:.3g}", "middle") for tick in ticks]
    return _picture(LEFT + WIDTH + 30, height + 1.5 * LINE, parts)


def _half(low: float, high: float, logarithmic: bool) -> float:
    return math.sqrt(low * high) if logarithmic else (low + high) / 2


def profiles(lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Performance profiles: share of the instances by the factor behind the best of all."""
    height, top = 220, 6
    largest = max([1.01, *(factor for points in lines.values() for factor, _ in points)])
    parts = [f'<path d="M{LEFT} {top}V{height}H{LEFT + WIDTH}" class="axis" fill="none"/>']
    for at, (name, points) in enumerate(lines.items()):
        path = []
        for factor, share in points:
            x = LEFT + WIDTH * math.log(factor) / math.log(largest)
            path.append(f"{x:.0f} {top + (height - top) * (1 - share):.0f}")
        style = f'stroke="{PALETTE[at % 8]}" stroke-dasharray="{"5 3" if at >= 8 else "none"}"'
        parts.append(f'<path d="M{"L".join(path)}" fill="none" {style}/>')
        y = top + LINE * (at + 0.5)
        parts.append(f'<path d="M2 {y}h18" {style}/>{_text(26, y + 4, name)}')
    bottom = max(height, LINE * len(lines) + top)
    for share in (0, 1):
        parts.append(_text(LEFT - 5, top + (height - top) * (1 - share) + 4, f"{share:.0%}", "end"))
    for factor in (1.0, largest):
        x = LEFT + WIDTH * math.log(factor) / math.log(largest)
        parts.append(_text(x, height + LINE, f"{factor:.3g} times", "middle"))
    return _picture(LEFT + WIDTH + 40, bottom + 1.5 * LINE, parts)


def gantt(solution: Solution) -> str:
    """When each job runs: a bar a span, the darker the more workers; a tick at its arrival."""
    jobs, spans = solution.job_rows(), job_spans(solution)
    last = max([1, solution.instance.horizon, *(s.last for own in spans.values() for s in own)])
    most = max((s.workers for own in spans.values() for s in own), default=1.0)
    line, step = 9, WIDTH / last
    parts = []
    for at, row in enumerate(jobs):
        y = at * line + 1
        arrival = LEFT + step * (row["arrival"] - 1)
        parts.append(f'<path d="M{arrival:.0f} {y}v{line - 2}" class="axis"/>')
        for span in spans.get(row["job"], []):
            x, width = LEFT + step * (span.first - 1), step * (span.last - span.first + 1)
            parts.append(
                f'<path d="M{x:.0f} {y + 3}h{max(width, 0.5):.1f}" stroke="{PALETTE[0]}"'
                f' stroke-width="7" opacity="{0.3 + 0.7 * span.workers / most:.2f}"/>'
            )
        if len(jobs) <= 30:
            parts.append(_text(LEFT - 5, y + 7, str(row["job"]), "end"))
    parts.append(_text(LEFT + WIDTH, len(jobs) * line + LINE, f"slot {last}", "end"))
    return _picture(LEFT + WIDTH + 10, len(jobs) * line + 1.5 * LINE, parts)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    shown = escape(printable(text if len(text) <= 30 else f"{text[:28]}.."))
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{shown}</text>'


def _picture(width: float, height: float, parts: Sequence[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg {size} role="img">{"".join(parts)}</svg>'

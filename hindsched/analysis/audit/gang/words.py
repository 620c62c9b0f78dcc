"""How an audit writes numbers for people: spans as they are said, counts, shares."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

SPANS = {
    "mean_jct", "weighted_mean_jct", "p50_jct", "p95_jct", "p99_jct", "mean_wait", "makespan",
    "duration", "jct", "best_jct", "later", "bound", "best_found", "mean", "median", "p95", "p99",
    "most",
}  # fmt: skip
GPU_SECONDS, SHARES = (
    {"idle", "waited", "gpu_seconds"},
    {"share", "asked", "users_share", "rent", "utilisation"},
)
UNITS = {"d": 86400, "h": 3600, "min": 60, "s": 1}


def seconds(value: float, outward: int = 0) -> str:
    """Seconds: known ones in six digits, ends in four; rounded down (-1), up (1), to the nearest.

    Whole seconds are always written out.
    """
    digits = 3 if outward else 5
    places = max(0, digits - int(math.log10(max(abs(value), 1e-3))))
    places = 0 if outward and abs(value) >= 1000 else places
    modes = {-1: ROUND_FLOOR, 0: ROUND_HALF_EVEN, 1: ROUND_CEILING}
    rounded = Decimal(repr(float(value))).scaleb(places).to_integral_value(modes[outward])
    text = f"{rounded.scaleb(-places):,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def span_text(value: float) -> str:
    """Seconds as people say them, in the two largest units: 3 h 10 min."""
    if abs(value) < 59.95:
        return f"{float(f'{value:.3g}'):g} s"
    names = [*UNITS]
    whole = abs(round(value))
    unit = next(at for at, size in enumerate(UNITS.values()) if whole >= size)
    small = names[min(unit + 1, len(names) - 1)]
    whole = round(whole / UNITS[small]) * UNITS[small]
    unit = next(at for at, size in enumerate(UNITS.values()) if whole >= size)
    parts = []
    for name in names[unit : unit + 2]:
        count, whole = divmod(whole, UNITS[name])
        parts += [f"{count:,} {name}"] * (count > 0)
    return "-" * (value < 0) + " ".join(parts)


def plural(number: int, what: str) -> str:
    """A count and what is counted."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def how_often(number: int) -> str:
    """How often: once, 2 times."""
    return "once" if number == 1 else f"{number:,} times"


def cell_text(name: str, value: object) -> str:
    """A cell of a column for people: spans, GPU-hours and shares in words; a dash for nothing."""
    if value is None or value != value or value == "":
        return "–"
    if isinstance(value, float | int) and not isinstance(value, bool):
        if name in SPANS:
            return span_text(float(value))
        if name in GPU_SECONDS:
            return f"{float(value) / UNITS['h']:,.4g} GPU-h"
        if name in SHARES:
            return f"{float(value):.1%}"
        whole = isinstance(value, int) or abs(value) >= 10_000
        return f"{value:,.0f}" if whole else f"{value:,.4g}"
    return str(value)

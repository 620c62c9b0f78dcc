"""Price path: what the capacity of each slot is worth, by a certificate's prices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hindsched.analysis.plots.style import colour, common_look, new_axes, whole_slots
from hindsched.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hindsched.solvers.certificates.certificate import Certificate

LINES_SHOWN = 8
VISIBLE = 1e-3
"""Lines that stay below this share of the largest price are left out."""


@common_look
def plot_prices(certificate: Any, ax: Axes | None = None) -> Axes:
    """Draw price x capacity per slot, one line per row set and resource.

    Multiplied by capacity, prices of different resources share the unit of the objective: a line is
    what the whole cluster's capacity for that resource is worth in a slot. Where every price stands
    on a row of capacity 0, as those do that only link decisions, their sums are drawn instead.

    Parameters
    ----------
    certificate : Certificate or Result
        Prices on the linking rows, or the result that has them.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None for a new figure.

    Examples
    --------
    >>> import hindsched as hs
    >>> proof = hs.solve(hs.generate("oasis", seed=2), "bound", time_limit=1).certificate
    >>> hs.plot.prices(proof).get_xlabel()
    'slot'
    """
    certificate = getattr(certificate, "certificate", certificate)
    if certificate is None:
        raise InputError("certificate", None, "a result without certificate has no prices")
    if ax is None:
        ax = new_axes(7.2, 3.2)
    lines = price_lines(certificate)
    of_capacity = bool(lines)
    lines = lines or price_lines(certificate, of_capacity=False)
    shown = sorted(lines, key=lambda name: -float(np.sum(np.abs(lines[name][1]))))[:LINES_SHOWN]
    for index, name in enumerate(name for name in lines if name in shown):
        slots, worth = lines[name]
        style = "-" if index < len(shown) / 2 else "--"
        ax.step(slots, worth, where="mid", color=colour(index), label=name, lw=1.4, ls=style)
    whole_slots(ax.xaxis)
    ax.set_xlabel("slot")
    ax.set_ylabel(
        f"{'price × capacity' if of_capacity else 'sum of prices'}\n(units of the objective)"
    )
    ax.set_title(f"{certificate.instance}: prices that prove {certificate.bound:.6g}")
    if not shown:
        ax.text(0.5, 0.5, "no row with slots has a price", ha="center", transform=ax.transAxes)
    else:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def price_lines(
    certificate: Certificate, *, of_capacity: bool = True
) -> dict[str, tuple[Any, Any]]:
    """Slots and price x capacity, or price, by line, summed over all axes but the resource."""
    arrays = certificate.rows.unpack(certificate.prices)
    lines: dict[str, tuple[Any, Any]] = {}
    for row_set in certificate.rows.sets:
        if not row_set.has_slots:
            continue
        worth = arrays[row_set.name] * (row_set.capacity if of_capacity else 1.0)
        axes = [axis for axis, _ in row_set.axes]
        slots = row_set.axes[-1][1]
        if "resource" in axes[:-1]:
            kept = axes.index("resource")
            others = tuple(i for i in range(len(axes) - 1) if i != kept)
            for label, path in zip(row_set.axes[kept][1], worth.sum(axis=others), strict=True):
                lines[f"{row_set.name}: {label}"] = (slots, path)
        else:
            others = tuple(range(len(axes) - 1))
            lines[row_set.name] = (slots, worth.sum(axis=others))
    largest = max((float(np.max(np.abs(line[1]))) for line in lines.values()), default=0.0)
    return {
        name: line
        for name, line in lines.items()
        if np.max(np.abs(line[1]), initial=0.0) > VISIBLE * largest
    }

"""Utilisation heat map: how full each server is in each slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hindsched.analysis.plots.style import (
    SEQUENTIAL,
    common_look,
    new_axes,
    solution_of,
    whole_slots,
)
from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.solutions.base import Solution
from hindsched.solutions.tables import UsageRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS_SHOWN = 40


@common_look
def plot_utilisation(solution: Any, resource: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw used over capacity by server and slot.

    Parameters
    ----------
    solution : Solution, Result or SimulationResult
        Any family's solution, or what found it.
    resource : str, optional
        Which resource; None for the one that is fullest on average.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None for a new figure.

    Raises
    ------
    InputError
        If nothing uses such a resource.

    Examples
    --------
    >>> import hindsched as hs
    >>> run = hs.simulate(hs.generate("oasis", seed=2), "oasis")
    >>> hs.plot.utilisation(run, "gpu").get_ylabel()
    'server'
    """
    solution = solution_of(solution)
    resource, servers, share = utilisation(solution, resource)
    count, slots = share.shape
    if ax is None:
        ax = new_axes(7.2, min(10.0, max(2.4, 1.3 + 0.16 * count)))
    image = ax.imshow(
        share,
        aspect="auto",
        cmap=SEQUENTIAL,
        vmin=0,
        vmax=max(1.0, float(share.max(initial=0.0))),
        interpolation="nearest",
        extent=(0.5, slots + 0.5, count - 0.5, -0.5),
    )
    step = max(1, -(-count // LABELS_SHOWN))
    ax.set_yticks(range(0, count, step), servers[::step])
    ax.grid(False)
    whole_slots(ax.xaxis)
    ax.set_xlabel("slot")
    ax.set_ylabel("server")
    ax.set_title(
        f"{solution.instance.name}: {resource}, "
        f"{np.mean(share):.0%} of {solution.capacity_name} on average"
    )
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, aspect=30)
    bar.set_label(f"used / {solution.capacity_name}")
    return ax


def utilisation(solution: Solution, resource: str | None = None) -> tuple[str, list[str], Floats]:
    """Used over capacity of one resource.

    Returns
    -------
    resource : str
        The resource.
    servers : list of str
        Every server that has it, in the instance's order.
    share : ndarray, shape (servers, slots)
        From slot 1 to the horizon or the last slot used, whichever is later.
    """
    used: dict[str, list[UsageRow]] = {name: [] for _, name in solution.places()}
    for row in solution.usage_rows():
        used.setdefault(row["resource"], []).append(row)
    slots = [row["slot"] for rows in used.values() for row in rows]
    last = max([solution.instance.horizon, *slots])
    if resource is not None and resource not in used:
        raise InputError("resource", resource, f"must be one of {', '.join(used)}")
    names = list(used) if resource is None else [resource]
    tables = {name: _share(solution, name, used[name], last) for name in names}
    if not tables:
        raise InputError("solution", solution.instance.name, "must use a resource")
    fullest = max(tables, key=lambda name: float(np.mean(tables[name][1])))
    return (fullest, *tables[fullest])


def _share(
    solution: Solution, resource: str, rows: list[UsageRow], last: int
) -> tuple[list[str], Floats]:
    idle = [server for server, name in solution.places() if name == resource]
    servers = list(dict.fromkeys([*idle, *(row["server"] for row in rows)]))
    place = {server: index for index, server in enumerate(servers)}
    share = np.zeros((len(servers), last))
    for row in rows:
        capacity = row["capacity"]
        if capacity:
            share[place[row["server"]], row["slot"] - 1] = row["used"] / capacity
    return servers, share

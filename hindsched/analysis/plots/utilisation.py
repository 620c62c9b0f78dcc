"""Utilisation heat map: how full each server is in each slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hindsched.analysis.plots.style import SEQUENTIAL, common_look, new_axes, whole_slots
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.solutions.base import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS_SHOWN = 40


@common_look
def plot_utilisation(
    solution: Solution, resource: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw used over capacity by server and slot.

    Parameters
    ----------
    solution : Solution
        Any family's solution.
    resource : str, optional
        Which resource; None for the one that is fullest on average.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None for a new figure.

    Raises
    ------
    InputError
        If nothing uses such a resource.
    """
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


def utilisation(
    solution: Solution, resource: str | None = None
) -> tuple[str, list[str], NDArray[np.float64]]:
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
    rows = solution.usage_rows()
    if not rows:
        rows = [
            {"slot": 1, "server": server, "resource": name, "used": 0.0, "capacity": 1.0}
            for server, name in _capacities(solution.instance)
        ]
    by_resource: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_resource.setdefault(str(row["resource"]), []).append(row)
    last = max([solution.instance.horizon, *(int(row["slot"]) for row in rows)])
    if resource is not None and resource not in by_resource:
        raise InputError("resource", resource, f"must be one of {', '.join(by_resource)}")
    names = list(by_resource) if resource is None else [resource]
    tables = {name: _share(solution.instance, name, by_resource[name], last) for name in names}
    if not tables:
        raise InputError("solution", solution.instance.name, "must use a resource")
    fullest = max(tables, key=lambda name: float(np.mean(tables[name][1])))
    return (fullest, *tables[fullest])


def _share(
    instance: Instance, resource: str, rows: list[dict[str, Any]], last: int
) -> tuple[list[str], NDArray[np.float64]]:
    servers = [server for server, name in _capacities(instance) if name == resource]
    servers += [str(row["server"]) for row in rows]
    order = {name: place for place, name in enumerate(_names(instance))}
    servers = sorted(dict.fromkeys(servers), key=lambda name: order.get(name, len(order)))
    place = {server: index for index, server in enumerate(servers)}
    share = np.zeros((len(servers), last))
    for row in rows:
        capacity = row["capacity"]
        if capacity:
            share[place[str(row["server"])], int(row["slot"]) - 1] = row["used"] / capacity
    return servers, share


def _names(instance: Instance) -> list[str]:
    """Names of all that an instance lists, in its order."""
    found: list[str] = []
    for field in type(instance).model_fields:
        value = getattr(instance, field)
        if isinstance(value, tuple):
            found += [str(item.name) for item in value if hasattr(item, "name")]
    return found


def _capacities(instance: Instance) -> list[tuple[str, str]]:
    """(server, resource) wherever a server states a positive capacity; idle servers count too."""
    found: list[tuple[str, str]] = []
    for field in type(instance).model_fields:
        value = getattr(instance, field)
        for item in value if isinstance(value, tuple) else ():
            capacity = getattr(item, "capacity", None)
            if isinstance(capacity, dict):
                found += [(item.name, name) for name, amount in capacity.items() if amount > 0]
    return found

"""Heat map of a gap: which (server, slot) and which jobs hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindsched.analysis.plots.style import (
    SEQUENTIAL,
    colour,
    common_look,
    whole_slots,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hindsched.solvers.certificates.explain import Explanation

LABELS_SHOWN = 40
JOBS_SHOWN = 12
VISIBLE = 1e-3


@common_look
def plot_gap(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw price x idle capacity by server and slot, and the jobs' terms beside it.

    Parameters
    ----------
    explanation : Explanation
        What ``explain`` returned.
    ax : matplotlib.axes.Axes, optional
        Where to draw the heat map alone; None for a new figure with a panel for the jobs.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the heat map.

    Examples
    --------
    >>> import hindsched as hs
    >>> instance = hs.generate("oasis", seed=2)
    >>> proof = hs.solve(instance, "bound", time_limit=1).certificate
    >>> found = hs.explain(hs.simulate(instance, "oasis").solution, proof)
    >>> hs.plot.gap(found).get_xlabel()
    'slot'
    """
    labels, slots, terms = explanation.heat_map()
    if ax is None:
        ax = _with_jobs(explanation, len(labels))
    ax.set_title(
        f"{explanation.instance}: bound {explanation.bound:.6g}, objective "
        f"{explanation.objective:.6g}\nidle capacity holds {_share(explanation)} of the gap"
    )
    ax.grid(False)
    ax.set_xlabel("slot")
    if not labels:
        ax.text(0.5, 0.5, "no idle capacity has a price", ha="center", transform=ax.transAxes)
        ax.set_xticks([])
        ax.set_yticks([])
        return ax
    extent = (slots[0] - 0.5, slots[-1] + 0.5, len(labels) - 0.5, -0.5)
    image = ax.imshow(
        terms, aspect="auto", cmap=SEQUENTIAL, vmin=0, interpolation="nearest", extent=extent
    )
    step = max(1, -(-len(labels) // LABELS_SHOWN))
    ax.set_yticks(range(0, len(labels), step), labels[::step])
    whole_slots(ax.xaxis)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, aspect=30)
    bar.set_label("price × idle capacity\n(units of the objective)")
    return ax


def _with_jobs(explanation: Explanation, places: int) -> Axes:
    """Make a figure with a panel for the jobs' terms, draw those, and return the other panel."""
    import matplotlib.pyplot as plt

    height = min(10.0, max(3.0, 1.4 + 0.2 * max(places, JOBS_SHOWN)))
    _, (heat, jobs) = plt.subplots(
        1, 2, figsize=(10.5, height), gridspec_kw={"width_ratios": (2.0, 1.0)}
    )
    _draw_jobs(jobs, explanation)
    return heat


def _draw_jobs(ax: Axes, explanation: Explanation) -> None:
    """Bars of the largest job terms."""
    triples = zip(
        explanation.jobs, explanation.job_states, explanation.job_terms.tolist(), strict=True
    )
    largest = sorted((item for item in triples if item[2] > 0), key=lambda item: -item[2])
    shown = [item for item in largest[:JOBS_SHOWN] if item[2] > VISIBLE * largest[0][2]]
    colours = [colour(0) if state == "served" else colour(1) for _, state, _ in shown]
    ax.barh(range(len(shown)), [term for _, _, term in shown], color=colours, height=0.7)
    ax.set_yticks(range(len(shown)), [f"{name} ({state})" for name, state, _ in shown])
    ax.set_ylim(max(len(shown), 4) - 0.4, -0.6)
    ax.set_xlabel("lost against its best response\n(units of the objective)")
    hidden = len(largest) - len(shown)
    share = float(explanation.job_terms.sum()) / explanation.gap if explanation.gap else 0.0
    ax.set_title(f"jobs hold {share:.0%}" + (f"\n({hidden} smaller not shown)" if hidden else ""))
    ax.grid(False, axis="y")


def _share(explanation: Explanation) -> str:
    if not explanation.gap:
        return "none"
    return f"{float(explanation.row_terms.sum()) / explanation.gap:.0%}"

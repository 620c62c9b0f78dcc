"""Pictures, ``hs.plot``: each function draws on the axes ``ax`` and returns them.

Without ``ax`` it makes a new figure. One look for all of them: colours that colour-blind readers
can tell apart, plain axes.
"""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hindsched.analysis.tables import job_spans, spans_of
from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.io import instance_class, write_bytes
from hindsched.solutions.base import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["gantt", "losses", "policy", "ratios", "save", "utilisation"]

# Okabe and Ito's colours, told apart under every common colour-vision deficiency; black and yellow
# such that they are seen on white and on black.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#777777", "#B8A800")
SEQUENTIAL = "YlGnBu"  # light for little, dark for much; reads the same in grey
FAINTEST = 0.35  # of it that a bar has, to be seen on a white page and on one that is inverted
GREY = "#8A8A8A"
DOTS_PER_INCH = 150
INSTALL = 'pip install ".[plots]"'
NO_PICTURES = f"without pictures, for matplotlib is not installed: {INSTALL}"
RC = {
    "axes.axisbelow": True, "axes.grid": True, "axes.spines.right": False,
    "axes.spines.top": False, "axes.titlesize": 10, "axes.titlelocation": "left",
    "axes.labelsize": 9, "axes.prop_cycle": "cycler('color', ['" + "', '".join(PALETTE) + "'])",
    "figure.constrained_layout.use": True, "font.size": 9, "grid.alpha": 0.35,
    "grid.linewidth": 0.6, "legend.fontsize": 8, "legend.frameon": False, "svg.fonttype": "path",
    "svg.hashsalt": "hindsched", "text.parse_math": False, "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}  # fmt: skip
LABELS_SHOWN = 40
LOSSES = (("price of not knowing", 0, 1.0), ("one or the other", 0, 0.35),
          ("own loss", 1, 1.0), ("not proven", 1, 0.35))  # fmt: skip
LOG_BEYOND, LOG_LEFT = 8.0, 0.92
ROOM_OF_A_LETTER = 0.011  # of the slots shown: a name that its bar cannot hold is not written
ENDS = ["ratio_lower", "ratio_upper"]
SPREAD = 0.3  # of a row's dots to either side of its middle
LOG_TICKS = [digit * 10.0**power for power in range(9) for digit in (1, 2, 5)]


def has_matplotlib() -> bool:
    """Whether pictures can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


@contextmanager
def look() -> Iterator[None]:
    """The common look, also of a function that it decorates; only its settings are put back.

    ``rc_context`` puts back all settings, among them ``interactive``, which a notebook's backend
    switches on the first time that something is drawn: nothing would be shown ever after.
    """
    if not has_matplotlib():
        raise InputError("pictures", "matplotlib", f"is not installed: {INSTALL}")
    import matplotlib as mpl

    before = {name: mpl.rcParams[name] for name in RC}
    mpl.rcParams.update(RC)
    try:
        yield
    finally:
        mpl.rcParams.update(before)


def new_axes(width: float = 6.4, height: float = 3.6) -> Axes:
    """Axes of a new figure of the given size in inches, shown where figures are shown."""
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height)).subplots()


def save(picture: Axes | Figure | SubFigure, path: str | Path) -> None:
    """Write a figure, or the one that axes belong to, to a file by its suffix, and close it.

    Examples
    --------
    >>> import hindsched as hs
    >>> run = hs.simulate(hs.generate("oasis", seed=2), "oasis")
    >>> hs.plot.save(hs.plot.gantt(run), "run.png")
    """
    figure: Any = picture if hasattr(picture, "canvas") else picture.figure
    kind = Path(path).suffix.removeprefix(".") or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise InputError("output", str(path), "must end in .png, .svg or .pdf")
    write_bytes(render(figure, kind), path)


def render(figure: Figure | SubFigure, kind: str, fonts: str = "path") -> bytes:
    """Draw a figure as the bytes of a file of this kind, and close it; `fonts` of an SVG."""
    import matplotlib.pyplot as plt

    root = figure.get_figure(root=True)
    assert root is not None
    buffer, metadata = io.BytesIO(), {"Date": None} if kind == "svg" else {}
    with look():
        plt.rcParams["svg.fonttype"] = fonts
        root.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
    plt.close(root)
    return buffer.getvalue()


@look()
def gantt(solution: Any, ax: Axes | None = None, *, most: int | None = None) -> Axes:
    """Draw when each job runs: a bar a job, the darker the more workers are at work.

    A thin line leads from arrival to completion; jobs that are not served have grey names.

    Parameters
    ----------
    solution : Solution, Result or SimulationResult
        Any family's solution, or what found it.
    most : int, optional
        Workers of the darkest colour: the same in pictures that are compared. None for the most of
        any job.

    Examples
    --------
    >>> import hindsched as hs
    >>> run = hs.simulate(hs.generate("oasis", seed=2), "oasis")
    >>> hs.plot.gantt(run).get_ylabel()
    'job (grey: not completed)'
    """
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    solution = _solution_of(solution)
    rows, spans = solution.job_rows(), job_spans(solution)
    whole = [span for listed in spans.values() for span in listed]
    ax = ax or new_axes(7.2, min(12.0, max(2.2, 1.2 + 0.22 * len(rows))))
    scale = Normalize(0, most or max([1.0, *(span.workers for span in whole)]))
    colours = ListedColormap(mpl.colormaps[SEQUENTIAL](np.linspace(FAINTEST, 1, 256)))
    begins = [row["arrival"] - 0.5 for row in rows]
    ends = [math.nan if row["completion"] is None else row["completion"] + 0.5 for row in rows]
    ax.hlines(range(len(rows)), begins, ends, color=GREY, lw=0.8, zorder=1)
    ax.plot(begins, range(len(rows)), marker=">", color="black", ms=3, zorder=3, ls="none")
    for place, row in enumerate(rows):
        for span in spans.get(row["job"], []):
            ax.barh(
                place, span.last - span.first + 1, left=span.first - 0.5, height=0.7,
                color=colours(scale(span.workers)), edgecolor=GREY, linewidth=0.4, zorder=2,
            )  # fmt: skip
    shown = _label_rows(ax, [str(row["job"]) for row in rows], most=60)
    for label, index in zip(ax.get_yticklabels(), shown, strict=True):
        if rows[index]["completion"] is None:
            label.set(color=GREY, fontstyle="italic")
    unserved = any(row["completion"] is None for row in rows)
    ax.set_ylabel("job (grey: not completed)" if unserved else "job")
    ax.set_ylim(len(rows) - 0.4, -0.6)
    _slot_axis(ax, 1, max([solution.instance.horizon, *(span.last for span in whole)]))
    ax.set_xlabel("slot (triangle: arrival)")
    ax.set_title(f"{solution.instance.name}: objective {solution.objective():.6g}")
    mapped = ScalarMappable(scale, colours)
    bar = ax.figure.colorbar(mapped, ax=ax, pad=0.02, aspect=30, label="workers at work")
    _whole_numbers(bar.ax.yaxis)
    return ax


@look()
def utilisation(solution: Any, resource: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw used over capacity by server and slot.

    Parameters
    ----------
    solution : Solution, Result or SimulationResult
        Any family's solution, or what found it.
    resource : str, optional
        Which resource; None for the one that is fullest on average.

    Examples
    --------
    >>> import hindsched as hs
    >>> run = hs.simulate(hs.generate("oasis", seed=2), "oasis")
    >>> hs.plot.utilisation(run, "gpu").get_ylabel()
    'server'
    """
    solution = _solution_of(solution)
    resource, servers, share = used_shares(solution, resource)
    ax = ax or new_axes(7.2, min(10.0, max(2.4, 1.3 + 0.16 * len(servers))))
    most = max(1.0, float(share.max(initial=0.0)))
    last = share.shape[1]
    image = ax.imshow(
        share, aspect="auto", cmap=SEQUENTIAL, vmin=0, vmax=most, interpolation="nearest",
        extent=(0.5, last + 0.5, len(servers) - 0.5, -0.5),
    )  # fmt: skip
    _label_rows(ax, servers)
    _slot_axis(ax, 1, last)
    ax.grid(False)
    ax.set_ylabel("server")
    name, of = solution.instance.name, solution.capacity_name
    ax.set_title(f"{name}: {resource}, {np.mean(share):.0%} of {of} on average")
    ax.figure.colorbar(image, ax=ax, pad=0.02, aspect=30, label=f"used / {of}")
    return ax


def used_shares(solution: Solution, resource: str | None = None) -> tuple[str, list[str], Floats]:
    """Used over capacity of one resource, None for the one that is fullest on average.

    Returns the resource, every server that has it in the instance's order, and the shares (servers,
    slots) from slot 1 to the horizon or the last slot used, whichever is later.
    """
    places = list(dict.fromkeys((name, server) for server, name in solution.places()))
    rows = [row for row in solution.usage_rows() if row["capacity"]]
    last = max([solution.instance.horizon, *(row["slot"] for row in rows)])
    shares = {place: np.zeros(last) for place in places}
    for row in rows:
        shares[row["resource"], row["server"]][row["slot"] - 1] = row["used"] / row["capacity"]
    known = list(dict.fromkeys(name for name, _ in places))
    if not known or (resource is not None and resource not in known):
        raise InputError("resource", resource, f"must be one of {', '.join(known) or 'none'}")
    by_resource = {name: [shares[place] for place in places if place[0] == name] for name in known}
    chosen = resource or max(known, key=lambda name: float(np.mean(by_resource[name])))
    return (
        chosen,
        [server for name, server in places if name == chosen],
        np.array(by_resource[chosen]),
    )


@look()
def ratios(comparison: Any, ax: Axes | None = None, *, family: str | None = None) -> Axes:
    """Draw a row an algorithm, a dot an instance at its ratio's upper end; 1 is perfect.

    A line leads to the lower end; the median of the dots is marked, and by a dashed line what the
    paper's theorem promises of its algorithm, where that is in the picture.

    Parameters
    ----------
    comparison : Comparison, InstanceComparison or DataFrame
        What `compare` or `ratio` returned, or the frame of runs that it became.
    family : str, optional
        Only this family.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.ratio(hs.generate("oasis", seed=2), ["oasis"], time_limit=1, progress=False)
    >>> [label.get_text() for label in hs.plot.ratios(found).get_yticklabels()]
    ['oasis']
    """
    if not hasattr(comparison, "groupby") and not hasattr(comparison, "to_frame"):
        rule = "must be what hs.compare or hs.ratio returned, or its frame"
        raise InputError("comparison", type(comparison).__name__, rule)
    frame = comparison if hasattr(comparison, "groupby") else comparison.to_frame()
    frame = frame if family is None or not len(frame) else frame[frame["family"] == family]
    if not len(frame):
        raise InputError("family", family, "must have been compared")
    frame = _over_seeds(frame)
    names = list(dict.fromkeys(frame["algorithm"]))
    ax = ax or new_axes(7.2, max(2.2, 1.1 + 0.3 * len(names)))
    instances = list(dict.fromkeys(frame["instance"]))
    offsets = np.linspace(-SPREAD, SPREAD, len(instances)) if len(instances) > 1 else [0.0]
    places = frame["algorithm"].map(names.index) + frame["instance"].map(
        dict(zip(instances, offsets, strict=True))
    )
    ends = frame[ENDS].where(np.isfinite(frame[ENDS]))
    largest = float(np.nanmax([1.0, *ends.to_numpy().ravel()]))
    _log_axis(ax, LOG_LEFT if largest > LOG_BEYOND else 0.98, largest * 1.1)
    whole = ends.dropna()
    ax.hlines(places[whole.index], whole["ratio_lower"], whole["ratio_upper"], color=colour(0),
              lw=1.0, alpha=0.6)  # fmt: skip
    known = ends.max(axis=1).dropna()  # the upper end, which is proven, or the lower one alone
    is_open = ends["ratio_upper"][known.index].isna()
    dots = ax.scatter(
        known, places[known.index], s=11, linewidths=0.8, zorder=3, edgecolors=colour(0),
        facecolors=np.where(is_open, "white", colour(0)).tolist(),
    )  # fmt: skip
    dots.set_urls([f"#{name}" for name in frame["instance"][known.index]])
    for place, name in enumerate(names):
        every = frame.loc[frame["algorithm"] == name, ENDS].max(axis=1).dropna()
        infinite = int(np.isinf(every).sum())
        if every.size == infinite:
            ax.text(0.15, place, "no finite ratio", color=GREY, va="center", fontsize=8,
                    transform=ax.get_yaxis_transform())  # fmt: skip
        if every.size > 2 and every.median() < math.inf:
            ax.vlines(every.median(), place - 0.4, place + 0.4, color="black", lw=1.6, zorder=4)
    promises = frame.groupby("algorithm")["theorem"].max()
    for place, name in enumerate(names):
        value = promises.get(name, np.nan)
        if value <= largest * 1.1:
            ax.vlines(value, place - 0.45, place + 0.45, color=colour(5), ls="--", lw=1.4)
    _bar_axis(ax, names)
    ax.set_xlabel("competitive ratio (1 is perfect; bar: median; open: no upper end)")
    title = family or ", ".join(dict.fromkeys(frame["family"]))
    several = f"{len(instances)} instances"
    ax.set_title(f"{title}: {instances[0] if len(instances) == 1 else several}")
    return ax


def _over_seeds(runs: Any) -> Any:
    """A row an instance: the ratio of the mean objective over its runs, as tables have it."""
    keys = ["family", "algorithm", "instance"]
    powers = {family: -1 if instance_class(family).sense == "max" else 1
              for family in runs["family"].unique()}  # fmt: skip
    found = runs.reindex(columns=[*keys, *ENDS, "theorem"])
    found = found.astype(dict.fromkeys([*ENDS, "theorem"], float))
    found[ENDS] = found[ENDS].pow(found["family"].map(powers), axis=0)
    groups = found.groupby(keys, sort=False)
    means = groups[ENDS].agg(lambda ends: ends.mean(skipna=False))  # none where a run has none
    made = means.join(groups["theorem"].max()).reset_index()
    made[ENDS] = made[ENDS].pow(made["family"].map(powers), axis=0)
    return made


@look()
def losses(foresight: Any, ax: Axes | None = None) -> Axes:
    """Draw each algorithm's ratio as the price of not knowing times its own loss.

    A bar an algorithm on a logarithmic axis, on which the two parts add up; pale is what no proof
    tells apart.

    Parameters
    ----------
    foresight : Foresight
        What `foresight` or `adversary` returned.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.foresight(hs.tree("gang", at=[2], branches=2), algorithms=["fifo"])
    >>> [label.get_text() for label in hs.plot.losses(found).get_yticklabels()]
    ['fifo']
    """
    foresight = getattr(foresight, "found", foresight)  # an adversary's
    rows, price = foresight.losses_by_algorithm, foresight.price
    if not rows or price.lower is None:
        raise InputError("algorithms", [], "must be one at least, with a known price")
    ax = ax or new_axes(7.2, max(1.9, 1.2 + 0.42 * len(rows)))
    top = 1.02
    for place, loss in enumerate(rows):
        known = [loss.ratio.lower, loss.ratio.upper, price.upper]
        if any(end is None or not math.isfinite(end) for end in known):
            ax.text(1.0, place, " not bounded", color=GREY, va="center", fontsize=8)
            continue
        low, high, most = (max(1.0, end) for end in known)
        ends = [1.0, min(price.lower, low), min(most, low), low, high]
        for (label, fill, alpha), begin, end in zip(LOSSES, ends, ends[1:], strict=False):
            ax.barh(place, end - begin, left=begin, height=0.6, linewidth=0, color=PALETTE[fill],
                    alpha=alpha, label=label)  # fmt: skip
        ax.text(high, place, f" {high:.3g}", va="center", fontsize=8)
        top = max(top, high)
    _log_axis(ax, min(0.998, top**-0.03), top**1.12)
    _bar_axis(ax, [loss.algorithm for loss in rows])
    ax.set_xlabel("hindsight and the algorithm: their ratio (1 is perfect)")
    ax.set_title(f"{len(foresight.futures)} futures, policies that {foresight.policies}")
    labelled = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    ax.legend(labelled.values(), labelled, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def _log_axis(ax: Axes, least: float, most: float) -> None:
    """A logarithmic axis of ratios with a handful of round ticks from 1 on."""
    from matplotlib.ticker import MaxNLocator

    ticks = LOG_TICKS if most > LOG_BEYOND else MaxNLocator(6).tick_values(1.0, most)
    ax.set_xscale("log")
    ax.set_xlim(least, most)
    ax.set_xticks([tick for tick in ticks if 1 <= tick <= most])
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()


def _bar_axis(ax: Axes, names: list[str]) -> None:
    """A row a name, and a line at the ratio 1."""
    ax.axvline(1.0, color="black", lw=0.8, zorder=1)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(False, axis="y")


@look()
def policy(foresight: Any, ax: Axes | None = None) -> Axes:
    """Draw what the best policy found does in each future: a lane a job, a bar where it runs.

    A grey box holds futures that cannot be told apart, for as long as that is so. Beside each
    stands the policy's value and that of hindsight.

    Parameters
    ----------
    foresight : Foresight
        What `foresight` or `adversary` returned.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.foresight(hs.tree("gang", at=[2], branches=2), algorithms=[])
    >>> len(hs.plot.policy(found).get_yticklabels())
    2
    """
    foresight = getattr(foresight, "found", foresight)  # an adversary's
    if foresight.policy is None:
        raise InputError("policy", None, "must have been found")
    futures, schedules, classes = (
        foresight.futures,
        foresight.policy.schedules,
        foresight.futures.classes(),
    )
    order = sorted(range(len(futures)), key=lambda s: [futures.members(s, t) for t in classes])
    names = list(dict.fromkeys(job.name for each in futures.instances for job in each.jobs))
    ax = ax or new_axes(7.2, min(12.0, 1.2 + 0.55 * len(futures)))
    last, bars = 1, list[Any]()
    for place, s in enumerate(order):
        schedule, jobs = schedules[s], futures.instances[s].jobs
        rows = {**schedule.assignments(), **schedule.given_up}
        for lane, job in enumerate(jobs):
            middle = place - 0.4 + 0.8 * (lane + 0.5) / len(jobs)
            for span in spans_of([schedule.run_of(row) for row in rows.get(job.name, ())]):
                ax.barh(
                    middle, span.last - span.first + 1, left=span.first - 0.5, zorder=2,
                    height=0.7 / len(jobs), color=colour(names.index(job.name)),
                    alpha=0.25 if job.name in schedule.given_up else 0.8,
                )  # fmt: skip
                bars.append((span, middle, job.name))
                last = max(last, span.last)
    for span, middle, name in bars:
        if span.last - span.first + 1 >= ROOM_OF_A_LETTER * last * len(name):
            ax.text(span.first - 0.4, middle, name, va="center", fontsize=6, zorder=3)
    for t, following in pairwise([*sorted(classes), last + 1]):
        for group in classes[t]:
            low, high = min(map(order.index, group)), max(map(order.index, group))
            ax.fill_between([t - 0.5, following - 0.55], low - 0.45, high + 0.45, color="#F0F0F0")
    values = [f"{schedules[s].objective():.5g} ({foresight.optima[s]})" for s in order]
    ax.set_yticks(range(len(order)), values)
    ax.set_ylim(len(order) - 0.4, -0.6)
    _slot_axis(ax, 1, last)
    ax.set_xlabel("slot (boxes: futures not told apart; pale: given up)")
    ax.set_ylabel("value (hindsight's)")
    ax.set_title("what the best policy found does")
    return ax


def colour(index: int) -> str:
    """Colour of a series by its position."""
    return PALETTE[index % len(PALETTE)]


def _slot_axis(ax: Axes, first: int, last: int) -> None:
    """A horizontal axis of whole slots."""
    ax.grid(False, axis="y")
    ax.set_xlim(first - 0.5, last + 0.5)
    _whole_numbers(ax.xaxis)
    ax.set_xlabel("slot")


def _whole_numbers(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def _label_rows(ax: Axes, labels: list[str], most: int = LABELS_SHOWN) -> range:
    """Name so many rows of a picture as can be read; which ones."""
    shown = range(0, len(labels), max(1, -(-len(labels) // most)))
    ax.set_yticks(list(shown), [labels[index] for index in shown])
    return shown


def _solution_of(source: Any) -> Solution:
    """The solution itself, or that of a result or run; `InputError` if it has none."""
    solution = source if isinstance(source, Solution) else getattr(source, "solution", None)
    if not isinstance(solution, Solution):
        raise InputError("solution", type(source).__name__, "must have a solution to draw")
    return solution

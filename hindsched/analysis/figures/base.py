"""The papers' figures: experiments that yield tidy tables, and drawings of those.

Most are one `Experiment`: data that says over what is swept, which schemes run and what is measured
of a run; any function ``run(scale, on_row)`` that returns a table is one as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from hindsched.analysis.plot import GREY, PALETTE, colour, look
from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.base import Instance, check_family, family_module, has_module
from hindsched.instances.generators.registry import from_trace, generate, trace_settings
from hindsched.json_types import Keywords
from hindsched.online.simulator import simulate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture

    from hindsched.instances.traces.table import TraceTable

QUICK_SEEDS, FULL_SEEDS = 1, 5
FROM_A_TRACE = ("jobs", "servers", "utility", "minibatch_scale")  # settings that hold there too
OnRow = Callable[[str], None]  # called after each finished run, for progress
Axis = tuple[Sequence[Any], Sequence[Any]]  # values of a setting, in full and in quick mode
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class TraceInput:
    """A trace to make instances from; each seed begins in another part of it."""

    table: TraceTable
    path: str  # file it was read from, for messages

    def start(self, seed: int, seeds: int) -> float:
        """Second at which a seed's window begins: windows are spread evenly over the trace."""
        span = float(self.table.rows["submit_seconds"].max())
        return round(span * (seed + 1) / (seeds + 1))


@dataclass(frozen=True)
class FigureScale:
    """How large to run an experiment."""

    quick: bool = False  # a small version of the same that ends within about 20 seconds
    seeds: int = FULL_SEEDS
    # Settings of the generator in place of the experiment's; what it varies takes a list.
    settings: Keywords = field(default_factory=dict, hash=False)
    trace: TraceInput | None = field(default=None, hash=False)  # to make the instances from
    schemes: tuple[str, ...] | None = None  # only these of the figure's
    # Filled while the experiment runs: settings that it varies itself.
    varied: set[str] = field(default_factory=set, compare=False, repr=False)
    # Filled likewise: the experiment's own settings of instances.
    fixed: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, key: Sequence[object], make: Callable[[], Iterable[Row] | Row]) -> list[Row]:
        """Rows of one run; whoever keeps finished runs knows it by its key."""
        made = make()
        return [made] if isinstance(made, dict) else list(made)

    def pick(self, full: object, quick: object) -> Any:
        """Choose between the full and the quick setting."""
        return quick if self.quick else full

    def chosen(self, schemes: Iterable[str]) -> list[str]:
        """Those of a figure's schemes that are to be run; `InputError` for one it does not have."""
        known = list(dict.fromkeys(schemes))
        for name in self.schemes or ():
            if name not in known:
                raise InputError("schemes", name, f"must be one of {', '.join(known)}")
        return known if self.schemes is None else [n for n in known if n in self.schemes]

    def axis(self, name: str, full: Sequence[Any], quick: Sequence[Any]) -> list[Any]:
        """Values of a generator's setting that the experiment varies."""
        given = self.settings.get(name, self.pick(full, quick))
        values = list(given) if isinstance(given, list | tuple) else [given]
        if not values:
            raise InputError(f"set.{name}", given, "must hold at least one value")
        if any(value in values[:index] for index, value in enumerate(values)):
            raise InputError(f"set.{name}", given, "must not hold a value twice")
        words = [value for value in full if isinstance(value, str)]
        for value in values if words else ():
            if value not in words:
                raise InputError(f"set.{name}", value, f"must be one of {'; '.join(words)}")
        self.varied.add(name)
        return values

    def instance(
        self, family: str, preset: str, seed: int, varied: Keywords | None = None, **fixed: object
    ) -> Any:
        """Make one instance of the experiment; a setting that it varies itself is refused."""
        varied = varied or {}
        given = {name: v for name, v in self.settings.items() if name not in self.varied}
        for name in given:
            if name in varied:
                raise InputError(f"set.{name}", given[name], "is what this figure varies itself")
        if self.trace is None:
            self.fixed.update(fixed)
            return self.make(family, preset, seed, {**fixed, **given, **varied})
        known = trace_settings(family) | {"jobs"}
        for name in varied:
            if name not in known:
                rule = f"an instance from a trace has no {name}, which this figure varies"
                raise InputError("from-trace", self.trace.path, rule)
        fixed_too = {name: fixed[name] for name in FROM_A_TRACE if name in fixed and name in known}
        self.fixed.update(fixed_too)
        return self.make(family, preset, seed, {**fixed_too, **given, **varied})

    def make(self, family: str, preset: str, seed: int, settings: Keywords) -> Any:
        """Draw an instance with these settings, or make it from the trace."""
        if self.trace is None:
            return generate(family, preset, seed, **settings)
        start: Any = self.trace.start(seed, self.seeds)
        return from_trace(family, self.trace.table, seed=seed, **{"start": start, **settings})


@dataclass(frozen=True)
class Scheme:
    """What runs on every instance."""

    columns: Keywords  # what the table says of it; the first value is the name to choose it by
    algorithm: str = ""
    settings: Keywords = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name by which it is chosen."""
        return str(next(iter(self.columns.values())))


def schemes_of(
    names: Iterable[str] | Mapping[str, tuple[str, Keywords]], column: str = "scheme"
) -> tuple[Scheme, ...]:
    """Schemes by name: of algorithms of this name, or of (algorithm, settings) by name."""
    pairs = names if isinstance(names, Mapping) else {name: (name, {}) for name in names}
    return tuple(Scheme({column: name}, *pair) for name, pair in pairs.items())


BATCHSCHE = {
    "batchsche": ("batchsche", {}),
    "batchsche alpha-4": ("batchsche", {"alpha": 4}),
    "batchsche per-batch": ("batchsche", {"alpha": "per-batch"}),
}
"""BatchSche work-conserving, as printed with alpha = 4, and as its paper simulates it."""


def run_scheme(instance: Any, scheme: Scheme, seed: int) -> Any:
    """Simulate a scheme's algorithm."""
    return simulate(instance, scheme.algorithm, seed=seed, settings=scheme.settings)


def over_reference(
    frame: pd.DataFrame, y: str, keys: Sequence[str], reference: pd.DataFrame
) -> Floats:
    """Each row's `y` over that of the row of `reference` with equal `keys`, if that is above 0."""
    import pandas as pd

    values = reference.set_index(list(keys))[y]
    totals = values.where(values > 0).reindex(pd.MultiIndex.from_frame(frame[list(keys)]))
    ratio: Floats = (frame[y] / totals.to_numpy()).to_numpy()
    return ratio


@dataclass(frozen=True, eq=False)
class Experiment:
    """A sweep: instances over axes and seeds, every scheme on each, rows of what is measured."""

    family: str
    schemes: Sequence[Scheme]
    measure: Callable[..., Iterable[Row] | Row]  # of a run; with facts of (run, what is known)
    axes: Mapping[str, Axis] = field(default_factory=dict)  # what is varied, by setting
    full: Keywords = field(default_factory=dict)  # other settings of the generator
    quick: Keywords = field(default_factory=dict)
    preset: str = "paper"
    vary: Callable[[Row], Keywords] | None = None  # settings of a point, if not the point itself
    facts: Callable[[Any, FigureScale], Any] | None = None  # what is known of an instance
    play: Callable[[Any, Scheme, int], Any] = run_scheme
    finish: Callable[[pd.DataFrame], pd.DataFrame] | None = None  # the table of all rows
    before: Callable[[], None] | None = None  # called before the first run: compiles

    def __call__(self, scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
        """Run it."""
        import pandas as pd

        kept = scale.chosen(scheme.name for scheme in self.schemes)
        schemes = [scheme for scheme in self.schemes if scheme.name in kept]
        values = [scale.axis(name, *axis) for name, axis in self.axes.items()]
        rows: list[Row] = []
        if self.before is not None:
            self.before()
        for chosen in product(*values):
            point: Row = dict(zip(self.axes, chosen, strict=True))
            for seed in range(scale.seeds):
                instance = self.instance(scale, seed, point)
                known = self.facts and cache(partial(self.facts, instance, scale))
                for scheme in schemes:
                    key = [instance.sha256(), seed, scheme.columns, scheme.settings]
                    run = partial(self._rows, instance, scheme, seed, known)
                    same = {**point, **scheme.columns, "seed": seed}
                    rows += [{**same, **row} for row in scale.once(key, run)]
                    on_row(f"{instance.name} {scheme.name}")
        frame = pd.DataFrame(rows)
        return frame if self.finish is None else self.finish(frame)

    def _rows(
        self, instance: Any, scheme: Scheme, seed: int, known: Callable[[], Any] | None
    ) -> Iterable[Row] | Row:
        run = self.play(instance, scheme, seed)
        return self.measure(run) if known is None else self.measure(run, known())

    def instance(self, scale: FigureScale, seed: int, point: Row) -> Instance:
        """The instance at a point of the axes."""
        varied = point if self.vary is None else self.vary(point)
        fixed: Any = scale.pick(self.full, self.quick)
        made: Instance = scale.instance(self.family, self.preset, seed, varied, **fixed)
        return made


@dataclass(frozen=True)
class Plot:
    """A drawing of a table: pandas draws it, and its columns are the labels."""

    x: str
    y: str
    by: str = "scheme"  # a line, bar or colour a value
    kind: str = "lines"  # lines and bars: means with their intervals; points: every row
    panels: str | None = None  # a column: one panel a value, side by side
    above: str | None = None  # a column that all series share: bars in a panel above
    log_x: bool = False
    log_y: bool = False
    unit: str = ""  # of y, where its words say none

    @property
    def y_words(self) -> str:
        """What is drawn, as the axis says it."""
        return axis_words(self.y) + f" ({self.unit})" * bool(self.unit)


@dataclass(frozen=True)
class Figure:
    """A figure of a paper as an experiment."""

    number: str  # the paper's, as "3" or "4a"
    title: str
    run: Callable[[FigureScale, OnRow], pd.DataFrame]  # a row per (setting, algorithm, seed)
    plot: Plot
    traced: bool = False  # whether the paper runs it on a trace
    levels: tuple[float, ...] = ()  # values that the paper's text states, drawn in grey
    # How many times a series' value the paper's algorithm has, by its text.
    factors: Mapping[str, float] = field(default_factory=dict)

    def picture(self, frame: pd.DataFrame, scale: FigureScale | None = None) -> Picture:
        """Draw the table, and what the paper's text states as dotted lines.

        Titles are of the full experiment: how a `scale` differs from it is said below.
        """
        title = self.title if scale is None else f"{self.title}\n{self._scale_words(scale)}"
        return draw_table(frame, self.plot, title=title, levels=self.levels, factors=self.factors)

    def _scale_words(self, scale: FigureScale) -> str:
        """Seeds, settings in place of the paper's, and the trace."""
        several = "" if self.plot.kind == "points" else ", means with their 95 % intervals"
        words = [f"{scale.seeds} seeds{several}" if scale.seeds > 1 else "1 seed"]
        small = scale.fixed if scale.quick else {}
        for name, value in {**small, **scale.settings}.items():
            words += [] if name in scale.varied else [f"{axis_words(name)} {value}"]
        words += [] if scale.trace is None else [f"jobs from {Path(scale.trace.path).name}"]
        return "quick: " * scale.quick + "; ".join(words)


@cache
def figures(family: str) -> dict[str, Figure]:
    """Figures of a family's paper by number; none for a family that has no paper of its own."""
    check_family(family)
    if not has_module("analysis.figures", family, "figures"):
        return {}
    listed: list[Figure] = family_module("analysis.figures", family, "figures").FIGURES
    return {figure.number: figure for figure in listed}


def figure(family: str, number: str) -> Figure:
    """Find one figure; `InputError` for a number that the family does not have."""
    known = figures(family)
    if number not in known:
        has = f"has the figures {', '.join(known)}" if known else "has no figures"
        raise InputError("number", number, f"{family} {has}")
    return known[number]


WORDS = {
    "alone": "income alone", "busy_share": "share of edge workers in use",
    "capacity_fraction": "capacity / ideal demand", "capacity_gb": "a worker's GB a slot",
    "centers": "data centres", "communication": "C4, communication (USD)",
    "communication_rate": "communication time / SRTF's", "contributed": "share of what is offered",
    "cost": "cost of the job's resources", "data_gb": "data a job and slot (GB)",
    "density_scale": "declared F / F", "deployment": "C3, deployment (USD)",
    "discount_rate": "paid / full price", "estimate_percent": "estimate of U / L (% of exact)",
    "fairness": "share of revenue / share of servers", "fixed_workers": "workers a job, at most",
    "fractional_over_ilp_4": "objective of (4) / its optimum", "gained": "share of what is gained",
    "gain": "income gained by the lie", "ideal_revenue": "revenue from the round's start",
    "instance_hours": "instance-hours", "jct_rate": "total JCT / SRTF's",
    "late": "completion - target (slots)", "lower_floor": "floor of L",
    "milliseconds": "running time a job (ms)", "minibatch_scale": "mini-batch times x",
    "objective": "weighted completion time (slots)",
    "percent": "theta - 1 (% of the least)",
    "percent_above_bound": "total cost beyond a certified bound (%)",
    "performance_lower": "revenue / optimum, at least",
    "ratio": "cost / bound", "ratio_upper": "optimum / earned, at most",
    "relative": "earned / with the exact estimate", "resource": "C2, resources (USD)",
    "revenue": "total revenue", "seconds": "running time (s)", "slots_earlier": "slots earlier",
    "submissions": "jobs submitted",
    "together": "income in the coalition", "total": "total cost (USD)",
    "transfer": "C1, data transfer (USD)", "utilisation": "share of workers in use",
    "utility": "total utility", "variance": "variance of the fairness ratios",
    "weight": "weight accepted",
}  # fmt: skip
"""What an axis says of a column, with its unit; other columns by their names."""
COLOURS = {
    "astraea": 0, "batchsched": 0, "edgecloud": 0, "mlbroker": 0, "oasis": 0, "A_maxweight": 0,
    "fifo": 1, "batchsche": 1, "central": 1, "Jain": 1, "drf": 2, "gandiva-fair": 2, "local": 2,
    "rrh": 3, "hived": 3, "antman": 3, "oasis-style": 3, "dorm": 4, "srtf": 4, "tiresias": 5,
    "tiresias-l": 5, "wspt": 6, "all-cloud": 6, "batchsched-terminating": 7,
    "edgecloud-edge-only": 7, "mlbroker-tight": 7, "mlbroker-prices": 6, "batchsched-exact": 3,
    "batchsched-adaptive": 4, "edgecloud-marginal": 2, "edgecloud-escape": 3,
}  # fmt: skip
"""An algorithm's colour in every figure; settings of one are shades, dashes and hatches of it."""
MOST_SHADES, DASHES, HATCHES = 4, ("-", "--", "-."), ("", "///", "...")
MOST_SHOWN = 24  # rows of the means that are printed
FAR = 4  # heights of what the curves take from which on a level is not drawn


def axis_words(column: str) -> str:
    """A column as an axis says it, also where a series' name holds it."""
    if column in WORDS:
        return WORDS[column]
    names = r"\b[a-z]+(_[a-z0-9]+)+"  # a paper's own, as A_maxweight, are no columns
    return re.sub(names, lambda found: WORDS.get(found[0], found[0].replace("_", " ")), column)


def series_looks(names: Sequence[object]) -> list[tuple[Any, str]]:
    """Colour and dashes a series: its algorithm's where it has one, else by its position."""
    from matplotlib.colors import to_rgb

    shades: dict[str, int] = {}
    looks = []
    for position, name in enumerate(names):
        algorithm = str(name).replace(",", " ").split(" ")[0]
        shade = position // len(PALETTE)
        if algorithm in COLOURS:
            shade = shades[algorithm] = shades.get(algorithm, -1) + 1
        full = to_rgb(colour(COLOURS.get(algorithm, position)))
        paler = 0.2 * min(shade, MOST_SHADES - 1)
        tint = tuple(part + (1 - part) * paler for part in full)
        looks.append((tint, DASHES[shade % len(DASHES)]))
    return looks


def means_of(frame: pd.DataFrame, plot: Plot) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means and half widths of their 95 % intervals over the seeds, by `x`, a column a series."""
    from scipy.stats import t

    frame = frame if plot.x in frame else frame.assign(**{plot.x: ""})
    keys = [*filter(None, [plot.panels, plot.x]), plot.by]
    by_seed = frame.astype({plot.y: float}).groupby([*keys, "seed"], sort=False)[plot.y].mean()
    table = by_seed.groupby(keys, sort=False).agg(["mean", "sem", "count"])
    half = (table["sem"] * t.ppf(0.975, (table["count"] - 1).clip(lower=1))).fillna(0.0)
    series = list(dict.fromkeys(frame[plot.by]))
    mean, width = (each.unstack(plot.by)[series] for each in (table["mean"], half))
    return mean, width


def curves(frame: pd.DataFrame, plot: Plot) -> list[Row]:
    """The means that a plot draws, a row an `x` and panel, a column a series."""
    if plot.kind == "points":
        frame = frame.assign(**{plot.x: "all, mean"})
    wide = means_of(frame, plot)[0].reset_index()
    rows = wide.iloc[:: max(1, len(wide) // MOST_SHOWN)].to_dict("records")
    return [{axis_words(str(key)): value for key, value in row.items()} for row in rows]


@look()
def draw_table(
    frame: pd.DataFrame, plot: Plot, *, title: str = "", levels: Sequence[float] = (),
    factors: Mapping[str, float] | None = None,
) -> Picture:  # fmt: skip
    """Draw a table; runs outside the feasible set are starred."""
    import matplotlib.pyplot as plt
    from matplotlib.container import BarContainer
    from matplotlib.ticker import MaxNLocator

    values = [None] if plot.panels is None else list(dict.fromkeys(frame[plot.panels]))
    height = max(3.4, 1.2 + 0.2 * frame[plot.by].nunique())  # the legend's
    size = (1.8 + 4.2 * len(values), 1.4 * height if plot.above else height)
    picture, (*top, grid) = plt.subplots(
        1 + bool(plot.above), len(values), figsize=size, sharex="col", sharey="row", squeeze=False,
        height_ratios=[1, 3] if plot.above else None,
    )  # fmt: skip
    labels = {
        name: _label(str(name), rows, plot) for name, rows in frame.groupby(plot.by, sort=False)
    }
    looks = dict(zip(labels.values(), series_looks([*labels]), strict=True))
    colours = {label: tint for label, (tint, _) in looks.items()}
    dashes = {label: dash for label, (_, dash) in looks.items()}
    drawn: Any = {"color": colours, "legend": False, "logx": plot.log_x, "logy": plot.log_y}
    for column, (axes, value) in enumerate(zip(grid, values, strict=True)):
        part = frame if value is None else frame[frame[plot.panels] == value]
        if plot.kind == "points":
            for name, label in labels.items():
                rows = part[part[plot.by] == name]
                axes.scatter(rows[plot.x], rows[plot.y], s=14, color=colours[label], label=label)
        else:
            mean, half = (
                table.reindex(columns=[*labels]).rename(columns=labels)
                for table in means_of(part, replace(plot, panels=None))
            )
            if plot.kind == "bars":
                mean.plot(ax=axes, kind="bar", rot=0, yerr=half, **drawn)
                bars = [item for item in axes.containers if isinstance(item, BarContainer)]
                for bar, dash in zip(bars, dashes.values(), strict=True):
                    for patch in bar:
                        patch.set(hatch=HATCHES[DASHES.index(dash)], edgecolor="white", linewidth=0)
            else:
                if mean.index.dtype.kind == "i":
                    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
                marker = "." if len(mean) <= MOST_SHOWN else ""
                mean.sort_index().plot(ax=axes, marker=marker, style=dashes, **drawn)
                low, high = (mean - half).sort_index(), (mean + half).sort_index()
                for label, shade in colours.items():
                    axes.fill_between(low.index, low[label], high[label], color=shade, alpha=0.18)
            for name, factor in (factors or {}).items():
                if name not in labels:
                    continue
                stated = factor * mean.sort_index()[labels[name]]
                shown = {"label": f"the paper: {factor:g} x {name}", "color": colours[labels[name]]}
                if plot.kind == "bars":
                    places = np.arange(len(stated))
                    axes.hlines(stated, places - 0.3, places + 0.3, linestyle=":", **shown)
                else:
                    axes.plot(stated, ":", **shown)
        for upper in (row[column] for row in top):
            shared = means_of(part, Plot(plot.x, str(plot.above), plot.by))[0].mean(axis=1)
            upper.bar(shared.index, shared, width=1.0, color=GREY)
            upper.set_ylabel(axis_words(str(plot.above)))
        axes.set_xlabel(axis_words(plot.x))
        axes.set_title("" if value is None else f"{axis_words(str(plot.panels))}: {value}")
    _draw_levels(grid, levels)
    for axes in grid:
        for axis in (axes.xaxis,) * plot.log_x + (axes.yaxis,) * plot.log_y:
            _logarithmic_ticks(axis)
    grid[0].set_ylabel(plot.y_words)
    star = "\n(* outside the feasible set)" * any(" *" in label for label in labels.values())
    heading = axis_words(plot.by) + star
    grid[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title=heading)
    lines = [fill(line, round(14 * size[0])) for line in title.splitlines()]
    picture.suptitle("\n".join(lines), fontsize=10, x=0.01, ha="left")
    return picture


def _draw_levels(grid: Any, levels: Sequence[float]) -> None:
    """Dotted lines; a level is only named where the curves would be flat for its being far."""
    grid[0].autoscale_view()
    from_axes = grid[0].get_yaxis_transform() - grid[0].transAxes  # the curves are from 0 to 1
    places = [from_axes.transform((0.0, level))[1] for level in levels]
    near = [level for level, place in zip(levels, places, strict=True) if -FAR < place < 1 + FAR]
    for axes in grid:
        dotted: Any = {"color": GREY, "linewidth": 1.0, "linestyle": ":"}
        for number, level in enumerate(near):
            text = None if number else "the paper's text"
            axes.axhline(level, zorder=0, label=text, **dotted)
        for level, place in zip(levels, places, strict=True):
            if level not in near:
                side = "above" if place > 1 else "below"
                axes.plot([], [], label=f"the paper's text: {level:g}, far {side}", **dotted)


def _logarithmic_ticks(axis: Any) -> None:
    """Plain numbers: two decades have too few ticks, eight too many for their labels."""
    from matplotlib.ticker import LogLocator

    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")
    low, high = axis.get_view_interval()
    few: Any = {"subs": (1, 2, 5)} if high < 100 * low else {"numticks": 6}
    axis.set_major_locator(LogLocator(**few))


def _label(name: str, rows: pd.DataFrame, plot: Plot) -> str:
    """A series in the legend: its makespan over time, whether it keeps the rules, what it lacks."""
    outside = "in_feasible_set" in rows and not rows["in_feasible_set"].astype(bool).all()
    missing = int(rows[plot.y].isna().sum())
    left_out = f" ({missing} of {len(rows)} rows without a value)" if missing else ""
    over_time = plot.x == "slot" and "makespan" in rows
    ends = rows.groupby("seed")["makespan"].first().mean() if over_time else 0.0
    makespan = f", makespan {ends:.0f}" if over_time else ""
    return axis_words(name) + makespan + " *" * outside + left_out

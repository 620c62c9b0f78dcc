"""One look for every picture: a palette that colour-blind readers can tell apart, plain axes."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from hindsched.errors import InputError
from hindsched.instances.io import write_bytes
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

P = ParamSpec("P")
R = TypeVar("R")

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#F0E442")
"""Okabe and Ito's colours, told apart under every common colour-vision deficiency."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
SEQUENTIAL = "YlGnBu"
"""Light for little, dark for much; reads the same in grey."""
GREY = "#8A8A8A"
DOTS_PER_INCH = 150
INSTALL = "pip install 'hindsched[plots]'"
NO_PICTURES = f"without pictures, for matplotlib is not installed: {INSTALL}"
RC = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.prop_cycle": "cycler('color', ['" + "', '".join(PALETTE) + "'])",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "hindsched",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


def has_matplotlib() -> bool:
    """Whether pictures can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


def check_matplotlib() -> None:
    """Say what to install where pictures cannot be drawn.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    if not has_matplotlib():
        raise InputError("pictures", "matplotlib", f"is not installed: {INSTALL}")


@contextmanager
def look() -> Iterator[None]:
    """Our settings for as long as the context lasts; only these are put back at its end.

    ``rc_context`` puts back all settings, among them ``interactive``, which a notebook's backend
    switches on the first time that something is drawn: nothing would be shown ever after.
    """
    import matplotlib as mpl

    before = {name: mpl.rcParams[name] for name in RC}
    mpl.rcParams.update(RC)
    try:
        yield
    finally:
        mpl.rcParams.update(before)


def common_look(draw: Callable[P, R]) -> Callable[P, R]:
    """Let a drawing function draw in the common look and leave matplotlib's settings alone."""

    @wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        check_matplotlib()
        with look():
            return draw(*args, **kwargs)

    return wrapper


def new_axes(width: float = 6.4, height: float = 3.6) -> Axes:
    """Axes of a new figure of the given size in inches."""
    return new_figure(width, height).subplots()


def new_figure(width: float, height: float) -> Figure:
    """A new figure of the given size in inches, shown where figures are shown."""
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height))


def whole_slots(axis: Any) -> None:
    """Put ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def colour(index: int) -> str:
    """Colour of a series by its position."""
    return PALETTE[index % len(PALETTE)]


def marker(index: int) -> str:
    """Marker of a series by its position, so that series differ by more than colour."""
    return MARKERS[index % len(MARKERS)]


def solution_of(found: Any) -> Solution:
    """The solution itself, or that of a result or run; `InputError` if it has none."""
    solution = found if isinstance(found, Solution) else getattr(found, "solution", None)
    if not isinstance(solution, Solution):
        raise InputError("solution", type(found).__name__, "must have a solution to draw")
    return solution


def save(picture: Axes | Figure | SubFigure, path: str | Path) -> None:
    """Write a figure, or the one that axes belong to, to a file by its suffix, and close it.

    Examples
    --------
    >>> import hindsched as hs
    >>> run = hs.simulate(hs.generate("oasis", seed=2), "oasis")
    >>> hs.plot.save(hs.plot.gantt(run), "run.png")
    """
    figure: Any = picture if hasattr(picture, "canvas") else picture.figure
    target = Path(path)
    kind = target.suffix.removeprefix(".") or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise InputError("output", str(path), "must end in .png, .svg or .pdf")
    data = render(figure, kind)
    write_bytes(data, path)


def render(figure: Figure | SubFigure, kind: str) -> bytes:
    """Draw a figure as the bytes of a file of this kind, and close it."""
    import matplotlib.pyplot as plt

    root = figure.get_figure(root=True)
    assert root is not None
    buffer = io.BytesIO()
    metadata: JsonObject = {"Date": None} if kind == "svg" else {}
    with look():
        root.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
    plt.close(root)
    return buffer.getvalue()

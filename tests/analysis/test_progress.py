"""One bar a call, and what it says is left."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from hindsched.analysis import progress
from hindsched.analysis.progress import progress_bar


@pytest.fixture
def clock(monkeypatch):
    """A clock on which every step takes three seconds."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.seconds)
    return now


def test_plain_lines_estimate_what_is_left(clock):
    stream = io.StringIO()
    with progress_bar(20, "bench", done=4, console=Console(file=stream, width=200)) as advance:
        for step in range(16):
            clock.seconds += 3.0
            advance(f"[task] {step}")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "bench: 6/20 [task] 1 (about 42 s left)"
    assert lines[-1] == "bench: 20/20 [task] 15 (done)"
    assert len(lines) == 8


def test_a_notebook_has_one_bar_that_is_drawn_anew(clock, monkeypatch):
    display = pytest.importorskip("IPython.display", reason="IPython is not installed")
    drawn, shown = [], []

    def show(html, display_id):
        shown.append(html.data)
        return SimpleNamespace(update=lambda html: drawn.append(html.data))

    monkeypatch.setattr(display, "display", show)
    with progress_bar(3, "comparing", console=SimpleNamespace(is_jupyter=True)) as advance:
        for name in ("<a>", "b", "c"):
            clock.seconds += 60.0
            advance(name)
    assert shown == ['<progress value="0" max="3"></progress> comparing: 0/3, begins']
    assert drawn == [
        '<progress value="1" max="3"></progress> comparing: 1/3, about 2 min left &lt;a&gt;',
        '<progress value="2" max="3"></progress> comparing: 2/3, about 60 s left b',
        '<progress value="3" max="3"></progress> comparing: 3/3, done',
    ]

"""One bar a call, and what it says is left."""

import io
from types import SimpleNamespace

from rich.console import Console

from hindsched.analysis import progress
from hindsched.analysis.progress import progress_bar


def test_plain_lines_estimate_what_is_left(monkeypatch):
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.seconds)
    stream = io.StringIO()
    with progress_bar(20, "bench", done=4, console=Console(file=stream, width=200)) as advance:
        for step in range(16):
            now.seconds += 3.0
            advance(f"[task] {step}")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "bench: 6/20 [task] 1 (about 42 s left)"
    assert lines[-1] == "bench: 20/20 [task] 15 (done)"
    assert len(lines) == 8

"""Results as JSON data and CSV, and the bar that says what is left."""

import io
import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from hindsched.analysis import compare
from hindsched.analysis.tables import jsonable, to_csv
from hindsched.solvers.door.status import Status


def test_numpy_enums_and_infinities():
    data = {
        "count": np.int64(3), "flag": np.bool_(True), "array": np.array([[1.0, math.inf]]),
        "nothing": math.nan, "status": Status.OPTIMAL, "path": Path("a/b"), "set": {"b", "a"},
        1: (2, 3),
    }  # fmt: skip
    assert json.loads(json.dumps(jsonable(data), allow_nan=False)) == {
        "count": 3, "flag": True, "array": [[1.0, None]], "nothing": None, "status": "optimal",
        "path": "a/b", "set": ["a", "b"], "1": [2, 3],
    }  # fmt: skip
    with pytest.raises(TypeError, match="object has no JSON form"):
        jsonable({"x": object()})


@pytest.mark.parametrize(
    ("text", "written"),
    [("=1+1", "'=1+1"), ("+cmd|'a", "'+cmd|'a"), ("-a", "'-a"), ("@SUM(A1)", "'@SUM(A1)"),
     ("x", "x"), ("-1.5", "-1.5"), ("a\x07", "a\\x07"), ("\u202ex", "\\u202ex")],
)  # fmt: skip
def test_text_in_tables_is_text_in_a_spreadsheet_too(text, written):
    assert to_csv(pd.DataFrame({"a": [text], "b": [-1.0]})).splitlines()[1] == f"{written},-1.0"


def test_plain_lines_estimate_what_is_left(monkeypatch):
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(compare.time, "monotonic", lambda: now.seconds)
    stream = io.StringIO()
    console = Console(file=stream, width=200)
    with compare.progress_bar(20, "bench", done=4, console=console) as advance:
        for step in range(16):
            now.seconds += 3.0
            advance(f"[task] {step}")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "bench: 6/20 [task] 1 (about 42 s left)"
    assert lines[-1] == "bench: 20/20 [task] 15 (done)"
    assert len(lines) == 8

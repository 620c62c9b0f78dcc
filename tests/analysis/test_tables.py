"""Results as JSON, CSV, notebook cards and rows by slot, and the bar that says what is left."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hindsched as hs
from hindsched.analysis.tables import (
    WorkerSpan,
    cell,
    job_spans,
    jsonable,
    slot_rows,
    spans_of,
    to_csv,
)
from hindsched.instances.gang.instance import GangInstance, gang_data
from hindsched.solvers.door.result import Status


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (np.float64("nan"), "-"), (math.inf, "inf"), (1.77632, "1.77632"), (True, "yes")],
)
def test_cells_are_for_people(value, text):
    assert cell(value) == text


def test_numpy_enums_and_infinities():
    data = {
        "count": np.int64(3), "flag": np.bool_(True), "array": np.array([[1.0, math.inf]]),
        "nothing": math.nan, "status": Status.OPTIMAL, "path": Path("a/b"),
        1: (2, 3),
    }  # fmt: skip
    assert json.loads(json.dumps(jsonable(data), allow_nan=False)) == {
        "count": 3, "flag": True, "array": [[1.0, None]], "nothing": None, "status": "optimal",
        "path": "a/b", "1": [2, 3],
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


# Rows per slot: what is used, what it costs where prices are posted, and which jobs run.


def rows_of(family, algorithm, **settings):
    run = hs.simulate(hs.generate(family), algorithm, settings=settings)
    return run, slot_rows(run.solution, run.price_path)


def test_posted_prices_are_means_over_the_servers_by_capacity():
    run, rows = rows_of("oasis", "oasis")
    instance = run.instance
    capacity = np.concatenate([instance.worker_capacity, instance.ps_capacity])
    prices = np.concatenate([run.prices["worker_capacity"], run.prices["ps_capacity"]])
    assert {row["slot"] for row in rows} == set(range(1, instance.horizon + 1))
    for row in rows:
        resource = instance.resources.index(row["resource"])
        here = prices[:, resource, row["slot"] - 1]
        mean = np.average(here, weights=capacity[:, resource])
        assert row["price"] == pytest.approx(mean, rel=1e-12)


def test_a_schedule_of_ten_million_slots_has_spans_and_no_rows_by_slot():
    rows = [{"name": "a", "submit": 0, "duration": 10**7, "gpus": 2}]
    rows.append({"name": "b", "submit": 5, "duration": 10, "gpus": 1})
    instance = GangInstance.parse(gang_data("long", rows, gpus=4))
    solution = hs.simulate(instance, "easy").solution
    assert slot_rows(solution) == []
    assert job_spans(solution) == {"a": [WorkerSpan(1, 10**7, 2.0)], "b": [WorkerSpan(6, 15, 1.0)]}


def test_spans_join_what_runs_on_with_as_many_workers():
    runs = [(3, 5, 1.0), (1, 2, 1.0), (6, 9, 2.0), (8, 9, 1.0), (12, 12, 1.0), (20, 20, 0.0)]
    whole = dict.fromkeys(range(1, 21), 0.0)
    for first, last, workers in runs:
        for slot in range(first, last + 1):
            whole[slot] += workers
    spans = spans_of(runs)
    laid_out = {slot: s.workers for s in spans for slot in range(s.first, s.last + 1)}
    assert laid_out == {slot: workers for slot, workers in whole.items() if workers}
    assert [(s.first, s.last) for s in spans] == [(1, 5), (6, 7), (8, 9), (12, 12)]

"""What makes a logged schedule impossible is found and named by row and moment, nothing else."""

from __future__ import annotations

from typing import Any

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from hindsched.analysis.audit.gang.verdict import find_breaches
from hindsched.instances.gang.from_log import instance_of_log
from hindsched.instances.traces.log import read_log
from hindsched.solutions.gang.solution import GangSolution, pool_rows

COLUMNS = ["job", "submit", "start", "end", "gpus"]


def log_of(*rows: tuple[Any, ...], columns: list[str] = COLUMNS, **options: Any) -> Any:
    return read_log(pd.DataFrame(list(rows), columns=columns), **options)


def test_too_many_gpus_at_a_moment() -> None:
    log = log_of(("a", 0, 0, 10, 4), ("b", 5, 8, 20, 3), ("c", 0, 9, 12, 1), gpus=5)
    found = find_breaches(log)
    assert found.counts == {"capacity": 1}
    breach = found.listed[0]
    assert (breach.row, breach.begin, breach.end, breach.found) == (2, "8", "10", 8)
    assert str(breach) == "row 2, the cluster: 8 GPUs held where there are 5 from 8 to 10"
    assert find_breaches(log_of(("a", 0, 0, 10, 4), ("b", 5, 8, 20, 3), gpus=7)).listed == ()


def test_servers_are_checked_one_by_one() -> None:
    columns = [*COLUMNS, "server"]
    rows = [("a", 0, 0, 10, 3, "x"), ("b", 0, 5, 9, 2, "x"), ("c", 0, 0, 9, 1, "y")]
    found = find_breaches(log_of(*rows, columns=columns, servers="x=4,y=4"))
    assert found.counts == {"server": 1}
    assert (found.listed[0].where, found.listed[0].begin) == ("server x", "5")
    alike = find_breaches(log_of(*rows, columns=columns, servers="2x4"))
    assert alike.counts == {"server": 1}  # servers of one size go by any name
    unknown = find_breaches(log_of(*rows, columns=columns, servers="z=4,y=4"))
    assert unknown.listed == ()
    assert "GPUs 1 of them have, such as x (`servers`)" in unknown.unchecked[0]
    silent = find_breaches(log_of(("a", 0, 0, 10, 3), servers="2x4"))
    assert "does not say which ones" in silent.unchecked[0]


def test_before_submission_and_too_short() -> None:
    columns = [*COLUMNS, "duration"]
    log = log_of(("a", 5, 3, 10, 1, 9), ("b", 0, 0, 5, 1, 5), columns=columns, gpus=4)
    found = find_breaches(log)
    assert found.counts == {"before submission": 1, "too short": 1}
    early, short = found.listed
    assert (early.row, early.found, early.begin) == (1, 2, "3")
    assert (short.row, short.found, short.allowed) == (1, 7, 9)
    assert find_breaches(log_of(("a", 5, 5, 14, 1, 9), columns=columns, gpus=4)).listed == ()


def test_jobs_that_are_not_judged_hold_gpus_too() -> None:
    rows = [("a", 0, 0, 10, 4), ("b", None, 2, 5, 1), ("c", 1, 8, None, 1)]
    found = find_breaches(log_of(*rows, gpus=4))
    assert [(b.begin, b.end) for b in found.listed] == [("2", "5"), ("8", "10")]
    assert find_breaches(log_of(*rows, gpus=5)).listed == ()


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(-1, 6), st.integers(1, 6), st.integers(1, 3)),
        min_size=1,
        max_size=8,
    ),
    st.integers(3, 9),
)
def test_breaches_agree_with_the_checker_of_solutions(
    rows: list[tuple[int, int, int, int]], gpus: int
) -> None:
    frame = pd.DataFrame(
        [(f"j{k}", s, s + w, s + w + p, g) for k, (s, w, p, g) in enumerate(rows)],
        columns=COLUMNS,
    )
    log = read_log(frame, gpus=gpus)
    found = find_breaches(log)
    instance = instance_of_log(log)
    if (log.runs["start"] < 0).any():  # before the log's zero: no slot of an instance
        assert found.counts["before submission"] > 0
        return
    place = pd.Index(log.jobs["job"]).get_indexer(log.runs["job"])
    held = pool_rows(place, *(log.runs[name].to_numpy() for name in ("start", "end", "gpus")))
    solution = GangSolution(instance, held)
    rules = {violation.rule for violation in solution.violations()}
    assert ("(2)" in rules) == ("before submission" in found.counts)
    assert ("(5)" in rules) == ("capacity" in found.counts)
    assert rules <= {"(2)", "(5)"}

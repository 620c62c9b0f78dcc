"""The facts of gang's schedules, recomputed from their rows."""

import pytest

import hindsched as hs
from hindsched.errors import InputError

INSTANCE = hs.named_instance("gang/small/j6-s1")


def test_use_by_slot_is_that_of_the_rows():
    solution = hs.simulate(INSTANCE, "fifo").solution
    expected = {}
    for rows in solution.assignments().values():
        for row in rows:
            first, last, gpus = solution.run_of(row)
            for slot in range(first, last + 1):
                expected[slot] = expected.get(slot, 0) + gpus
    assert {row["slot"]: row["used"] for row in solution.usage_rows()} == expected
    assert {row["capacity"] for row in solution.usage_rows()} == {INSTANCE.total_gpus}


@pytest.mark.parametrize("gpus", ["2", True, 0, -1, 1.0, 10**30])
def test_gpus_are_counted(gpus):
    rows = hs.simulate(INSTANCE, "fifo").solution.assignments()
    name = next(iter(rows))
    rows[name][0]["gpus"] = gpus
    with pytest.raises(InputError, match="gpus"):
        hs.build_solution(INSTANCE, rows)

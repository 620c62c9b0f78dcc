"""The programs of `dorm` and `sia` are recorded: the same rows as Pyomo makes of the same rules."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

import hindsched as hs
from hindsched.models import algebra
from hindsched.online.oasis.dorm import Dorm
from hindsched.online.rivals.sia import Sia
from hindsched.solvers.backends.standard_form import LinearProgram, compile_program

RUNS = [
    ("oasis", "dorm", Dorm, {"jobs": 9, "horizon": 8}),
    ("oasis", "sia", Sia, {"jobs": 9, "horizon": 8}),
    ("astraea", "sia", Sia, {"jobs": 6, "horizon": 8}),
    ("batchsched", "sia", Sia, {"jobs": 5, "servers": 2}),
]


def matrix(program: LinearProgram) -> Any:
    return program.matrix.toarray()


@pytest.mark.parametrize(("family", "name", "rival", "stream"), RUNS)
def test_recorded_programs_are_those_of_pyomo(family, name, rival, stream, monkeypatch):
    compared = []
    build = rival._program

    def record_and_compare(self, *facts):
        assert algebra.is_recording()
        recorded = build(self, *facts)

        def in_pyomo():
            algebra._is_recording.set(False)
            return compile_program(build(self, *facts))

        one, other = compile_program(recorded), copy_context().run(in_pyomo)
        for array in ("row_lower", "row_upper", "lower", "upper", "integer", "cost"):
            np.testing.assert_allclose(getattr(one, array), getattr(other, array), rtol=1e-14)
        np.testing.assert_array_equal(matrix(one), matrix(other))
        assert one.entries.data.all()  # a zero would change how HiGHS is given the program
        assert one.sign == other.sign == -1
        compared.append(one)
        return recorded

    monkeypatch.setattr(rival, "_program", record_and_compare)
    run = hs.simulate(hs.generate(family, seed=1, **stream), name)
    assert run.report["programs"] >= 3
    assert len([program for program in compared if len(program.columns) > 1]) >= 3

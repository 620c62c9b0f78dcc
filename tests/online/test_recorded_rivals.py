"""The programs of `dorm` and `sia` are recorded: the same rows as Pyomo makes of the same rules."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models import algebra
from hindsched.online.baselines.sia import Sia
from hindsched.online.oasis.dorm import Dorm
from hindsched.solvers.door.standard_form import LinearProgram, compile_program

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


def test_dorm_gives_no_more_ps_than_workers_where_workers_need_no_bandwidth() -> None:
    job = {
        "name": "j", "arrival": 1, "epochs": 1, "chunks": 2, "minibatches": 1,
        "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": 1}, "ps": {"gpu": 1},
        "utility": {"kind": "linear", "slope": -1, "intercept": 9},
    }  # fmt: skip
    servers = [{"name": name, "capacity": {"gpu": 1}} for name in ("one", "two")]
    instance = OasisInstance(
        name="no bandwidth", horizon=3, slot_seconds=3600, resources=("gpu", "net"),
        bandwidth_resource="net", worker_servers=servers[:1], ps_servers=servers, jobs=[job],
    )  # fmt: skip
    found = hs.simulate(instance, "dorm")  # refuses what breaks (7)
    assert found.solution.completion("j") == 2

"""Limits of time and memory: they stop what looks at them, and only that."""

import subprocess
import sys
import time

import numpy as np
import pytest

import hindsched as hs
from hindsched.errors import InputError
from hindsched.instances.io import write
from hindsched.limits import (
    OutOfTime,
    check_memory,
    check_time,
    time_left,
    time_limit,
    uncounted,
)
from hindsched.solvers.door import api
from hindsched.solvers.door.result import StoppedBy
from hindsched.solvers.methods.base import certain
from tests.hostile import EXAMPLES


def run_for_ever():
    while True:
        check_time()


def test_a_loop_that_looks_is_stopped():
    with pytest.raises(OutOfTime, match=r"^stopped after 0\.02 s"), time_limit(0.02):
        run_for_ever()
    check_time()  # the limit ends with its block


def test_an_inner_limit_does_not_replace_the_outer_one():
    def inside():
        with time_limit(60):
            assert time_left(5.0) <= 0.03
            run_for_ever()

    with pytest.raises(OutOfTime, match=r"^stopped after 0\.03 s"), time_limit(0.03):
        inside()
    assert time_left(5.0) == 5.0


def test_what_is_uncounted_counts_against_no_limit():
    with time_limit(0.2):
        with uncounted():
            time.sleep(0.25)
            check_time()
        assert 0.05 < time_left(5.0) < 0.2


def test_what_does_not_fit_is_said_before_it_is_built():
    with pytest.raises(InputError, match=r"prices: about 9\.31e\+05 GB: must fit into the .* left"):
        check_memory("prices", 1e15)
    check_memory("prices", 1.0)


@pytest.mark.parametrize("family", EXAMPLES)
def test_the_certain_bound_contains_the_optimum(family):
    instance = hs.named_instance(EXAMPLES[family])
    best = hs.solve(instance, work_limit=20)
    bound = instance.certain_bound()
    assert best.objective is not None
    assert best.objective <= bound if instance.sense == "max" else best.objective >= bound
    known = certain(instance, best.formulation, "auto")
    assert known.bound == bound
    assert (known.solution is not None) == (instance.sense == "max")


def says(monkeypatch, method):
    monkeypatch.setattr(api, "methods", lambda family: {"auto": method})
    return hs.named_instance(EXAMPLES["oasis"])


def test_a_method_without_memory_says_what_is_certain(monkeypatch):
    instance = says(monkeypatch, lambda *_: np.ones(1 << 40))
    result = hs.solve(instance)
    assert result.stopped_by == StoppedBy.MEMORY_LIMIT
    assert result.bound == instance.certain_bound()


@pytest.mark.parametrize(("command", "unneeded"), [
    ("list families", {"numba", "cvxpy", "pyomo", "highspy"}), ("model", {"numba", "cvxpy"}),
    ("describe", {"numba", "cvxpy", "pyomo"}), ("solve --method milp --time-limit 9", {"cvxpy"}),
    ("simulate --algorithm astraea", {"cvxpy"}),
])  # fmt: skip
def test_a_command_loads_what_it_needs(command, unneeded, tmp_path):
    """Loading counts, and takes longer than many a limit."""
    path = tmp_path / "x.json"
    write(hs.named_instance(EXAMPLES["astraea"]), path)
    word, *options = command.split()
    given = [word, *options, *([] if word == "list" else [str(path)])]
    code = (
        f"import sys; from hindsched.cli.app import run; assert run({given}) == 0\n"
        f"assert not {unneeded} & set(sys.modules), {unneeded} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)

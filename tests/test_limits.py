"""Limits of time and memory: they stop what does not stop by itself, and only that."""

import importlib
import json
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest

import hindsched as hs
from hindsched import limits, memory
from hindsched.cli.app import run
from hindsched.errors import InputError
from hindsched.instances.io import write
from hindsched.limits import OutOfTime, overrun, planned, time_left, time_limit
from hindsched.memory import LEAST_MEMORY, check_memory, free_memory, memory_limit, parse_bytes
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door import api
from hindsched.solvers.door.kept import keep
from hindsched.solvers.door.status import StoppedBy
from hindsched.solvers.families.gang import methods
from hindsched.solvers.methods.base import certain
from tests.hostile import EXAMPLES, hostile


def run_for_ever():
    while True:
        pass


def test_a_loop_is_stopped():
    with pytest.raises(OutOfTime, match=r"^0\.02 s$"), time_limit(0.02):
        run_for_ever()


def test_an_alarm_that_compiled_code_wraps_in_its_own_error_is_the_limit():
    def compiled():
        try:
            run_for_ever()
        except BaseException as alarm:
            raise SystemError("returned a result with an exception set") from alarm

    with pytest.raises(OutOfTime, match=r"^0\.02 s$"), time_limit(0.02):
        compiled()


def test_the_limit_ends_with_its_block():
    """Stopped or not, nothing arrives later: many short blocks, some over, some not."""
    stopped = 0
    for number in range(80):
        try:
            with time_limit(0.005):
                end = time.perf_counter() + 0.01 * (number % 4)
                while time.perf_counter() < end:
                    pass
        except OutOfTime:
            stopped += 1
    time.sleep(0.01)
    assert 0 < stopped < 80


def test_an_inner_limit_does_not_replace_the_outer_one():

    def inside():
        with time_limit(60):
            assert time_left(5.0) <= 0.03
            run_for_ever()

    with pytest.raises(OutOfTime, match=r"^0\.03 s$"), time_limit(0.03):
        inside()
    assert time_left(5.0) == 5.0


def test_an_error_inside_stays_what_it_is():
    with pytest.raises(KeyError), time_limit(60):
        raise KeyError


def test_an_allocation_beyond_the_limit_fails_and_the_next_one_does_not():
    held = LEAST_MEMORY
    with memory_limit(held), pytest.raises(MemoryError):
        np.ones(100 << 20)
    assert np.ones(1 << 20).size


def test_free_memory_is_what_the_limit_leaves():
    before = free_memory()
    with memory_limit(before // 2):
        assert free_memory() < before


def test_what_does_not_fit_is_said_before_it_is_built():
    with pytest.raises(InputError, match=r"prices: about 909 TB: must fit into the memory .* left"):
        check_memory("prices", 1e15)
    check_memory("prices", 1.0)


@pytest.mark.parametrize("text", ["0", "1", "2X", "-1G", "", "1e9", "G", "1" * 40])
def test_sizes_that_are_none(text):
    with pytest.raises(InputError, match="memory-limit: "):
        parse_bytes(text)


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


@pytest.mark.parametrize("formulation", ["non-preemptive", "preemptive,makespan"])
def test_a_bound_of_gang_that_is_stopped_at_once_has_a_certificate(formulation, monkeypatch):
    """Whatever of the replays and the climb of the prices a limit lets happen."""
    instance = hs.named_instance(EXAMPLES["gang"])
    hs.solve(instance, "bound", formulation=formulation, work_limit=1)
    monkeypatch.setattr(methods, "incumbents", lambda *_: run_for_ever())
    monkeypatch.setattr(limits, "OVERRUN_SECONDS", 0.05)
    result = hs.solve(instance, "bound", formulation=formulation, time_limit=0.05)
    assert result.stopped_by == StoppedBy.TIME_LIMIT
    assert result.certificate is not None
    assert result.bound == verify_certificate(instance, result.certificate.to_dict()).bound > 0


@pytest.mark.parametrize("work", [0, 1, 3])
def test_a_bound_of_gang_with_little_work_has_a_certificate(work):
    instance = hs.named_instance(EXAMPLES["gang"])
    result = hs.solve(instance, "bound", work_limit=work)
    assert result.certificate is not None
    own = sum(job.duration * job.weight for job in instance.jobs)
    assert result.bound >= own * (1 - 1e-8)


@pytest.mark.parametrize("family", ["oasis", "batchsched", "astraea", "edgecloud"])
def test_a_method_stopped_in_the_middle_says_what_is_certain(family, monkeypatch):
    instance = hostile(family)
    monkeypatch.setattr(limits, "OVERRUN_SECONDS", 0.05)
    result = hs.solve(instance, "milp", time_limit=0.05)
    assert result.stopped_by == StoppedBy.TIME_LIMIT
    assert result.bound is not None
    if instance.sense == "max":
        assert result.objective is not None


@pytest.mark.parametrize("passing", [OutOfTime, KeyboardInterrupt, MemoryError])
def test_pyomo_says_nothing_of_a_limit_that_stops_a_rule(passing, capsys):
    def rule(model, index):
        raise passing("now")

    model = pyo.ConcreteModel()
    with pytest.raises(passing):
        model.row = pyo.Constraint([1], rule=rule)
    seen = capsys.readouterr()
    assert seen.out + seen.err == ""


def test_pyomo_still_says_which_rule_is_wrong(caplog):
    def rule(model, index):
        raise ValueError("wrong")

    model = pyo.ConcreteModel()
    with caplog.at_level("ERROR", "pyomo.core"), pytest.raises(ValueError, match="wrong"):
        model.row = pyo.Constraint([1], rule=rule)
    assert "Rule failed when generating expression for Constraint row" in caplog.text


def test_what_a_method_kept_survives_the_limit(monkeypatch):
    instance = hs.named_instance(EXAMPLES["oasis"])
    found = hs.solve(instance, time_limit=0.5)

    def method(*arguments):
        keep(found)
        while True:
            pass

    monkeypatch.setattr(api, "methods", lambda family: {"auto": method})
    monkeypatch.setattr(limits, "OVERRUN_SECONDS", 0.05)
    result = hs.solve(instance, time_limit=0)
    assert (result.objective, result.bound) == (found.objective, found.bound)
    assert result.certificate == found.certificate


def test_a_method_without_memory_says_what_is_certain(monkeypatch):
    instance = hs.named_instance(EXAMPLES["oasis"])

    def method(*arguments):
        return np.ones(1 << 40)

    monkeypatch.setattr(api, "methods", lambda family: {"auto": method})
    result = hs.solve(instance, memory_limit=1 << 30)
    assert result.stopped_by == StoppedBy.MEMORY_LIMIT
    assert result.bound == instance.certain_bound()


def test_a_method_that_stops_without_a_bound_says_what_is_certain(monkeypatch):
    instance = hs.named_instance(EXAMPLES["oasis"])

    def method(*arguments):
        return replace(certain(*arguments[:2], "auto"), bound=None)

    monkeypatch.setattr(api, "methods", lambda family: {"auto": method})
    assert hs.solve(instance, time_limit=1).bound == instance.certain_bound()


def test_a_method_without_time_to_build_says_what_is_certain(monkeypatch):
    monkeypatch.setattr(memory, "FASTEST_BUILDING", 1)
    monkeypatch.setattr(memory, "SURELY_THERE", 0)
    result = hs.solve(hostile("oasis"), time_limit=60)
    assert result.stopped_by is StoppedBy.TIME_LIMIT
    assert (result.objective, result.bound) == (0, hostile("oasis").certain_bound())


def test_a_command_without_time_to_build_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(memory, "FASTEST_BUILDING", 1)
    monkeypatch.setattr(memory, "SURELY_THERE", 0)
    write(hostile("oasis"), tmp_path / "x.json")
    assert run(["model", str(tmp_path / "x.json"), "--time-limit", "600"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: the program of {hostile('oasis').name}: about ")
    assert error.endswith("or raise --time-limit\n")
    assert error.count("\n") == 1


def test_what_a_command_did_before_counts(monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: clock[0])
    alone = overrun(10)
    with limits.command(10, began=1000.0):
        assert overrun(10) == alone == 1.1 * 10 + 1
        assert [planned(limit) for limit in (0, 0.5, 10)] == [0, 0.5, 10]
        clock[0] = 1006.0
        assert overrun(10) == pytest.approx(1.2 * 10 + 2 - limits.SECONDS_TO_END - 6)
        assert overrun(2) == 1.1 * 2 + 1  # a part of the work has its own limit
        assert not limits.nobody_asked()
        clock[0] = 1013.0
        assert overrun(10) == 5  # half the limit in any case
        assert planned(10) == pytest.approx(5 / 1.1)
    assert overrun(10) == alone
    assert limits.nobody_asked()


def test_a_command_counts_from_the_start_of_its_process(monkeypatch, capsys):
    seen = []
    monkeypatch.setattr("hindsched.cli.limits.overrun", lambda seconds: seen.append(seconds))
    monkeypatch.setattr(
        "hindsched.cli.limits.whole_command",
        lambda *given: seen.append(given) or limits.command(*given),
    )
    assert run(["list", "families", "--time-limit", "60"], began=12.5) == 0
    assert seen == [(60.0, 12.5), 60.0]


@pytest.mark.parametrize(("command", "unneeded"), [
    ("list families", {"numba", "cvxpy", "pyomo", "highspy"}), ("model", {"numba", "cvxpy"}),
    ("describe", {"numba", "cvxpy", "pyomo"}), ("solve --method milp", {"cvxpy"}),
    ("simulate --algorithm astraea", {"cvxpy"}),
])  # fmt: skip
def test_a_command_loads_what_it_needs(command, unneeded, tmp_path):
    """Loading counts, and takes longer than many a limit."""
    path = tmp_path / "x.json"
    write(hs.named_instance(EXAMPLES["astraea"]), path)
    word, *options = command.split()
    given = [word, *options, *([] if word == "list" else [str(path)]), "--time-limit", "9"]
    code = (
        f"import sys; from hindsched.cli.app import run; assert run({given}) == 0\n"
        f"assert not {unneeded} & set(sys.modules), {unneeded} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_every_command_has_the_limits(monkeypatch, capsys):
    monkeypatch.setattr("hindsched.cli.generate.parse_settings", lambda *_: run_for_ever())
    assert run(["generate", "oasis", "-o", "x.json", "--time-limit", "0.2"]) == 1
    assert capsys.readouterr().err == "error: stopped after 0.2 s (--time-limit)\n"
    assert run(["list", "instances", "--time-limit", "-1"]) == 2
    assert "time-limit" in capsys.readouterr().err
    assert run(["list", "families", "--time-limit", "60", "--memory-limit", "1T", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_a_module_that_is_loading_is_not_broken(tmp_path, monkeypatch):
    """Half a module would stay so: its second import would find the registries of the first."""
    (tmp_path / "slow_to_load.py").write_text(
        "import time\nend = time.monotonic() + 0.4\n"
        "while time.monotonic() < end:\n    pass\nloaded = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def load_and_go_on():
        importlib.import_module("slow_to_load")
        while True:
            pass

    with pytest.raises(OutOfTime), time_limit(0.05):
        load_and_go_on()
    assert sys.modules.pop("slow_to_load").loaded


@pytest.mark.parametrize(("error", "told"), [(OutOfTime, []), (ValueError, [ValueError])])
def test_an_alarm_that_a_destructor_swallows_is_not_told(error, told, monkeypatch):
    """It comes again; a traceback on the way would be of a command that ends as it should."""
    heard = []
    hook = limits.without_alarms(lambda unraisable: heard.append(unraisable.exc_type))
    monkeypatch.setattr(sys, "unraisablehook", hook)

    class Ending:
        def __del__(self):
            raise error

    Ending()
    assert heard == told

"""A run of an algorithm that is slow, or never ends, costs its row and nothing else."""

import json
import time

import pytest

import hindsched as hs
from hindsched.analysis import tasks
from hindsched.analysis.plan import plan_tasks
from hindsched.analysis.spans import Span, job_spans, spans_of
from hindsched.cli.app import run
from hindsched.instances.gang.instance import GangInstance, gang_data
from hindsched.instances.io import write

INSTANCE = hs.generate("oasis", preset="small", seed=1)
LATE = r"time limit: "


class Slow(hs.OnlineAlgorithm):
    """Takes its time in every slot."""

    def start(self, environment):
        pass

    def step(self, slot, arrivals):
        time.sleep(0.15)
        return hs.Decision()


def compared(algorithms, **options):
    found = hs.compare(
        INSTANCE, algorithms, method="bound", time_limit=0.2, progress=False, **options
    )
    return found.instances[0]


def test_a_slow_run_fails_and_the_others_count():
    found = compared(["fifo", Slow, "drf"], run_limit=0.2)
    [error] = found.algorithm("Slow").errors
    assert error == "time limit: not finished after 0.2 s"
    for name in ("fifo", "drf"):
        assert found.algorithm(name).ratio.exists


def test_without_a_limit_nothing_is_stopped():
    assert compared([Slow]).algorithm("Slow").ratio.exists


def test_the_time_limit_of_bench_is_for_runs_too(tmp_path, capsys):
    own = tmp_path / "own.py"
    own.write_text(
        "import hindsched as hs\n"
        "import time\n"
        "class Slow(hs.OnlineAlgorithm):\n"
        "    def start(self, environment): pass\n"
        "    def step(self, slot, arrivals):\n"
        "        time.sleep(0.2); return hs.Decision()\n"
    )
    write(INSTANCE, tmp_path / "x.json")
    folder = str(tmp_path / "out")
    limit = ["--time-limit", "0.3", "--json"]
    given = [str(tmp_path / "x.json"), "--algorithm", f"{own}:Slow", "--algorithm", "fifo"]
    bench = ["--method", "bound", "--workers", "0", "--out", folder]
    assert run(["bench", *given, *bench, *limit]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert [LATE in line for line in answer["failed"]] == [True]
    assert answer["missing"] == 1  # a resumed run tries it again, with the same limit
    assert run(["bench", "--resume", "--workers", "0", "--out", folder, "--json"]) == 1
    again = json.loads(capsys.readouterr().out)
    assert again["failed"] == answer["failed"]
    ratios = {row["algorithm"]: row["ratio"] for row in again["instances"][0]["algorithms"]}
    assert ratios[f"{own}:Slow"] is None
    assert ratios["fifo"] is not None


@pytest.mark.parametrize(("algorithm", "needed"), [("batchsched", False), ("drf", True)])
def test_the_rivals_problem_is_bounded_only_where_a_rival_runs(algorithm, needed):
    """It is a second solve, with a limit of its own."""
    instance = hs.generate("batchsched", jobs=2)
    [solve, *_] = plan_tasks([instance], [algorithm])
    assert solve.has_rivals is needed
    assert (tasks.run_task(instance, solve)["rivals"] is not None) is needed


def test_a_schedule_of_ten_million_slots_has_spans_and_no_rows_by_slot():
    rows = [{"name": "a", "submit": 0, "duration": 10**7, "gpus": 2}]
    rows.append({"name": "b", "submit": 5, "duration": 10, "gpus": 1})
    instance = GangInstance.parse(gang_data("long", rows, gpus=4))
    solution = hs.simulate(instance, "easy").solution
    assert tasks.slot_rows(solution) == []
    assert job_spans(solution) == {"a": [Span(1, 10**7, 2.0)], "b": [Span(6, 15, 1.0)]}


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


class Multi(hs.OnlineAlgorithm):
    """Fails with a message of two lines."""

    def start(self, environment):
        raise ValueError("first\nsecond")

    def step(self, slot, arrivals):
        raise AssertionError


def test_an_error_of_several_lines_is_recorded_in_one():
    task = tasks.Task("online", INSTANCE.name, "multi", own=Multi)
    error = tasks.run_task(INSTANCE, task)["error"]
    assert error.startswith("ValueError: first second (")
    assert "\n" not in error

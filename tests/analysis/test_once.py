"""What is read, built or judged is so once: `verify` its files, `ratio` its schedules."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hindsched as hs
from hindsched import kernel
from hindsched.analysis.tasks import ONLINE, Task, run_task
from hindsched.cli.app import run
from hindsched.instances import io
from hindsched.kernel import reading
from hindsched.kernel.problem import FamilyProblem
from hindsched.solutions.base import Solution, solution_class

Calls = Counter[str]


@pytest.fixture
def calls() -> Calls:
    return Counter()


def count(
    monkeypatch: pytest.MonkeyPatch, calls: Calls, owner: Any, name: str,
    what: Callable[..., str | None] = lambda *_: None,
) -> None:  # fmt: skip
    """Count calls of a function under its name, or what `what` makes of the arguments."""
    called = getattr(owner, name)

    def counted(*given: Any, **more: Any) -> Any:
        calls[what(*given) or name] += 1
        return called(*given, **more)

    monkeypatch.setattr(owner, name, counted)


def test_verify_reads_each_file_once_and_asks_the_kernel_once_of_each(
    instance: Any, solution: Solution, certificate: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, calls: Calls,
) -> None:  # fmt: skip
    paths = [str(tmp_path / name) for name in ("instance.json", "solution.json", "bound.json")]
    hs.write(instance, paths[0])
    hs.write_solution(solution, paths[1])
    hs.write_certificate(certificate, paths[2])
    problem: type[FamilyProblem] = kernel.family_problem("oasis")
    count(monkeypatch, calls, io, "read_bytes", lambda path, *_: Path(path).name)
    count(monkeypatch, calls, reading, "_number")  # the kernel's own reader of files
    for name in ("__init__", "check", "bound"):
        count(monkeypatch, calls, problem, name)
    assert run(["verify", paths[0], paths[1], "--prices", paths[2], "--exact"]) == 0
    files = {Path(path).name: 1 for path in paths}
    assert calls == {**files, "__init__": 1, "check": 1, "bound": 1}


@pytest.mark.parametrize("family", hs.families())
def test_a_run_builds_its_schedule_once_and_the_kernel_judges_it_once(
    family: str, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    instance, algorithm = hs.generate(family, seed=2, jobs=4), next(iter(hs.algorithms(family)))
    hs.simulate(instance, algorithm)  # what a process does once: it compiles kernels by a tiny run
    count(monkeypatch, calls, kernel, "check")
    count(monkeypatch, calls, solution_class(family), "__init__", lambda _, __, *rows: repr(rows))
    record = run_task(instance, Task(ONLINE, instance.name, algorithm))
    assert record["status"] == "ok"
    assert set(calls.values()) == {1}


@pytest.mark.parametrize("family", ["oasis", "astraea"])
def test_ratio_has_no_schedule_judged_twice(
    family: str, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    instance = hs.generate(family, seed=2, jobs=4)
    hs.simulate(instance, family)
    count(monkeypatch, calls, kernel, "check", lambda _, solution: json.dumps(solution))
    hs.ratio(instance, [family], progress=False)
    assert set(calls.values()) == {1}
    assert len(calls) <= 5  # of nobody, of the search, the program and the run

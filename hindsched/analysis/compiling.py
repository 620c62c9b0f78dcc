"""Compiling the kernels of whole families, several at once, before a sweep or once for a machine.

``python -m hindsched.analysis.compiling`` reads lines ``FAMILY [ALGORITHM...]``, compiles what
solving a family and these of its algorithms need, and answers each with a line. A few such
processes use all cores; each takes family after family, for loading numba takes seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from hindsched.analysis.tasks import Task
from hindsched.errors import INTERRUPTED
from hindsched.instances.base import Instance
from hindsched.kernel_cache import KERNELS
from hindsched.online.registry import algorithms
from hindsched.solvers.compiling import REPLAYS, is_compiled

Work = dict[str, list[str]]
"""Algorithms by family."""


def work_of(tasks: Iterable[Task], instances: Iterable[Instance]) -> Work:
    """Families and registered algorithms that tasks need.

    Parameters
    ----------
    tasks : iterable of Task
        The tasks.
    instances : iterable of Instance
        The instances that they name.
    """
    family_of = {instance.name: instance.family for instance in instances}
    found: dict[str, dict[str, None]] = {}
    for task in tasks:
        family = family_of[task.instance]
        names = found.setdefault(family, {})
        if task.algorithm in algorithms(family):
            names[str(task.algorithm)] = None
    return {family: list(names) for family, names in found.items()}


def not_compiled(work: Mapping[str, Sequence[str]]) -> Work:
    """What of some work this machine has not compiled yet, without families that it has.

    Parameters
    ----------
    work : mapping
        Algorithms by family.
    """
    found: Work = {}
    for family, names in work.items():
        missing = [name for name in names if not is_compiled(f"{family} {name}")]
        if missing or not is_compiled(f"{family} solve"):
            found[family] = missing
    return found


def compile_work(
    work: Mapping[str, Sequence[str]],
    *,
    workers: int,
    advance: Callable[[str], None] | None = None,
) -> None:
    """Compile the kernels of families, several at once.

    A process that fails leaves its family to the runs that need it, which then say why.

    Parameters
    ----------
    work : mapping
        Algorithms by family.
    workers : int
        Processes at once.
    advance : callable, optional
        Is told of each family that is done.
    """

    def size(family: str) -> int:
        return sum(source.stat().st_size for source in (KERNELS / family).rglob("*.py"))

    waiting = deque(sorted(work, key=size, reverse=True))  # the longest first

    def take() -> str | None:
        try:
            return waiting.popleft()
        except IndexError:
            return None

    def compile_in_turn(_: int) -> None:
        family = take()
        while family is not None:
            with (
                suppress(BrokenPipeError),  # it died before it had read its line
                subprocess.Popen(
                    [sys.executable, "-m", "hindsched.analysis.compiling"],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    text=True,
                ) as process,
            ):  # fmt: skip
                is_alive = True
                while family is not None and is_alive:
                    is_alive = _is_done(process, [family, *work[family]])
                    if advance is not None:
                        advance(family)
                    family = take()
            if process.returncode in (INTERRUPTED, -signal.SIGINT):  # here, or while it was loading
                return

    count = max(1, min(workers, len(work)))
    with ThreadPoolExecutor(max_workers=count) as pool:
        try:
            list(pool.map(compile_in_turn, range(count)))
        finally:
            waiting.clear()


def _is_done(process: subprocess.Popen[str], names: Sequence[str]) -> bool:
    """Have a process compile a family; False if it died."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(" ".join(names) + "\n")
        process.stdin.flush()
    except OSError:
        return False
    return bool(process.stdout.readline())


def main(family: str, *names: str) -> None:
    """Compile one family's kernels in this process."""
    from hindsched.online.simulator import compile_simulation
    from hindsched.solvers.door.api import compile_replays, compile_solve

    for name in names:
        if name == REPLAYS:
            compile_replays(family)
        else:
            compile_simulation(family, name)
    compile_solve(family)


def _answer_lines() -> None:
    """Compile family after family; what solvers print is no answer."""
    with os.fdopen(os.dup(1), "w") as answers, open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        for line in sys.stdin:
            main(*line.split())
            print(line, end="", file=answers, flush=True)


if __name__ == "__main__":
    try:
        _answer_lines()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)

"""Compiling the kernels of whole families, several at once, before a sweep or once for a machine.

``python -m hindsched.analysis.compiling FAMILY [ALGORITHM...]`` compiles what solving a family and
these of its algorithms need; a process a family is what uses all cores.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from hindsched.analysis.tasks import Task
from hindsched.instances.base import Instance
from hindsched.online.registry import algorithms
from hindsched.online.simulator import compile_simulation
from hindsched.solvers.api import REPLAYS, compile_replays, compile_solve
from hindsched.solvers.compiling import KERNELS, is_compiled

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
    """Compile the kernels of families, each in a process of its own.

    A process that fails leaves its work to the runs that need it, which then say why.

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

    def compile_one(family: str) -> None:
        command = [sys.executable, "-m", "hindsched.analysis.compiling", family, *work[family]]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if advance is not None:
            advance(family)

    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        list(pool.map(compile_one, sorted(work, key=size, reverse=True)))  # the longest first


def main(family: str, *names: str) -> None:
    """Compile one family's kernels in this process."""
    for name in names:
        if name == REPLAYS:
            compile_replays(family)
        else:
            compile_simulation(family, name)
    compile_solve(family)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)

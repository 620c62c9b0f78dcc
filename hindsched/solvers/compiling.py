"""Kernels compile before any clock starts, once a machine.

On a fresh machine numba would compile inside time limits and inside the times of decisions. So
whoever runs work that kernels do runs it on tiny instances first, and leaves a mark beside numba's
cache that later processes see; where no folder can be written the mark is the process' own.
``HINDSCHED_COMPILE=later`` leaves compiling to the calls themselves.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hindsched.errors import HindschedError
from hindsched.instances.base import Instance
from hindsched.instances.generators.registry import family_generator
from hindsched.limits import uncounted
from hindsched.solvers.door import work

KERNELS = Path(__file__).parent / "kernels"
QUIET_SECONDS = 1.0
EXPECTED_SECONDS = 10, 40  # to compile for an algorithm, for a solve, on an idle machine
_done: set[str] = set()
_running: list[str] = []


def compile_first(
    what: str, run: Callable[[Instance], object], family: str, *, jobs: int | None = None
) -> None:
    """Run work on a family's tiny instances, unless it is compiled already.

    `what` names the work: ``oasis solve``; `jobs` is how many of an instance's are left. What `run`
    refuses is left to the run that counts, which will refuse it too. An interrupt is raised.
    """
    if is_compiled(what):
        return
    began, expected = time.monotonic(), EXPECTED_SECONDS[what.endswith(" solve")]
    line = f"compiling kernels for {what}, once on this machine: some {expected} s"
    timer = threading.Timer(QUIET_SECONDS, _announce, (line,))
    is_first = not _running
    if is_first:  # what takes a moment is not worth a line
        timer.start()
    _running.append(what)
    is_done = False
    try:
        with work.catch_interrupt() as asked, work.stopping_at_once(work.interruption):
            with uncounted(), suppress(HindschedError):
                for instance in tiny_instances(family, jobs=jobs):
                    run(instance)
                is_done = True
            if asked.is_set():  # while a program was built, or where LLVM drops what is raised
                raise work.interruption()
    finally:
        _running.pop()
        timer.cancel()
        if is_first and time.monotonic() - began > QUIET_SECONDS:
            _announce(
                f"compiled in {time.monotonic() - began:.0f} s, which no time of a solve counts"
            )
    if not is_done:
        return
    _done.add(what)
    with suppress(OSError):  # where nothing can be written the process remembers
        _mark(what).parent.mkdir(parents=True, exist_ok=True)
        _mark(what).touch()


def _announce(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def is_compiled(what: str) -> bool:
    """Whether some work's kernels were compiled on this machine, or are being compiled here."""
    later = os.environ.get("HINDSCHED_COMPILE") == "later"
    return later or bool(_running) or what in _done or _mark(what).exists()


def tiny_instances(family: str, *, jobs: int | None = None) -> Sequence[Instance]:
    """Members of the family's suite ``small`` that differ in kind, with their first `jobs` jobs."""
    kinds = _kinds(family)
    return kinds if jobs is None else [kind.with_jobs(kind.jobs[:jobs]) for kind in kinds]


@cache
def _kinds(family: str) -> Sequence[Instance]:
    """Whole members, drawn once: drawing costs more than running an algorithm on them."""
    members = family_generator(family).suites["small"]()
    return (*members[:-1:3], members[-1])


def _mark(what: str) -> Path:
    """The file that says that some work was compiled here, beside numba's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or home)
    return folder / "hindsched-compiled" / _version() / what.replace(" ", "-")


@cache
def _version() -> str:
    """What compiled kernels depend on: machine, interpreter, numba, and the kernels' sources."""
    facts = [platform.machine(), platform.processor(), platform.python_version(), version("numba")]
    for source in sorted(KERNELS.rglob("*.py")):
        facts.append(f"{source} {source.stat().st_mtime_ns} {source.stat().st_size}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]

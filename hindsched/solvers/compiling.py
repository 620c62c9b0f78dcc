"""Kernels compile before any clock starts, once a machine.

Numba compiles a kernel when it is first called and keeps it in its cache. On a fresh machine that
would happen inside time limits and inside the times of decisions. So whoever runs work that kernels
do runs it on tiny instances first, until nothing is left to compile, and leaves a mark beside the
cache: a later process sees the mark and begins at once. Without a folder that can be written the
mark is the process' own. ``HINDSCHED_COMPILE=later`` leaves compiling to the calls themselves.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hindsched.compiler_clock import seconds_of_compiling
from hindsched.errors import InputError
from hindsched.instances.base import Instance, family_module
from hindsched.instances.io import write_bytes
from hindsched.kernel_cache import KERNELS, cache_folder, stamps_of

REPLAYS = "replays"
"""Work of a family beside its algorithms: to run reported decisions again."""
SHORT = 0.5
"""Seconds that a run on a tiny instance is given."""
MOST_RUNS = 8
"""Runs on one tiny instance at most: one that compiles ends sooner, the next gets further."""
_done: set[str] = set()
_running: list[str] = []


def is_compiled(what: str) -> bool:
    """Whether the kernels of some work were compiled on this machine, or are being compiled here.

    Parameters
    ----------
    what : str
        The work, as `compile_first` got it.
    """
    later = os.environ.get("HINDSCHED_COMPILE") == "later"
    return later or bool(_running) or what in _done or _mark(what).exists()


def compile_first(
    what: str,
    run: Callable[[Instance], object],
    family: str,
    *,
    most_runs: int = MOST_RUNS,
    jobs: int | None = None,
) -> None:
    """Run work on a family's tiny instances until its kernels are compiled, if they are not yet.

    Parameters
    ----------
    what : str
        Name of the work: ``oasis solve``.
    run : callable
        Does it on an instance, within about `SHORT` seconds. What it raises is left to the run that
        counts, which will raise it too.
    family : str
        Whose instances.
    most_runs : int
        Runs on one instance; 1 for work that knows no time limit.
    jobs : int, optional
        How many jobs of an instance are left; all if absent.
    """
    if is_compiled(what):
        return
    _running.append(what)
    try:
        for instance in tiny_instances(family, jobs=jobs):
            for _ in range(most_runs):
                before = seconds_of_compiling()
                run(instance)
                if seconds_of_compiling() == before:
                    break
    except Exception:
        return
    finally:
        _running.pop()
    _done.add(what)
    with suppress(InputError):  # where nothing can be written the process remembers
        write_bytes(b"", _mark(what))


def tiny_instances(family: str, *, jobs: int | None = None) -> Sequence[Instance]:
    """Members of the family's suite ``small`` that differ in kind.

    Parameters
    ----------
    family : str
        The family's word.
    jobs : int, optional
        How many of their first jobs are left; all if absent.
    """
    kinds = _kinds(family)
    return kinds if jobs is None else [kind.with_jobs(kind.jobs[:jobs]) for kind in kinds]


@cache
def _kinds(family: str) -> Sequence[Instance]:
    """Whole members, drawn once: drawing costs more than running an algorithm on them."""
    members: list[Instance] = family_module("instances", family, "generator").SUITES["small"]()
    return (*members[:-1:3], members[-1])


def _mark(what: str) -> Path:
    return cache_folder() / "hindsched-compiled" / _version() / what.replace(" ", "-")


@cache
def _version() -> str:
    """What compiled kernels depend on: machine, interpreter, numba, and the kernels' sources."""
    facts = [platform.machine(), platform.processor(), platform.python_version(), version("numba")]
    facts += [f"{source} {time} {size}" for source, time, size in stamps_of(KERNELS.rglob("*.py"))]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]

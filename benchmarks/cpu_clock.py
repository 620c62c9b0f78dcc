"""Time limits in processor time, so that a loaded machine finds what an idle one finds."""

from __future__ import annotations

import os
import sys
import time
from types import SimpleNamespace

from hindsched import cli, limits
from hindsched.solvers.door import work


def count_cpu_seconds() -> None:
    """Let every time limit of a solve count this process's processor time, on one core."""
    os.environ["HINDSCHED_THREADS"] = "1"
    work.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[attr-defined]


def run_by_cpu_seconds() -> None:
    """Run the command line with a clock that only goes while this process works, on one core."""
    clock = SimpleNamespace(
        monotonic=time.process_time, perf_counter=time.process_time, sleep=time.sleep
    )
    os.environ["HINDSCHED_THREADS"] = "1"
    from hindsched.cli import limits as options

    modules = [cli, limits, options, work]
    if sys.argv[1] == "worst":
        from hindsched.analysis.worst import search

        modules.append(search)
    for module in modules:
        module.time = clock  # type: ignore[attr-defined]
    cli.main()


if __name__ == "__main__":
    run_by_cpu_seconds()

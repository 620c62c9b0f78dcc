"""How long an experiment takes at full scale, measured on one of its settings and seeds."""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hindsched.analysis.figures.base import FULL_SEEDS, FigureScale, TraceInput

if TYPE_CHECKING:
    from collections.abc import MutableSequence

Experiment = Callable[[FigureScale, Callable[[str], None]], Any]
RUNS, SPENT, QUICK, CELLS = range(4)


def probe(experiment: Experiment, seconds: float, trace: TraceInput | None) -> dict[str, Any]:
    """Run one seed of the setting in the middle of every axis, and count.

    It runs in a process of its own that the system ends after so much processor time, because a
    solver may be deep within one solution. A quick version goes before, so that compiling kernels
    does not count.

    Parameters
    ----------
    experiment : callable
        A figure's ``run``.
    seconds : float
        Processor time after which it stops.
    trace : TraceInput or None
        What the experiment makes its instances from.

    Returns
    -------
    dict
        ``runs`` that ended, their ``cpu_seconds``, whether they are a whole setting (``ended``),
        and ``runs_needed``: all of the full experiment's, counted from the setting, or from the
        quick version if the setting did not end.
    """
    fork = multiprocessing.get_context("fork")
    seen = fork.Array("d", 4)
    worker = fork.Process(target=_run, args=(experiment, seconds, trace, seen))
    worker.start()
    worker.join()
    if worker.exitcode not in (0, -signal.SIGXCPU, -signal.SIGKILL):
        raise SystemExit("the probe failed")
    ended, runs = worker.exitcode == 0, round(seen[RUNS])
    return {
        "ended": ended,
        "runs": runs,
        "cpu_seconds": round(seen[SPENT] if ended else seconds, 1),
        "runs_needed": round(runs * seen[CELLS] if ended else seen[QUICK]),
    }


def part(scale: FigureScale) -> float:
    """Runs of an experiment that went through, over those of the full one."""
    found = math.prod(now / full for full, now in scale.axes.values())
    return found * min(1.0, scale.seeds / FULL_SEEDS)


def _run(
    experiment: Experiment,
    seconds: float,
    trace: TraceInput | None,
    seen: MutableSequence[float],
) -> None:
    made: list[str] = []
    small = FigureScale(quick=True, seeds=1, trace=trace)
    experiment(small, made.append)
    seen[QUICK] = len(made) / part(small)
    began = time.process_time()
    most = math.ceil(began + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))

    def on_row(text: str) -> None:
        seen[RUNS] += 1
        seen[SPENT] = time.process_time() - began

    middle = {name: [value] for name, value in small.middles.items()}
    one = FigureScale(seeds=1, settings=middle, trace=trace)
    experiment(one, on_row)
    seen[SPENT] = time.process_time() - began
    seen[CELLS] = 1 / part(one)

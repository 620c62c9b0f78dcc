"""``docs/results/performance.md``: each row a ratio against a named rival in the same run.

    make benchmarks

Rivals are the papers' algorithms transcribed as printed, the same programs handed to HiGHS as they
are, CVXPY compiled anew, Pyomo's own interface, CP-SAT (extra ``cpsat``) and the figures that
public simulators give for a list of jobs. Both sides get the same instance, and either the time
that each needs for the same answer or the gap that each has after the same time is compared. A
rival that cannot run here is named with the reason. The whole run takes some minutes on 2 cores.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import batchsched
import edgecloud
import mlbroker
import numpy as np
from marked import write_between

import hindsched as hs
from hindsched.analysis.figures.batchsched.figures import accepted_weight
from hindsched.instances.gang.instance import GangInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.base import offline_program
from hindsched.online.batchsched.algorithms import BatchschedOnline
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.mlbroker.placements import tight_placement

PAGE = Path("docs/results/performance.md")
MARK = "<!-- made by benchmarks/performance.py -->"
CLOSED = 1e-6
"""Relative gap at which an optimum counts as proven."""
LIMIT = 20.0
"""Seconds of a solve on either side."""
REPEATS = 5
"""Runs of either side where others at work would show; the shortest counts."""
PUBLISHED = {"simulator A": 240_177.8, "simulator B": 258_936.8, "simulator C": 308_889.8}
"""Mean completion times under strict FIFO that three public simulators give for 3,629 jobs."""


@dataclass(frozen=True)
class Row:
    """A comparison; `ratio` above 1 is in favour of this package."""

    what: str
    rival: str
    ours: str
    theirs: str
    ratio: float | None
    mark: str = ""
    """Before the ratio, where one side was stopped by the limit."""


def seconds(function: Callable[[], Any]) -> tuple[Any, float]:
    """A result and the processor time that it took."""
    began = time.process_time()
    found = function()
    return found, time.process_time() - began


def timed(what: str, rival: str, ours: float, theirs: float) -> Row:
    """The same answer, in how many seconds."""
    return Row(what, rival, f"{ours:.3g} s", f"{theirs:.3g} s", theirs / ours)


def raced(
    what: str,
    rival: str,
    ours: tuple[float | None, float],
    theirs: tuple[float | None, float],
    whole: float = 0.0,
) -> Row:
    """Gap and seconds of both: the time to the proof where one has it, else the gaps at the end.

    A proof is a solver's word on both sides; after `whole` seconds ours has a certificate too.
    """
    shown = [
        "no interval" if gap is None
        else f"proven in {spent:.3g} s" if gap <= CLOSED
        else f"gap {gap:.2%} after {spent:.3g} s"
        for gap, spent in (ours, theirs)
    ]  # fmt: skip
    (gap, spent), (other, needed) = ours, theirs
    if whole > spent:
        shown[0] += f", certified in {whole:.3g} s"
    proven = [each is not None and each <= CLOSED for each in (gap, other)]
    if any(proven):
        ratio, mark = needed / spent, "" if all(proven) else ">= " if proven[0] else "<= "
    else:
        ratio, mark = (None, "") if gap is None or other is None else (other / gap, "")
    return Row(what, rival, *shown, ratio, mark)


def transcribed() -> Iterator[Row]:
    """The papers' online algorithms as printed."""
    rival = "Algorithms 3-5 transcribed"
    instance = batchsched.generate("small", 0, jobs=5, servers=3)
    accepted_weight(instance, BatchschedOnline(), 12)  # compile
    ours, spent = seconds(lambda: accepted_weight(instance, BatchschedOnline(), 12))
    theirs, needed = seconds(lambda: batchsched.transcription(instance, 12))
    assert abs(ours - theirs) <= 1e-9 * theirs
    yield timed("batchsched: Algorithm 3, 5 jobs, 3 servers", rival, spent, needed)
    instance = hs.generate("astraea", "paper", 0, jobs=20)
    runs = []
    for name in ("astraea", "astraea-literal"):
        hs.simulate(hs.generate("astraea", "small", 0), name)
        runs.append(hs.simulate(instance, name, settings={"rounds": 1}).seconds)
    yield timed("astraea: all decisions, 20 jobs, 100 servers", rival, *runs)
    instance = edgecloud.generate("paper", 0, jobs=40, servers=30)
    hs.simulate(instance, "edgecloud")
    runs = [seconds(lambda: hs.simulate(instance, "edgecloud")) for _ in range(REPEATS)]
    needed = min(seconds(edgecloud.Transcription(instance).run)[1] for _ in range(REPEATS))
    spent = min(cpu * run.seconds / (run.seconds + run.simulator_seconds) for run, cpu in runs)
    whole = min(cpu for _, cpu in runs)
    what = "edgecloud: all decisions, 40 jobs, 30 servers"
    row = timed(what, "Algorithms 1-5 transcribed", spent, needed)
    yield replace(row, ours=f"{row.ours}, simulated and judged {whole:.3g} s")
    instance = hs.generate("oasis", "paper", 0, jobs=6, servers=20, horizon=40)
    hs.simulate(instance, "oasis")
    spent, needed = (
        median(hs.simulate(instance, "oasis", settings={"engine": engine}).decision_ms) / 1000
        for engine in ("oracle", "model")
    )
    what = "oasis: a decision, 40 slots, 20 + 20 servers"
    yield timed(what, "its subproblem as a MILP in HiGHS", spent, needed)


def direct() -> Iterator[Row]:
    """The printed programs handed to HiGHS as they are."""
    within = {"time_limit": LIMIT, "threads": 1}
    for jobs, servers in ((8, 5), (10, 10)):
        size = {"jobs": jobs, "horizon": 10, "servers": servers, "max_duration": 4}
        instance = hs.generate("oasis", "paper", 1, **size)
        program = offline_program(instance, form="printed").pyomo
        hs.certify_optimum(hs.solve(instance, "milp", **within))  # compile
        ours, spent = seconds(lambda i=instance: hs.solve(i, "milp", **within))
        certified, more = seconds(lambda r=ours: hs.certify_optimum(r))
        theirs, needed = seconds(lambda p=program: solve_program(p, SolveOptions(**within)))
        assert certified.proof == "certificate"
        gap = None if theirs.objective is None else relative(theirs.objective, theirs.bound)
        what = f"oasis: optimum by `milp`, {jobs} jobs, {servers} + {servers} servers, one thread"
        both = (ours.gap, spent), (gap, needed)
        yield raced(what, "the printed program in HiGHS", *both, spent + more)
    for family, settings in (
        ("batchsched", {"jobs": 8, "servers": 3}),
        ("astraea", {"jobs": 10, "tenants": 2, "servers": 8, "horizon": 20, "arrival_span": 6}),
        ("edgecloud", {"jobs": 20, "servers": 10}),
    ):
        instance = hs.generate(family, "small", 0, **settings)
        theirs = hs.solve(instance, "milp", time_limit=LIMIT)
        ours = hs.solve(instance, time_limit=LIMIT)
        what = f"{family}: optimum, {settings['jobs']} jobs, {LIMIT:g} s"
        both = (ours.gap, ours.seconds - certifying(ours)), (theirs.gap, theirs.seconds)
        yield raced(what, "this package's integer program in HiGHS alone", *both, ours.seconds)


def certifying(result: hs.Result) -> float:
    """Seconds that a certificate took after a solver's proof."""
    return float(result.details.get("tree_seconds", 0.0))


def relative(objective: float, bound: float | None) -> float | None:
    return None if bound is None else abs(bound - objective) / abs(bound)


def convex() -> Iterator[Row]:
    """A slot of mlbroker, by the paper's program in CVXPY."""
    instance = mlbroker.generate("paper", 0)
    slots = [SlotData.at(instance, t) for t in (10, 25, 40)]
    tight_placement(slots[0], np.zeros(slots[0].data.shape))
    spent = [
        median(seconds(lambda s=slot, w=way: w(s))[1] for slot in slots)
        for way in (lambda s: tight_placement(s, np.zeros(s.data.shape)), mlbroker.fractional)
    ]
    yield timed("mlbroker: a slot, 15 centres", "the paper's program in CVXPY", *spent)


def rigid() -> Iterator[Row]:
    """Rigid jobs: CP-SAT, and what public simulators say."""
    instance = hs.generate("gang", "paper", 0, jobs=60, gpus=16)
    assert isinstance(instance, GangInstance)
    what = f"gang: 60 rigid jobs, 16 GPUs, {LIMIT:g} s"
    ours = hs.solve(instance, time_limit=LIMIT)
    try:
        objective, bound = cp_sat(instance)
    except ImportError:
        yield Row(what, "CP-SAT", f"gap {ours.gap:.2%}", "not installed: extra `cpsat`", None)
    else:
        gap = None if objective is None else relative(objective, bound)
        both = (ours.gap, ours.seconds), (gap, LIMIT)
        yield raced(what, "CP-SAT, one cumulative constraint", *both)
    traces = os.environ.get("HINDSCHED_TRACES")
    what = "gang: mean completion time under strict FIFO, 3,629 jobs, 16 GPUs"
    if traces is None:
        yield Row(what, "three public simulators", "-", "needs HINDSCHED_TRACES", None)
        return
    import gang

    from hindsched.solvers.families.gang.replay import replay

    jobs = gang.jobs_of("3629")
    exact = replay(jobs, "fifo").objective() / len(jobs.jobs)
    for name, figure in PUBLISHED.items():
        both = f"{exact:,.1f} s", f"{figure:,.1f} s"
        yield Row(what, f"{name}, as published", *both, figure / exact)


def cp_sat(instance: GangInstance) -> tuple[float | None, float]:
    """Objective, if any, and bound of the summed completion time, by CP-SAT with one worker."""
    if importlib.util.find_spec("ortools") is None:
        raise ImportError("ortools")
    assert set(instance.weights.tolist()) == {1.0}
    given = {
        "submits": instance.submits.tolist(),
        "durations": instance.durations.tolist(),
        "gpus": instance.job_gpus.tolist(),
        "total": instance.total_gpus,
        "end": instance.serial_end,
        "seconds": LIMIT,
    }
    command = [sys.executable, str(Path(__file__).with_name("cp_sat.py"))]
    text = json.dumps(given)
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    objective, bound = json.loads(run.stdout)
    waited = float(instance.submits.sum())
    return None if objective is None else objective - waited, bound - waited


PARTS = {"transcribed": transcribed, "direct": direct, "convex": convex, "rigid": rigid}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--folder", default="build/performance", help="of the parts' rows")
    given = parser.parse_args()
    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for part in given.parts or PARTS:
        rows = []
        for row in PARTS[part]():
            rows.append(asdict(row))
            print(row, flush=True)
        (folder / f"{part}.json").write_text(json.dumps(rows))
    files = [folder / f"{part}.json" for part in PARTS]
    known = [Row(**row) for file in files if file.exists() for row in json.loads(file.read_text())]
    write_between(PAGE, MARK, table(known))


def table(rows: list[Row]) -> list[str]:
    version = hs.versions()
    names = ("hindsched", "highspy", "cvxpy", "pyomo")
    used = ", ".join(f"{name} {version[name]}" for name in names if name in version)
    lines = [
        f"Measured on {datetime.now(UTC).date().isoformat()}, {os.cpu_count()} cores: {used}.",
        "",
        "| what | rival | hindsched | rival's | ratio |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = "-" if row.ratio is None else f"{row.mark}{row.ratio:,.3g}"
        lines.append(f"| {row.what} | {row.rival} | {row.ours} | {row.theirs} | {ratio} |")
    return lines


if __name__ == "__main__":
    main()

"""Programs of ``dual-price`` and ``reoptimise``: built anew at every step, and rolling on.

Run it with ``python benchmarks/rolling.py [FAMILY ...] [--reoptimise] [--known N ...]``. Both are
timed (CPU time) at the same steps of one run, once as many jobs are known: built anew is the
offline program in Pyomo over all known jobs with what is decided as commitments; hot is
`RollingProgram`. Building, solving and reading the prices or the plan count.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time

import numpy as np

import hindsched as hs
from hindsched.models.base import Commitments, offline_program, on_servers
from hindsched.online.engines import dual_price, reoptimise
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.program import Solver, solve_program
from hindsched.solvers.rolling import RollingProgram

STREAMS = {
    "oasis": {"horizon": 70},
    "batchsched": {"servers": 3, "horizon": 250},
    "astraea": {"horizon": 120, "arrival_span": 100},
    "edgecloud": {"horizon": 150},
}
STEPS = 6


class Timed(RollingProgram):
    """Times every step whose number of known jobs is asked for, against the program built anew."""

    marks: tuple[int, ...] = ()
    ratios: dict[int, list[tuple[float, float]]] = {}  # noqa: RUF012

    def __init__(self, *args, **keywords):
        super().__init__(*args, **keywords)
        self.options = SolveOptions(time_limit=60)
        self._solver = Solver(self.options)
        self.all_jobs, self.all_rows, self.all_locked, self.all_rejected = [], {}, set(), set()

    def add(self, jobs):
        jobs = list(jobs)
        self.all_jobs += jobs
        self.clock("add", super().add, jobs)

    def commit(self, rows=None, *, whole=(), rejected=()):
        for name, new in (rows or {}).items():
            self.all_rows.setdefault(name, []).extend(new)
        self.all_locked.update(whole)
        self.all_rejected.update(rejected)
        super().commit(rows, whole=whole, rejected=rejected)

    def clock(self, _, function, *given):
        begin = time.process_time()
        result = function(*given)
        self.spent = getattr(self, "spent", 0.0) + time.process_time() - begin
        return result

    def advance(self, slot):
        self.clock("advance", super().advance, slot)

    def solve(self, start=None):
        mark = next((m for m in sorted(self.marks) if abs(len(self.all_jobs) - m) <= 0.2 * m), None)
        step = self.clock("solve", super().solve, start)
        self.clock("read", lambda: step.prices if self.relax else step.plan)
        spent, self.spent = self.spent, 0.0
        if mark is not None and len(self.ratios.setdefault(mark, [])) < STEPS:
            gc.collect()
            begin = time.process_time()
            everything = Commitments(
                self.slot, self.all_rows, frozenset(self.all_locked), frozenset(self.all_rejected)
            )
            program = offline_program(
                self.cluster.with_jobs(tuple(self.all_jobs)), self.formulation, relax=self.relax,
                commitments=everything, **({} if self.relax else on_servers(self.cluster.family)),
            )  # fmt: skip
            if step.started_from is not None and not self.relax:
                program.load(step.started_from)
            result = solve_program(
                program.model, self.options, start=not self.relax, want_duals=self.relax
            )
            if self.relax:
                program.capacity_prices(result.duals)
            else:
                program.extract()
            rebuilt = time.process_time() - begin
            np.testing.assert_allclose(step.objective, result.objective, rtol=1e-3, atol=1e-6)
            self.ratios[mark].append((rebuilt, spent))
            del program, result
            gc.collect()  # neither pays for what the other left behind
        return step


def measure(family, algorithm, known):
    Timed.marks, Timed.ratios = known, {}
    dual_price.RollingProgram = reoptimise.RollingProgram = Timed
    instance = hs.generate(family, seed=0, jobs=int(1.25 * max(known)), **STREAMS[family])
    hs.simulate(instance, algorithm)
    for mark, found in sorted(Timed.ratios.items()):
        rebuilt, hot = (statistics.median(side) for side in zip(*found, strict=True))
        print(
            f"{family:10s} {algorithm:10s} {mark:4d} known jobs: rebuilt {1e3 * rebuilt:8.1f} ms, "
            f"hot {1e3 * hot:8.1f} ms, x {rebuilt / hot:.1f}  ({len(found)} steps)",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=list(STREAMS))
    parser.add_argument("--reoptimise", action="store_true")
    parser.add_argument("--known", nargs="+", type=int, default=[10, 50, 200])
    given = parser.parse_args()
    for family in given.families:
        measure(family, "reoptimise" if given.reoptimise else "dual-price", tuple(given.known))

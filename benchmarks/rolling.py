"""Programs of ``dual-price`` and ``reoptimise``: built anew at every step, and rolling on.

    python benchmarks/rolling.py [FAMILY ...] [--reoptimise] [--larger] [--known N ...]

Both are timed (CPU time) at the same steps, those at which about as many jobs are known: hot is
`RollingProgram` as the algorithm runs, built anew is the offline program in Pyomo over all known
jobs with what is decided as commitments, afterwards. Building, solving and reading the prices or
the plan count; a first run warms both up. Of each step the quickest of several runs counts, and
the ratio is that of the times of all those steps.
"""

from __future__ import annotations

import argparse
import gc
import time

import numpy as np
import pyomo.environ as pyo

import hindsched as hs
from hindsched.models.base import Commitments, aggregated, offline_program
from hindsched.online.engines import dual_price, reoptimise
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.rolling import RollingProgram

STREAMS = {
    "oasis": {"horizon": 70},
    "batchsched": {"servers": 3, "horizon": 120},
    "astraea": {"horizon": 120, "arrival_span": 100},
    "edgecloud": {"horizon": 150},
}
"""The generators' small clusters, of three to five servers.

On batchsched's jobs wait for each other; with a horizon of 250 hardly one does, and its programs
have a dozen columns.
"""
LARGER = {
    "oasis": {"horizon": 100, "servers": 50},
    "batchsched": {"servers": 10, "horizon": 60},
    "astraea": {"horizon": 120, "arrival_span": 100, "servers": 10},
    "edgecloud": {"horizon": 40, "servers": 100},
}
"""Clusters of the papers' size; those of batchsched and astraea smaller, as their programs grow."""
ROLLING = {
    "dual-price": ("oasis", "edgecloud"),
    "reoptimise": ("batchsched", "astraea", "edgecloud"),
}
"""Families whose program rolls on; the others price whole schedules, or solve what is left anew."""
STEPS = 20
REPEATS = 3


class Timed(RollingProgram):
    """Times every step, and remembers what the program built anew would be built from."""

    steps: list[tuple[int, float, dict, np.ndarray]] = []  # noqa: RUF012

    def __init__(self, *args, **keywords):
        super().__init__(*args, **keywords)
        self.options = SolveOptions(time_limit=60)
        self.all_jobs, self.all_rows, self.all_locked, self.all_rejected = [], {}, set(), set()
        self.spent = 0.0

    def add(self, jobs):
        jobs = list(jobs)
        self.all_jobs += jobs
        self.clock(super().add, jobs)

    def commit(self, rows=None, *, whole=(), rejected=()):
        for name, new in (rows or {}).items():
            self.all_rows[name] = [*self.all_rows.get(name, ()), *new]
        self.all_locked.update(whole)
        self.all_rejected.update(rejected)
        super().commit(rows, whole=whole, rejected=rejected)

    def clock(self, function, *given):
        begin = time.process_time()
        result = function(*given)
        self.spent += time.process_time() - begin
        return result

    def advance(self, slot):
        self.clock(super().advance, slot)

    def solve(self, start=None):
        step = self.clock(super().solve, start)
        prices = self.clock(lambda: step.prices if self.relax else step.plan)
        scarce = self.relax and any((np.abs(array) > 1e-9).any() for array in prices.values())
        columns = sum(1 for _ in step.program.model.component_data_objects(pyo.Var))
        kind = np.array([columns, scarce])
        decided = Commitments(
            self.slot, dict(self.all_rows), frozenset(self.all_locked), frozenset(self.all_rejected)
        )
        again = {
            "instance": self.cluster.with_jobs(tuple(self.all_jobs)), "decided": decided,
            "formulation": self.formulation, "relax": self.relax, "options": self.options,
            "start": None if self.relax else step.started_from, "objective": step.objective,
        }  # fmt: skip
        self.steps.append((len(self.all_jobs), self.spent, again, kind))
        self.spent = 0.0
        return step


def rebuilt(again):
    """Least seconds of the same step by the program over all known jobs, built anew in Pyomo."""
    return min(rebuilt_once(**again) for _ in range(REPEATS))


def rebuilt_once(instance, decided, formulation, relax, options, start, objective):
    gc.collect()
    begin = time.process_time()
    placed = aggregated(instance.family) if relax else {}
    program = offline_program(instance, formulation, relax=relax, commitments=decided, **placed)
    if start is not None:
        program.load(start)
    result = solve_program(program.model, options, start=not relax, want_duals=relax)
    _ = program.capacity_prices(result.duals) if relax else program.extract()
    spent = time.process_time() - begin
    np.testing.assert_allclose(objective, result.objective, rtol=1e-3, atol=1e-6)
    return spent


def measure(family, algorithm, known, larger=False):
    dual_price.RollingProgram = reoptimise.RollingProgram = Timed
    cluster = LARGER[family] if larger else STREAMS[family]
    instance = hs.generate(family, seed=0, jobs=int(1.25 * max(known)), **cluster)
    runs = []
    for _ in range(1 + REPEATS):  # the first time loads and compiles
        Timed.steps = []
        hs.simulate(instance, algorithm)
        runs.append(Timed.steps)
    quickest = [min(step[1] for step in same) for same in zip(*runs[1:], strict=True)]
    steps = [(s[0], spent, *s[2:]) for s, spent in zip(runs[-1], quickest, strict=True)]
    for mark in sorted(known):
        near = sorted(steps, key=lambda step: abs(step[0] - mark))[:STEPS]
        near = [step for step in near if abs(step[0] - mark) <= 0.2 * mark]
        if not near:
            continue
        hot = sum(step[1] for step in near)
        anew = sum(rebuilt(step[2]) for step in near)
        each = [1e3 * seconds / len(near) for seconds in (anew, hot)]
        columns, scarce = np.mean([step[3] for step in near], axis=0)
        print(
            f"{family:10s} {algorithm:10s} {mark:4d} known, ms a step: rebuilt {each[0]:8.1f}, "
            f"hot {each[1]:8.1f}, x {anew / hot:.1f}  ({len(near)} steps, {columns:.0f} columns"
            + (f", {scarce:.0%} with prices)" if algorithm == "dual-price" else ")"),
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=list(STREAMS))
    parser.add_argument("--reoptimise", action="store_true")
    parser.add_argument("--larger", action="store_true", help="on clusters of the papers' size")
    parser.add_argument("--known", nargs="+", type=int, default=[10, 50, 200])
    given = parser.parse_args()
    for family in given.families:
        algorithm = "reoptimise" if given.reoptimise else "dual-price"
        if family in ROLLING[algorithm]:
            measure(family, algorithm, tuple(given.known), given.larger)

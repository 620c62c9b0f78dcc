"""batchsched: speed and quality, each against a named rival in the same run.

    python benchmarks/batchsched.py [--trace FOLDER]

1. The batch algorithm against a direct transcription of Algorithms 3-5 (with the named repairs), on
   sizes that the transcription can finish; both accept the same weight.
2. The paper's scale: 150 servers, 8 worker types, 10 PS types, 100 jobs, and growth from there.
3. The certified bound there, and the best objective over it.
4. Proven optima of 6 and 8 jobs on 3 servers.
5. With --trace, 100 jobs of ElasticFlow's cluster06.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from pathlib import Path

import numpy as np

from hindsched.analysis.figures.batchsched.figures import accepted_weight
from hindsched.instances.batchsched.generator import from_trace, generate
from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.online.batchsched.algorithms import (
    BatchschedExact,
    BatchschedOnline,
    declared_estimates,
)
from hindsched.online.engines.server_batches import resource_units
from hindsched.online.simulator import simulate
from hindsched.solvers.base import build_oracle
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.door.api import methods
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.families.batchsched.list_schedule import find_incumbent


def transcription(instance, horizon):
    """Algorithms 3-5 line by line, loops as printed; returns the total weight accepted."""
    unit = resource_units(instance)
    H, R = instance.server_capacity.shape
    C = instance.server_capacity / unit
    e, z = instance.worker_demand / unit, instance.ps_demand / unit
    b, B = instance.worker_bandwidth, instance.ps_bandwidth
    density = declared_estimates(instance)["density"]
    low, high = density["lowest"], density["highest"]
    lam = 2 * horizon * H * R * high / low + 1
    beta = np.zeros((H, R, horizon + 1))
    price = np.zeros((H, R, horizon + 1))
    total = 0.0
    for job in instance.jobs:
        work = job.epochs * job.chunks * job.minibatches
        best, chosen = math.inf, None
        for q in (1, 0):
            for m in range(len(e)):
                for p in range(len(z)):
                    rho = float(1 / instance.exact_time(job, m, p, bool(q), 1))
                    first = max(1, math.ceil(work / job.chunks / rho - 1e-9))
                    for L in range(first, min(math.ceil(work / rho - 1e-9), horizon) + 1):
                        N = math.ceil(work / (L * rho) - 1e-9)
                        for t in range(1, horizon - L + 1):
                            window = slice(t, t + L)
                            omega = (C[:, :, None] - beta[:, :, window]).min(axis=2)
                            paid = price[:, :, window].sum(axis=2)
                            Omega, Pi = paid @ e[m], paid @ z[p]
                            room = [
                                int(min(omega[h, r] / e[m, r] + 1e-9 for r in range(R) if e[m, r]))
                                for h in range(H)
                            ]
                            order = sorted(range(H), key=lambda h: Omega[h])
                            for n in range(H):
                                y, s, left = [0] * H, [0] * H, N
                                if q:
                                    fit = N * e[m] + z[p] <= omega[n] + 1e-9
                                    if room[n] < N or not fit.all():
                                        continue
                                    y[n], s[n], left = N, 1, 0
                                else:
                                    for k in order:
                                        take = min(room[k], left)
                                        if k == n:
                                            found = None
                                            for g in range(min(take, N - 1) + 1):
                                                need = max(
                                                    1, math.ceil((N - g) * b[m] / B[p] - 1e-9)
                                                )
                                                fit = g * e[m] + need * z[p] <= omega[n] + 1e-9
                                                if fit.all():
                                                    found = g, need
                                            if found is None:
                                                break
                                            take, s[n] = found
                                        y[k] = take
                                        left -= take
                                if left or not s[n]:
                                    continue
                                cost = sum(y[h] * Omega[h] + s[h] * Pi[h] for h in range(H))
                                if cost < best - 1e-11 * max(1, abs(best) if best < 1e300 else 1):
                                    best, chosen = cost, (t, L, m, p, y, s)
        if chosen is not None and job.weight / low - best > 0:
            t, L, m, p, y, s = chosen
            use = np.outer(y, e[m]) + np.outer(s, z[p])
            beta[:, :, t : t + L] += use[:, :, None]
            share = np.divide(beta, C[:, :, None], out=np.zeros_like(beta), where=C[:, :, None] > 0)
            price = lam**share - 1
            total += job.weight
    return total


def line(*cells):
    print(" | ".join(f"{cell:>24}" if i else f"{cell:<44}" for i, cell in enumerate(cells)))


def against_transcription():
    for jobs, servers, horizon in ((5, 3, 12), (8, 12, 24)):
        _against_transcription(generate("small", 0, jobs=jobs, servers=servers), horizon)


def _against_transcription(instance, horizon):
    accepted_weight(instance, BatchschedOnline(), horizon)  # compile
    began = time.perf_counter()
    ours = accepted_weight(instance, BatchschedOnline(), horizon)
    middle = time.perf_counter()
    theirs = transcription(instance, horizon)
    end = time.perf_counter()
    size = f"{len(instance.jobs)} jobs, {len(instance.servers)} servers, tau = {horizon}"
    line(f"A_maxweight, {size}", "seconds", "weight accepted")
    line("  direct transcription of Algorithms 3-5", f"{end - middle:.3f}", theirs)
    line("  compiled search", f"{middle - began:.4f}", ours)
    line("  ratio", f"{(end - middle) / (middle - began):.0f}x", "")


def paper_scale():
    print()
    line("whole online run, mode preparation included", "seconds", "objective")
    sizes = [(100, 150), (50, 150), (200, 150), (100, 75), (100, 300)]
    for architecture in (PARAMETER_SERVER, RING_ALLREDUCE):
        for jobs, servers in sizes:
            instance = generate("paper", 0, jobs=jobs, servers=servers, architecture=architecture)
            for name in ("batchsched", "batchsched-exact", "batchsched-adaptive"):
                began = time.perf_counter()
                run = simulate(instance, name)
                assert not run.violations
                seconds = time.perf_counter() - began
                line(f"  {architecture[:4]} J={jobs} H={servers} {name}", f"{seconds:.2f}",
                     f"{run.objective:.4g}")  # fmt: skip


def bounds():
    print()
    line("certified bound (cluster), list schedule", "seconds", "objective / bound")
    settings = [{}, {"capacity_fraction": 0.2}, {"capacity_fraction": None}]
    for architecture in (PARAMETER_SERVER, RING_ALLREDUCE):
        for more in settings:
            instance = generate("paper", 0, architecture=architecture, **more)
            value = find_incumbent(instance, "modes").objective()
            began = time.perf_counter()
            oracle = build_oracle(instance)
            found = subgradient_bound(oracle, SolveOptions(time_limit=10), target=value)
            seconds = time.perf_counter() - began
            line(f"  {architecture[:4]} J=100 H=150 {more}", f"{seconds:.2f}",
                 f"{value / found.bound:.3f}")  # fmt: skip
            for name in ("batchsched", "batchsched-exact", "batchsched-adaptive", "wspt"):
                ratio = simulate(instance, name).objective / found.bound
                line(f"    {name}: upper end of its ratio", "", f"{ratio:.3f}")


def optima():
    print()
    line("proven optimum, 3 servers, 2 + 2 types", "median s (max)", "proven")
    for jobs in (6, 8):
        for architecture in (PARAMETER_SERVER, RING_ALLREDUCE):
            seconds, proven = [], 0
            for seed in range(100, 105):
                instance = generate("small", seed, jobs=jobs, architecture=architecture)
                began = time.perf_counter()
                result = methods("batchsched")["milp"](
                    instance, "modes", SolveOptions(time_limit=60), None
                )
                seconds.append(time.perf_counter() - began)
                proven += result.status == "optimal"
            shown = f"{statistics.median(seconds):.2f} ({max(seconds):.2f})"
            line(f"  {architecture[:4]} {jobs} jobs", shown, f"{proven} of 5")


def trace(folder):
    from hindsched.instances.traces.table import load_trace

    path = Path(folder) / "elasticflow" / "raw-traces.tar.gz"
    table = load_trace(path, "elasticflow", "cluster06").window(5 * 86400, 100)
    print()
    line("100 ElasticFlow jobs, cluster06, 12 x 8 GPUs", "seconds", "objective / bound")
    for architecture in (PARAMETER_SERVER, RING_ALLREDUCE):
        instance = from_trace(table, jobs=100, architecture=architecture)
        value = find_incumbent(instance, "modes").objective()
        bound = subgradient_bound(build_oracle(instance), target=value).bound
        line(f"  {architecture[:4]} list schedule", "", f"{value / bound:.3f}")
        for name in ("batchsched", "batchsched-exact", "batchsched-adaptive", "wspt", "fifo", "drf",
                     "antman", "tiresias", "tiresias-l", "greedy-rtl"):  # fmt: skip
            began = time.perf_counter()
            run = simulate(instance, name)
            mark = "" if not run.violations else " (outside)"
            seconds = time.perf_counter() - began
            line(f"  {architecture[:4]} {name}{mark}", f"{seconds:.2f}",
                 f"{run.objective / bound:.3f}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace", help="folder of the traces")
    arguments = parser.parse_args()
    against_transcription()
    simulate(generate("paper", 1, jobs=3, servers=3), BatchschedExact())  # compile
    paper_scale()
    bounds()
    optima()
    if arguments.trace:
        trace(arguments.trace)


if __name__ == "__main__":
    main()

"""A_online's whole run and LP (4)+ at the paper's scale, against slot-by-slot Algorithms 1-5.

``python benchmarks/edgecloud.py [--jobs 300] [--growth] [--program] [--trace FILE]``

The rival, in this process on the same instance, is a transcription of the paper's Algorithms 1-5 as
printed, with the errata needed to run: per slot it collects arrivals, computes Q for every worker
and chunk from explicit queues, keeps every y_jdsw(t) as a set of slots, shifts what is preempted,
and assigns PSs slot by slot.
"""

from __future__ import annotations

import argparse
import os
import time
from statistics import median

from hindsched.instances.edgecloud.generator import from_trace, generate
from hindsched.online.simulator import simulate
from hindsched.solvers.door.api import solve


class Transcription:
    """Algorithms 1-5, slot by slot and chunk by chunk."""

    def __init__(self, instance):
        self.instance = instance
        self.queue = {w: [] for w in range(len(instance.worker_list))}
        self.slots = {}  # (job, chunk) -> [worker or None, sorted future slots]
        self.done = {}
        self.cloud_end = {}

    def remaining(self, w, slot):
        """Pending chunks at `slot`: [key, available, job, chunk, slots left]."""
        found = []
        for key, available, j, d in self.queue[w]:
            left = [t for t in self.slots[j, d][1] if t >= slot]
            if left and available <= slot:
                found.append((key, available, j, d, len(left)))
        return found

    def q(self, j, w, ready, key, p):
        """Algorithm 3 with equation (5)."""
        D = self.instance.jobs[j].chunks
        wait = lower = 0.0
        for other, _, i, _, left in self.remaining(w, ready):
            if other <= key:
                wait += left
            else:
                lower += 1 / self.instance.jobs[i].chunks
        return (ready - self.instance.jobs[j].arrival + wait + p) / D + p * lower

    def plan(self, w, now):
        """Algorithm 4 repaired: lay the worker's future out again, slot by slot."""
        left = {}
        for key, available, j, d in self.queue[w]:
            count = sum(t >= now for t in self.slots[j, d][1])
            if count:
                left[j, d] = [key, available, count]
                self.slots[j, d][1] = [t for t in self.slots[j, d][1] if t < now]
        t = now
        order = {item: n for n, item in enumerate((j, d) for _, _, j, d in self.queue[w])}
        while left:
            ready = [(k, a, order[item], item) for item, (k, a, _) in left.items() if a <= t]
            if ready:
                item = min(ready)[3]
                self.slots[item][1].append(t)
                left[item][2] -= 1
                if not left[item][2]:
                    del left[item]
            t += 1

    def run(self):
        instance = self.instance
        edge, cloud = instance.edge_slots.tolist(), instance.cloud_slots.tolist()
        by_slot = {}
        for j, job in enumerate(instance.jobs):
            by_slot.setdefault(job.arrival, []).append(j)
        held = {}
        slot, last = 0, instance.horizon
        while slot < last:
            slot += 1
            for j in by_slot.get(slot, ()):
                last = max(last, self.dispatch(j, slot, edge[j], cloud[j]))
            running = {j for (j, _), (w, ts) in self.slots.items() if w is not None and slot in ts}
            held = {j: held.get(j, "ps") for j in running}  # Algorithm 5
        total = 0
        for j, job in enumerate(instance.jobs):
            end = self.cloud_end.get(j, 0)
            ends = [self.slots[j, d][1][-1] + 1 for d in range(job.chunks) if (j, d) in self.slots]
            total += max([end, *ends]) - job.arrival
        return total

    def dispatch(self, j, slot, p, pc):
        """Algorithm 2."""
        instance, job = self.instance, self.instance.jobs[j]
        D, key = job.chunks, job.chunks * p
        dc = job.upload_slots[instance.cloud.name] if instance.has_cloud(job) else float("inf")
        options = {}
        for s, workers in instance.places(job):
            for w in workers:
                ready = slot + int(instance.upload[j, s])
                options[w] = [self.q(j, w, ready, key, p), ready]
        end = 0
        for d in range(D):
            w = min(options, key=lambda w: (round(options[w][0], 9), w), default=None)
            in_cloud = (dc + (pc if d == 0 else p)) / D
            if w is None or round(in_cloud, 9) < round(options[w][0], 9):
                self.cloud_end[j] = slot + dc + (pc if d == 0 else p)
                end = max(end, self.cloud_end[j])
                if d == 0:
                    return end
                continue
            ready = options[w][1]
            self.queue[w].append((key, ready, j, d))
            self.slots[j, d] = [w, list(range(10**6, 10**6 + p))]
            self.plan(w, slot)
            options[w][0] = self.q(j, w, ready, key, p)
            end = max(end, *(max(self.slots[i, e][1]) + 1 for _, _, i, e in self.queue[w]))
        return end


def timed(function, repeats):
    best, result = None, None
    for _ in range(repeats):
        begin = time.process_time()
        result = function()
        spent = time.process_time() - begin
        best = spent if best is None else min(best, spent)
    return best, result


def table(rows):
    head = (
        "instance", "chunks", "run CPU s", "rival CPU s", "ratio", "LP (4)+ CPU s", "JCT",
        "all-cloud", "escape", "LP (4)+", "bound", "JCT/bound", "best JCT in 60 s", "bound",
        "best/bound",
    )  # fmt: skip
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(str(cell).rjust(width) for cell, width in zip(row, widths, strict=True)))


def measure(instance, rival=True):
    simulate(generate("small", 0), "edgecloud")  # compile the kernels
    run_s, run = timed(lambda: simulate(instance, "edgecloud"), 3)
    rival_s, total = timed(Transcription(instance).run, 1) if rival else (None, None)
    if rival:
        assert total == run.objective, (total, run.objective)
    lp_s, lp = timed(lambda: solve(instance, "relaxation"), 1)
    unlimited = instance.cloud.workers is None
    cloud = simulate(instance, "all-cloud").objective if unlimited else None
    best = solve(instance, time_limit=60.0)
    return (
        instance.name,
        int(instance.chunks.sum()),
        f"{run_s:.3f}",
        "-" if rival_s is None else f"{rival_s:.2f}",
        "-" if rival_s is None else f"{rival_s / run_s:.0f}",
        f"{lp_s:.2f}",
        f"{run.objective:.0f}",
        "-" if cloud is None else f"{cloud:.0f}",
        f"{simulate(instance, 'edgecloud-escape').objective:.0f}",
        f"{lp.details['lp_4_plus']:.0f}",
        f"{lp.bound:.0f}",
        f"{run.objective / lp.bound:.3f}",
        f"{best.objective:.0f}",
        f"{best.bound:.0f}",
        f"{best.objective / best.bound:.3f}",
    )


def programs():
    """10 jobs, 3 servers, 6 workers, both formulations, proven."""
    for formulation in ("no-migration", "literal"):
        seconds = []
        for seed in range(11):
            instance = generate("small", seed, jobs=10, workers=[2])
            result = solve(instance, "milp", formulation=formulation, time_limit=120)
            seconds.append(result.seconds if result.status == "optimal" else float("inf"))
        shown = ", ".join(f"{s:.1f}" for s in sorted(seconds))
        print(f"{formulation}: median {median(seconds):.2f} s of 11 [{shown}]")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--growth", action="store_true", help="up to ten times the paper's size")
    parser.add_argument("--program", action="store_true", help="proof times of both formulations")
    parser.add_argument("--trace", help="a Philly trace file: 300 of its jobs")
    options = parser.parse_args()
    cases = [{}, {"minibatch_scale": 0.05}, {"minibatch_scale": 0.05, "cloud_workers": 0}]
    rows = [measure(generate("paper", 0, jobs=options.jobs, **case)) for case in cases]
    if options.growth:
        for factor in (3, 10):
            size = {"jobs": factor * options.jobs, "servers": 100 * factor}
            rows.append(measure(generate("paper", 0, **size), rival=False))
            size["minibatch_scale"] = 0.05
            rows.append(measure(generate("paper", 0, **size), rival=False))
    if options.trace:
        from hindsched.instances.traces.table import load_trace

        trace = load_trace(options.trace, "philly").window(0, 300)
        rows.append(measure(from_trace(trace, jobs=300)))
    table(rows)
    if options.program:
        programs()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()

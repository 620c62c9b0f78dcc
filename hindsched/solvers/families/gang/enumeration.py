"""Few rigid jobs, solved by the order of their starts: time enters as integers, never as slots.

Layer by layer `extend` makes all sequences of starts that could still beat the best one known, and
prices that are fitted to each layer keep it small (`kernel.sequences` says why that proves what it
does). Where it would be more work than a strict reader allows (`MOST_STEPS`), less is proven: the
sequences of the largest bounds are dropped, and the least of these is the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.decimals import exactly
from hindsched.instances.gang.instance import (
    KINDS,
    OBJECTIVES,
    GangInstance,
    split_formulation,
)
from hindsched.json_types import JsonObject
from hindsched.kernel import LIMITS
from hindsched.kernel.sequences import Placement, placements
from hindsched.solutions.gang.solution import GangRows, GangSolution
from hindsched.solvers.base import build_oracle
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.certificates.sequences import SequencesCertificate, certify_sequences
from hindsched.solvers.door.work import Clock, count_work
from hindsched.solvers.families.gang.oracle import IntervalRows
from hindsched.solvers.kernels.gang.enumeration import (
    MOST_JOBS,
    UNIT,
    Layer,
    Tasks,
    begin_on,
    climb,
    extend,
    irreplaceable,
    price,
)
from hindsched.solvers.methods.base import Run

MOST_STEPS = 4 * LIMITS["steps"] // 5
"""Steps of the kernel that a certificate takes at most; reading it takes the rest."""
MOST_PLACEMENTS = 64  # of a job on servers
MOST_BYTES = 200_000_000  # of a layer's states before they are thinned
FEW_SEQUENCES = 200_000
"""Sequences that are so few that no clock is asked: those of eight jobs in a pool."""
LARGEST = 2**61
INTERVALS = 100
FIRST_CLIMBS, FIRST_CLIMB, CLIMB = 4, 100, 60
"""Steps to the prices of the first layer, looking at the clock between, and of each later one."""
SAMPLE, FEW = 200, 20
"""States that a layer's prices are fitted to at most; fewer than `FEW` keep those before."""
LOOKED = 5_000  # states looked at that count as a unit of work
HALVINGS = 5
LARGER = 3  # share of the steps of a layer, relative to equal ones


@dataclass
class Proof:
    """What an enumeration found."""

    least: int  # no schedule costs less, in parts of `UNIT`
    levels: list[Ints]  # prices by layer
    cost: int | None = None  # of the best sequence that is complete, if one is below `least`
    order: list[int] = field(default_factory=list)  # its placements, rows of `Tasks.held`


class Enumeration:
    """The jobs of an instance in whole units, and all sequences of their starts."""

    def __init__(self, instance: GangInstance) -> None:
        self.instance = instance
        submit, duration = instance.submits.tolist(), instance.durations.tolist()
        self.tick = math.gcd(*submit, *duration)  # slots
        weights, self.below = instance.exact_weights
        self.step = math.gcd(*weights)  # all costs are multiples
        widths, wide = instance.job_gpus.tolist(), instance.is_consolidated
        self.together = 1 if wide else math.gcd(*widths)
        widths = [width // self.together for width in widths]
        listed = sorted(
            (size if wide else min(size // self.together, sum(widths)), kind, at)
            for at, (_, size, kind) in enumerate(instance.places)
        )
        self.place = [at for *_, at in listed]  # of the instance, by server
        servers = {
            kind: tuple((h, size) for h, (size, of, _) in enumerate(listed) if of == kind)
            for kind in range(len(instance.gpu_kinds))
        }
        rows, first = list[tuple[int, Placement]](), [0]
        for job, width in zip(instance.jobs, widths, strict=True):
            on = {kind: servers[kind] for kind in instance.kinds_of(job)}
            largest = max(size for some in on.values() for _, size in some)
            for kind, some in on.items():
                found = islice(placements(width, some, largest), MOST_PLACEMENTS + 1)
                rows += [(kind, each) for each in found]
            first.append(len(rows))
        self.most_placements = int(np.diff(first).max())
        held = np.zeros((len(rows), len(listed)), dtype=np.int64)
        for row, (_, placement) in enumerate(rows):
            for at, count in placement:
                held[row, at] = count
        costs = [weight * UNIT // self.step for weight in weights]
        sizes = [size for size, *_ in listed]
        self.tasks = Tasks(
            _whole(value // self.tick for value in submit),
            _whole(value // self.tick for value in duration),
            _whole(widths), _whole(costs), _whole(first), held, _whole(kind for kind, _ in rows),
            _whole(np.cumsum([0, *sizes])), _whole(kind for _, kind, _ in listed),
        )  # fmt: skip
        self.job = np.repeat(np.arange(len(widths)), np.diff(first))
        self.gpus = sum(sizes)
        end = (max(submit) + sum(duration)) // self.tick
        self.largest = 2 * end * (sum(costs) + self.gpus * max(costs))
        self.room = MOST_BYTES // (8 * (self.gpus + 6))

    @property
    def is_small(self) -> bool:
        """Whether there are few placements, and all sums can be counted."""
        return self.most_placements <= MOST_PLACEMENTS and self.largest < LARGEST

    @property
    def has_few_sequences(self) -> bool:
        """Whether there are so few sequences that all are gone through, whatever time is left."""
        jobs, places = len(self.instance.jobs), self.most_placements
        by_length = (math.perm(jobs, k) * places**k for k in range(1, jobs + 1))
        return sum(by_length) <= FEW_SEQUENCES

    def cost_of(self, solution: GangSolution) -> int:
        """Cost of a schedule, in parts of `UNIT`."""
        ends = solution.completions // self.tick
        return int((self.tasks.cost * (ends - self.tasks.submit)).sum())

    def value(self, cost: int) -> Fraction:
        """Least objective of a schedule that costs at least so much: a multiple of the step."""
        unit = exactly(self.instance.slot_seconds) * self.tick * self.step / self.below
        return Fraction(-(-cost // UNIT)) * unit

    def cuts(self, solution: GangSolution) -> Ints:
        """Where prices may change: as a schedule does, and at equal distances."""
        ends = solution.completions // self.tick
        starts, last = ends - self.tasks.duration, int(ends.max())
        equal = np.linspace(0, last, INTERVALS + 1).astype(np.int64)
        found = np.unique(np.concatenate([equal, starts, ends, self.tasks.submit]))
        return found[found <= last]

    def first_layer(self) -> Layer:
        """Nothing is begun."""
        zero = np.zeros(1, dtype=np.int64)
        return Layer(zero, zero, np.zeros((1, self.gpus), dtype=np.int64), zero, zero, zero)

    def enumerate(
        self, cut: Ints, levels: Sequence[Ints], least: int, clock: Clock, lower: bool = False,
        seed: int = 0,
    ) -> Proof | None:  # fmt: skip
        """All sequences that cost less than `least`, or as much less as the steps are enough for.

        `levels` are the prices by layer; those after the last are fitted to their layers. None if
        there are too many sequences and the bound must not be lowered, or no time is left.
        """
        jobs, left = len(self.instance.jobs), MOST_STEPS
        generator, found = np.random.Generator(np.random.PCG64(seed)), list(levels)
        layer, past = self.first_layer(), list[Layer]()
        for depth in range(jobs):
            if clock.is_over:
                return None
            if depth >= len(found):
                found.append(self._fitted(layer, cut, found[-1], least, generator))
            prices = price(self.tasks, cut, found[depth])
            share = left * min(1.0, LARGER / (jobs - depth))  # steps for this layer
            while True:
                after, count, looked = extend(self.tasks, layer, prices, least, self.room)
                count_work(1 + looked // LOOKED)
                if count <= self.room:
                    break
                if not lower:
                    return None
                least = min(least - 1, int(np.median(after.bound)))
            total = after.free.sum(axis=1)
            order = np.lexsort((total, after.cost, after.begun))
            kept, compared = irreplaceable(self.tasks, after, order)
            placed = self.job.size * (jobs - depth) // jobs  # placements of the jobs left
            steps = looked * (20 + placed + self.gpus) + compared
            steps += layer.begun.size * (10 + jobs + placed)
            left -= steps
            if left < 0 and not lower:
                return None
            most = max(1, int(layer.begun.size * share / max(1, steps)))
            if lower and kept.size > most:
                least = int(np.partition(after.bound[kept], most)[most])
                kept = kept[after.bound[kept] < least]
            past.append(layer)
            layer = Layer._make(column[kept] for column in after)
            if not kept.size:
                return Proof(least, found[: depth + 1])
        best = int(layer.cost.argmin())
        proof = Proof(least, found, int(layer.cost[best]))
        for each in (layer, *past[:0:-1]):
            proof.order.append(int(each.row[best]))
            best = int(each.parent[best])
        proof.order.reverse()
        return proof

    def _fitted(
        self, layer: Layer, cut: Ints, level: Ints, least: int, generator: np.random.Generator
    ) -> Ints:
        """Prices for a layer, from those of the layer before."""
        states = layer.begun.size
        if states < FEW:
            return level
        chosen = generator.choice(states, min(SAMPLE, states), replace=False)
        part = Layer._make(column[chosen] for column in layer)
        found: Ints = climb(self.tasks, part, cut, level, least, CLIMB)[0]
        return found

    def solution(self, order: Sequence[int], formulation: str) -> GangSolution:
        """The schedule of a sequence of placements."""
        instance, tasks, sizes = self.instance, self.tasks, np.diff(self.tasks.begin)
        free, kind = [[0] * size for size in sizes.tolist()], tasks.kind.tolist()
        rows = list[tuple[int, int]]()
        held = np.zeros((len(order), len(free) * instance.names_places), dtype=np.int64)
        for place, row in enumerate(order):
            ranked = sorted(range(len(free)), key=lambda h: (len(free[h]), kind[h], free[h]))
            job, counts = int(self.job[row]), tasks.held[row].tolist()
            flat = _whole(time for h in ranked for time in free[h])
            start = int(begin_on(tasks, flat, job, row))
            end = start + int(tasks.duration[job])
            for count, h in zip(counts, ranked, strict=True):
                free[h] = sorted([max(time, start) for time in free[h][count:]] + [end] * count)
                if instance.names_places:
                    held[place, self.place[h]] = count * self.together
            rows.append((job, start))
        jobs, starts = np.array(rows, dtype=np.int64).T
        ends = (starts + tasks.duration[jobs]) * self.tick
        made = GangRows(jobs, starts * self.tick, ends, instance.job_gpus[jobs], held)
        return GangSolution(instance, made, formulation)

    def first_certificate(self, cut: Ints, level: Ints, formulation: str) -> Certificate:
        """What the first prices prove alone."""
        prices = self.prices_of(cut, level)
        oracle = build_oracle(self.instance, formulation).on_rows_of_file(prices)
        return certify(oracle, oracle.rows.from_file(prices))

    def certificate(self, proof: Proof, cut: Ints, formulation: str) -> SequencesCertificate:
        """What a proof says, as a file."""
        stages = list[JsonObject]()
        for started, level in enumerate(proof.levels):
            if started == 0 or level is not proof.levels[started - 1]:
                stages.append({"started": started, **self.prices_of(cut, level)})
        return certify_sequences(self.instance, formulation, self.value(proof.least), stages)

    def prices_of(self, cut: Ints, level: Ints) -> dict[str, list[JsonObject]]:
        """Prices per GPU and slot as a certificate's file writes them."""
        unit = UNIT * self.together * self.below
        prices = np.array([own * self.step / unit for own in level.ravel().tolist()])
        return IntervalRows(self.instance, cut * self.tick).to_file(prices)


def _whole(values: Any) -> Ints:
    return np.array(list(values), dtype=np.int64)


def can_enumerate(instance: GangInstance, formulation: str) -> bool:
    """Whether the jobs are few and in one piece, and completions count."""
    rigid = split_formulation(formulation) == (KINDS[0], OBJECTIVES[0])
    return rigid and 0 < len(instance.jobs) <= MOST_JOBS


def prove_by_enumeration(
    enumeration: Enumeration, run: Run, incumbent: GangSolution, clock: Clock
) -> None:
    """Prove the best bound within limits, and offer better schedules.

    One pass lowers what it proves until that fits; what is between this and the best schedule is
    halved.
    """
    cut, cost, best = enumeration.cuts(incumbent), enumeration.cost_of(incumbent), None
    kinds, first = len(enumeration.instance.gpu_kinds), enumeration.first_layer()
    level = np.zeros((kinds, cut.size - 1), dtype=np.int64)
    for _ in range(FIRST_CLIMBS):
        if not clock.is_over:
            level, _ = climb(enumeration.tasks, first, cut, level, cost, FIRST_CLIMB)
            count_work()
    run.prove(enumeration.first_certificate(cut, level, incumbent.formulation))

    def look(levels: Sequence[Ints], least: int, lower: bool = False) -> Proof | None:
        nonlocal cost
        found = enumeration.enumerate(cut, levels, least, clock, lower)
        if found is not None and found.cost is not None and found.cost < cost:
            cost = found.cost
            run.offer(enumeration.solution(found.order, incumbent.formulation))
        return found

    aim = cost - UNIT + 1
    proof, least = look([level], aim, lower=True), aim
    for _ in range(HALVINGS):
        if proof is None:
            return
        if proof.cost is None and proof.least == least:
            best = proof
            break
        least = min(proof.least, cost - UNIT + 1)
        again = look(proof.levels, least)
        proof = again or Proof(least - (cost - least) // 10 - 1, proof.levels)
    if best is None:
        return
    high = cost - UNIT + 1
    for _ in range(HALVINGS):
        middle = (best.least + high + 1) // 2
        if best.least >= cost - UNIT + 1 or clock.is_over or high - best.least < UNIT:
            break
        proof = look([level], middle)
        if proof is not None and proof.cost is None:
            best = proof
        else:
            high = min(middle, cost - UNIT + 1)
    run.prove(enumeration.certificate(best, cut, incumbent.formulation))

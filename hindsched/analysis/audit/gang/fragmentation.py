"""What kinds of GPUs and servers cost: the best possible in one pool, by kind, on the servers.

Every schedule on the servers is one by kind, and every one by kind is one in the pool, of the same
jobs at the same cost. So a coarser level's certificate holds for the finer ones, and `Level.proof`
is the level whose certificate proves most; a schedule on the servers is made one of the pool. The
ends of the intervals are in order, and each level's files are those of its own instance.

A kind is short while jobs that name it alone wait for it in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from hindsched.analysis.bounds import Bounds
from hindsched.arrays import Ints
from hindsched.instances.gang.from_log import instance_of_log
from hindsched.instances.gang.instance import CONSOLIDATED, POOL, GangInstance
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.times import SECOND
from hindsched.json_types import JsonObject
from hindsched.solutions.gang.solution import GangRows, GangSolution, use_over_time
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.door.api import solve
from hindsched.solvers.families.gang.oracle import IntervalRows
from hindsched.solvers.families.gang.prices import certify_without_prices

IN_POOL, BY_KIND, ON_SERVERS = "one pool", "by kind", "on the servers"


@dataclass(frozen=True)
class Level:
    """The best possible of the same jobs with more or less freedom where they run."""

    name: str
    instance: GangInstance
    certificate: Certificate = field(repr=False)
    best: GangSolution | None = field(repr=False)
    coarser: Level | None = field(repr=False, default=None)

    @property
    def proof(self) -> Level:
        """The level whose certificate proves this one's bound: itself, or a coarser one."""
        proof = self if self.coarser is None else self.coarser.proof
        return self if self.certificate.bound >= proof.certificate.bound else proof

    @property
    def bounds(self) -> Bounds:
        """Mean job completion time, weighted if jobs are, between bound and best schedule."""
        weights, below = self.instance.exact_weights
        jobs = sum(weights) / below
        found = None if self.best is None else self.best.objective() / jobs
        return Bounds(self.proof.certificate.bound / jobs, found)


@dataclass(frozen=True)
class Fragmentation:
    """The levels, coarsest first, and which kinds are short."""

    levels: tuple[Level, ...]
    # A row a kind, scarcest first: kind, gpus, jobs (that name it alone), may_use (that may),
    # asked (GPU-seconds of the former over those there are), waited (their GPU-seconds in the
    # queue), short_hours, worst_from, worst_to (the hour with most of them), user (who waited
    # most), users_share, rent (of the bound's prices by kind, all kinds together 1).
    kinds: pd.DataFrame = field(repr=False)

    def price(self, first: int = 0, last: int = -1) -> Bounds:
        """How many times as long the mean is at one level as at another, at least and at most."""
        low, high = self.levels[first].bounds, self.levels[last].bounds
        assert low.lower is not None
        assert high.lower is not None
        least = 1.0 if low.upper is None else max(1.0, high.lower / low.upper)
        return Bounds(least, None if high.upper is None else high.upper / low.lower)

    def sentence(self) -> str:
        """The price in one sentence, and which kind is short."""
        price, last = self.price(), self.levels[-1].name
        text = f"The price of fragmentation: the best possible {last} takes "
        longer = "as long as" if str(price) == "1" else f"{price} times as long as"
        text += "no longer than" if price.upper == 1 else longer
        text += f" in {self.levels[0].name}"
        if price.upper != 1 and len(self.levels) == 3:
            text += f" (kinds alone {self.price(0, 1)} times)"
        worst: Any
        for worst in self.kinds[self.kinds["waited"] > 0].head(1).itertuples():
            text += (
                f". Shortest is {worst.kind}: jobs that name it alone ask for {worst.asked:.0%} of "
                f"its {worst.gpus:,} GPUs and waited in {worst.short_hours:,.1f} hours, most "
                f"from {worst.worst_from} to {worst.worst_to}"
            )
            if worst.user:
                text += f"; {worst.users_share:.0%} of the wait is {worst.user}'s"
        return f"{text}."

    def rows(self) -> list[JsonObject]:
        """A row a level."""
        return [
            {
                "level": level.name, "bound": level.bounds.lower, "bound_of": level.proof.name,
                "best_found": level.bounds.upper,
            } for level in self.levels
        ]  # fmt: skip

    def to_dict(self) -> JsonObject:
        """JSON data."""
        return {
            "sentence": self.sentence(), "price": self.price().to_dict(), "levels": self.rows(),
            "kinds": self.kinds.to_dict("records"),
        }  # fmt: skip


def levels_above_pool(log: Log, formulation: str) -> list[tuple[str, GangInstance]]:
    """Instances of a log by kind and on servers, where kinds and servers are known."""
    capacity, levels = log.need_capacity(), list[tuple[str, GangInstance]]()
    kinds = len(set(capacity.kinds)) > 1
    for level, placement in ((BY_KIND, POOL), (ON_SERVERS, CONSOLIDATED)):
        if kinds if placement == POOL else len(capacity.servers) > 1:
            made = instance_of_log(log, placement=placement, formulation=formulation, by_kind=kinds)
            levels.append((level, made))
    return levels


def find_fragmentation(
    log: Log, pool: Level, levels: list[tuple[str, GangInstance]], seconds: float,
    say: Callable[[str], None],
) -> Fragmentation:  # fmt: skip
    """Bound and solve the same jobs by kind and on servers, in so many seconds."""
    found, formulation = [pool], pool.certificate.formulation
    for name, instance in levels:
        say(f"bound and search {name}")
        result = solve(instance, formulation=formulation, time_limit=seconds / len(levels))
        certificate = result.certificate or certify_without_prices(instance, formulation)
        best = result.solution if isinstance(result.solution, GangSolution) else None
        found.append(Level(name, instance, certificate, best))
    for number in range(len(found) - 1, 0, -1):  # a finer level's schedule is the coarser one's
        fine, coarse = found[number].best, found[number - 1]
        if fine is not None and (coarse.best is None or fine.objective() < coarse.best.objective()):
            found[number - 1] = replace(coarse, best=coarsened(fine, coarse.instance))
    for number in range(1, len(found)):
        found[number] = replace(found[number], coarser=found[number - 1])
    priced = next((level for level in found if level.instance.has_kinds), None)
    kinds = pd.DataFrame(columns=["waited"]) if priced is None else _kind_rows(log, priced)
    return Fragmentation(tuple(found), kinds)


def coarsened(solution: GangSolution, instance: GangInstance) -> GangSolution:
    """A schedule on places as one of an instance that knows kinds alone, or one pool."""
    rows, of_place = solution.rows, np.array([kind for *_, kind in solution.instance.places])
    held = np.zeros((rows.job.size, len(instance.gpu_kinds) * instance.has_kinds), dtype=np.int64)
    if instance.has_kinds:
        held[np.arange(rows.job.size), of_place[rows.held.argmax(axis=1)]] = rows.gpus
    return GangSolution(instance, GangRows(*rows[:4], held), solution.formulation)


def _kind_rows(log: Log, level: Level) -> pd.DataFrame:
    """Which kinds are short in the log, when and for whom, and what their GPUs cost at prices."""
    instance, jobs = level.instance, log.jobs
    rows = level.certificate.rows
    assert isinstance(rows, IntervalRows)
    rent = (rows.by_kind(level.certificate.prices) * rows.by_kind(rows.capacity)).sum(axis=1)
    submit = jobs["submit"].to_numpy(np.int64)
    runs = jobs["duration"].where(jobs["ran"].isna(), jobs["ran"]).to_numpy(np.int64)
    queue = jobs["completion"].to_numpy(np.int64) - runs  # till when it waited, in all
    users = jobs["user"] if "user" in jobs else pd.Series("", index=jobs.index)
    span = max(1, int(jobs["completion"].max() - submit.min()))
    made: list[JsonObject] = []
    for k, (kind, gpus) in enumerate(instance.gpu_kinds.items()):
        may = instance.allowed_kinds[:, k]
        only = may & (instance.allowed_kinds.sum(axis=1) == 1)
        wait = (queue - submit)[only] * instance.job_gpus[only]
        of_user = pd.Series(wait, dtype=float).groupby(users[only].fillna("").to_numpy()).sum()
        user = "" if of_user.empty else str(of_user.idxmax())
        asked = int((instance.durations * instance.job_gpus)[only].sum())
        waited = int(wait.sum())
        made.append({
            "kind": kind, "gpus": gpus, "jobs": int(only.sum()), "may_use": int(may.sum()),
            "asked": asked / (gpus * span), "waited": waited / log.slots_per_second,
            **_shortage(log, submit[only], queue[only], instance.job_gpus[only]),
            "user": user, "users_share": float(of_user.max() / waited) if waited else 0.0,
            "rent": float(rent[k] / rent.sum()) if rent.sum() > 0 else 0.0,
        })  # fmt: skip
    return pd.DataFrame(made).sort_values("waited", ascending=False, ignore_index=True)


def _shortage(log: Log, submit: Ints, start: Ints, gpus: Ints) -> JsonObject:
    """Hours in which jobs waited, and the full hour in which most GPUs were waited for."""
    none = {"short_hours": 0.0, "worst_from": "", "worst_to": ""}
    waits = start > submit
    if not waits.any():
        return none
    curve = use_over_time(submit[waits], start[waits], gpus[waits])
    at, held = curve.index.to_numpy(np.int64), curve.to_numpy()[:-1]
    length = np.diff(at)
    step, unit = 3600 * SECOND, SECOND // log.slots_per_second
    first = log.microseconds(int(at[0])) // step
    edges = (np.arange(first, log.microseconds(int(at[-1])) // step + 2) * step - log.zero) // unit
    area = np.interp(edges, at, np.append(0.0, np.cumsum(held * length)))
    worst = int(np.diff(area).argmax())
    hours = float(length[held > 0].sum()) / log.slots_per_second / 3600
    return {
        "short_hours": hours, "worst_from": log.stamp(edges[worst]),
        "worst_to": log.stamp(edges[worst + 1]),
    }  # fmt: skip

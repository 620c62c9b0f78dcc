"""The edgecloud family's programs of problem (2), and one job's part of them at prices.

``no-migration`` (default) is problem (2) with every chunk on one worker, which is what A_online may
do; ``literal`` is (2) as printed, which lets work move and split: another problem, with another
optimum. Both carry the storage rows of problem (7) where storage is limited. Their rules are in
``problem_two.py``, the linear relaxations (4) and (8) in ``relaxations.py``, the duals (6) and (9)
in ``dual.py``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import (
    PRINTED,
    Commitments,
    Duals,
    Hedge,
    OfflineProgram,
    Prices,
    Subproblem,
)
from hindsched.models.edgecloud.problem_two import literal, no_migration
from hindsched.models.edgecloud.sets import (
    EdgecloudNames,
    last_slots,
    lone_time,
    may_wait_in_cloud,
    read_sets,
)
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.list_schedule import Past, read_past
from hindsched.solutions.edgecloud.runs import ChunkRun, Runs, place_parameter_servers
from hindsched.solutions.edgecloud.solution import EdgecloudSolution

FORMS: dict[str, tuple[str, ...]] = {"no-migration": ("strong",), "literal": (PRINTED,)}
DECISIONS = {"strong": {"y": 2, "s": 2, "xc": None, "zeta": None}}
"""By form the variables that are decided, and where their slot stands, if they have one."""
BYTES_A_CELL = 1_000
"""Of a job, a place and a slot: a column and a row of Pyomo."""
BUILDERS = {"no-migration": no_migration, "literal": literal}


@dataclass(kw_only=True, eq=False, repr=False)
class ProblemTwo(EdgecloudNames):
    """Problem (2), or a job's part of it; `past` is fixed."""

    model: Model
    past: Past

    def extract(self) -> EdgecloudSolution | None:
        m, instance, past = self.model, self.instance, self.past
        read = _literal if self.formulation == "literal" else _no_migration
        rows = list(past.rows)
        for j in past.open_jobs:
            found = read(m, instance, past, j)
            if found is None:
                return None
            rows += found
        runs = Runs.of(rows)
        together = {j for j in past.open_jobs if round(m.zeta[j].value)}
        locked = {run.job for run in rows} - set(past.open_jobs)
        in_cloud = locked - {run.job for run in rows if run.place < len(instance.worker_list)}
        holds = place_parameter_servers(instance, runs, together | in_cloud, past.holds)
        return EdgecloudSolution(instance, runs, holds, self.formulation)


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudProgram(ProblemTwo, OfflineProgram[EdgecloudSolution]):
    """A program of problem (2)."""

    def load(self, solution: EdgecloudSolution) -> None:
        instance, cloud = self.instance, len(self.instance.worker_list)
        last = [solution.completion(job.name) or 0 for job in instance.jobs]
        counts: Counter[tuple[str, object]] = Counter()
        seen: set[tuple[int, int]] = set()
        for j, chunk, place, first, end in solution.runs.rows():
            zeta = int(solution.all_cloud[j])
            ready = max(self.past.now, int(instance.arrivals[j] + instance.cloud_upload[j]))
            start = first if may_wait_in_cloud(instance, j) else ready
            counts["s", (j, zeta, start)] += place == cloud
            if (j, chunk) not in seen and place == cloud:
                counts["xc", j] += 1 - zeta
            elif (j, chunk) not in seen:
                counts["x", (j, place)] += 1
            seen.add((j, chunk))
            for t in range(first, end + 1):
                if place < cloud:
                    counts["y", (j, place, t)] += 1
                else:
                    counts["k1" if zeta else "k", (j, t)] += 1
        counts.update({("C", (j, t)): t <= last[j] for j, t in self.model.C})
        counts.update({("zeta", j): int(solution.all_cloud[j]) for j in self.past.open_jobs})
        for variable in self.model.component_objects(pyo.Var):
            for key, each in variable.items():
                if not each.fixed:
                    each.set_value(int(counts[variable.local_name, key]), skip_validation=True)

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of (2d) as prices of the oracle: ``worker_capacity``, shape (W, T)."""
        prices = np.zeros((len(self.instance.worker_list), self.instance.horizon))
        for (w, t), row in self.model.eq_2d.items():
            if t <= self.instance.horizon:
                prices[w, t - 1] = max(0.0, -duals.get(row, 0.0))
        return {"worker_capacity": prices}


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudSubproblem(ProblemTwo, Subproblem):
    """A job's part of the program of problem (2), with mutable prices and residual capacities."""

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """``worker_capacity`` (W, T).

        Slots after T cost nothing, and are not for sale where `room` is given.
        """
        given = prices["worker_capacity"]
        for w, t in self.model.price:
            inside = t <= given.shape[1]
            self.model.price[w, t] = float(given[w, t - 1]) if inside else 0.0
            free = 1.0
            if room is not None:
                free = float(room["worker_capacity"][w, t - 1]) if inside else 0.0
            self.model.residual[w, t] = free


def program_bytes(instance: EdgecloudInstance, jobs: Iterable[int]) -> float:
    """Bytes of a program about some jobs, from below: rows on every place while a job runs."""
    formulation = instance.check_formulation(None)
    cells = sum(
        lone_time(instance, j, formulation) * (1 + len(list(instance.places(instance.jobs[j]))))
        for j in jobs
    )
    return float(BYTES_A_CELL * cells)


def build_offline(
    instance: EdgecloudInstance, formulation: str, *, form: str | None = None,
    relax: bool = False, commitments: Commitments | None = None,
    incumbent: Solution | None = None, hedge: Hedge | None = None,
) -> EdgecloudProgram:  # fmt: skip
    """Build problem (2); a feasible `incumbent` shortens the time that it spans."""
    past = read_past(instance, commitments)
    given = incumbent if isinstance(incumbent, EdgecloudSolution) else None
    last = last_slots(instance, formulation, past, given, hedge)
    return EdgecloudProgram(
        instance=instance, formulation=formulation, form=FORMS[formulation][0],
        relaxed=relax, past=past,
        model=BUILDERS[formulation](read_sets(instance, formulation, past, last), relax),
    )  # fmt: skip


def build_subproblem(
    instance: EdgecloudInstance, position: int, formulation: str
) -> EdgecloudSubproblem:
    """A job's part of (2), prices 0, everything free: its time and what its workers cost."""
    past, last = Past(open_jobs=[position]), {position: _last_at_any_prices(instance, position)}
    m = BUILDERS[formulation](read_sets(instance, formulation, past, last))
    cells = sorted({key[1:] for key in m.y})
    m.price = pyo.Param(cells, mutable=True, initialize=0.0, within=pyo.Reals)
    m.residual = pyo.Param(cells, mutable=True, initialize=1.0, within=pyo.Reals)

    @m.Constraint(list(m.y), doc="(2d) within what is left of the workers")
    def residual_capacity(m: Model, j: int, w: int, t: int) -> Expr:
        return m.y[j, w, t] <= m.residual[w, t]

    paid = (m.price[w, t] * y for (_, w, t), y in m.y.items())
    m.objective.expr = m.objective.expr + pyo.quicksum(paid)
    return EdgecloudSubproblem(
        instance=instance, formulation=formulation, model=m, position=position, past=past
    )


def _last_at_any_prices(instance: EdgecloudInstance, j: int) -> int:
    """Last slot of a job's best response: the cloud's, or all work behind the last priced slot."""
    job = instance.jobs[j]
    if not may_wait_in_cloud(instance, j):
        return job.arrival + int(instance.cloud_upload[j] + instance.cloud_slots[j]) - 1
    ready = job.arrival + max(job.upload_slots.values())
    return max(instance.horizon, ready) + job.chunks * int(instance.edge_slots[j])


def _slots_of(m: Model, j: int) -> dict[int, list[int]]:
    """Slots in which an open job runs, by worker."""
    found: dict[int, list[int]] = defaultdict(list)
    for (i, w, t), works in m.y.items():
        if i == j and works.value > 0.5:
            found[w].append(t)
    return found


def _no_migration(
    m: Model, instance: EdgecloudInstance, past: Past, j: int
) -> list[ChunkRun] | None:
    """Runs of an open job in the program without migration."""
    cloud, zeta = len(instance.worker_list), round(m.zeta[j].value)
    length = int((instance.cloud_slots if zeta else instance.edge_slots)[j])
    begun: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (i, chunk), (place, done) in past.started.items():
        if i == j:
            begun[place].append((chunk, done))
    used = {chunk for chunks in begun.values() for chunk, _ in chunks}
    fresh = [c for c in range(instance.jobs[j].chunks, 0, -1) if c not in used]
    rows: list[ChunkRun] = []
    running = _slots_of(m, j)
    for w in (w for _, workers in instance.places(instance.jobs[j]) for w in workers):
        count = round(m.x[j, w].value) - len(begun[w])
        if count > len(fresh):
            return None
        slots = running[w]
        for chunk, done in [*begun[w], *((fresh.pop(), 0) for _ in range(count))]:
            own, slots = slots[: length - done], slots[length - done :]
            rows += [ChunkRun(j, chunk, w, t, t) for t in own]
        if slots:
            return None
    left = [(c, length - done) for c, done in begun[cloud] if done < length]
    rows += [ChunkRun(j, c, cloud, past.now, past.now + more - 1) for c, more in left]
    starts = [
        t for (i, z, t), n in m.s.items() if (i, z) == (j, zeta) for _ in range(round(n.value))
    ]
    if len(starts) != len(fresh):
        return None
    return rows + [ChunkRun(j, fresh.pop(), cloud, t, t + length - 1) for t in starts]


def _literal(m: Model, instance: EdgecloudInstance, past: Past, j: int) -> list[ChunkRun] | None:
    """Runs of an open job in the printed program, dealt out to its chunks slot by slot."""
    cloud, chunks = len(instance.worker_list), instance.jobs[j].chunks
    zeta = bool(round(m.zeta[j].value))
    left = chunks * int((instance.cloud_slots if zeta else instance.edge_slots)[j])
    left -= sum(run.last - run.first + 1 for run in past.rows if run.job == j)
    units: dict[int, list[tuple[int, int]]] = defaultdict(list)  # (place, which) by slot
    for w, slots in _slots_of(m, j).items():
        for t in slots:
            units[t].append((w, 0))
    for (i, t), workers in (m.k1 if zeta else m.k).items():
        if i == j:
            units[t] += [(cloud, number) for number in range(round(workers.value))]
    lanes: dict[tuple[int, int], int] = {}  # chunk of each unit in the slot before
    rows: list[ChunkRun] = []
    for t in sorted(units):
        here = units[t][: min(chunks, left)]
        left -= len(here)
        kept = {unit: lanes[unit] for unit in here if unit in lanes}
        free = [c for c in range(chunks, 0, -1) if c not in kept.values()]
        lanes = {unit: kept.get(unit) or free.pop() for unit in here}
        rows += [ChunkRun(j, lane, place, t, t) for (place, _), lane in lanes.items()]
    return None if left > 0 else rows

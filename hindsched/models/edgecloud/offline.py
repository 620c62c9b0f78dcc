"""The edgecloud family's programs of problem (2), and one job's part of them at prices.

``no-migration`` (default) is problem (2) with every chunk on one worker, which is what A_online may
do; ``literal`` is (2) as printed, which lets work move and split: another problem, with another
optimum. Both carry the storage rows of problem (7) where storage is limited. The paper's rules are
in ``printed.py``, the tight ones without migration in ``no_migration.py``, the linear relaxations
(4) and (8) and their duals in ``relaxations.py``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models import base
from hindsched.models.algebra import Expr, Model
from hindsched.models.edgecloud.no_migration import no_migration_program
from hindsched.models.edgecloud.printed import printed_program
from hindsched.models.edgecloud.relaxations import build_dual
from hindsched.models.edgecloud.sets import (
    BYTES_A_CELL,
    EdgecloudNames,
    EdgecloudSets,
    last_slots,
    lone_time,
    may_wait_in_cloud,
    read_sets,
)
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.list_schedule import Past, read_past
from hindsched.solutions.edgecloud.runs import ChunkRun, Runs, place_parameter_servers
from hindsched.solutions.edgecloud.solution import EdgecloudSolution

FORMS = {"no-migration": ("strong",), "literal": (base.PRINTED,)}


@dataclass(kw_only=True, eq=False, repr=False)
class ProblemTwo(EdgecloudNames):
    """Problem (2), or a job's part of it."""

    model: Model
    sets: EdgecloudSets

    def extract(self) -> EdgecloudSolution:
        m, instance, past = self.model, self.instance, self.sets.past
        read = _literal if self.formulation == "literal" else _no_migration
        rows = [run for j in past.open_jobs for run in read(m, self.sets, j)]
        runs = Runs.of([*past.rows, *rows])
        together = {j for j in past.open_jobs if round(m.zeta[j].value)}
        at_edge = {run.job for run in past.locked if run.place < len(instance.worker_list)}
        in_cloud = {run.job for run in past.locked} - at_edge
        holds = place_parameter_servers(instance, runs, together | in_cloud, past.holds)
        return EdgecloudSolution(instance, runs, holds, self.formulation)


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudProgram(ProblemTwo, base.OfflineProgram[EdgecloudSolution]):
    """A program of problem (2)."""

    def load(self, solution: EdgecloudSolution) -> None:
        instance, cloud = self.instance, len(self.instance.worker_list)
        last = [solution.completion(job.name) or 0 for job in instance.jobs]
        counts: Counter[tuple[str, object]] = Counter()
        seen: set[tuple[int, int]] = set()
        for key in ps_of_holds(instance, solution.holds.rows()):
            counts["z" if len(key) == 3 else "z_cloud", key] = 1
        for (j, s), most in solution.stored_chunks().items():
            counts.update(
                {("x", (j, s, t)): most for t in range(instance.arrivals[j], last[j] + 1)}
            )
        for j, chunk, place, first, end in solution.runs.rows():
            zeta = int(solution.all_cloud[j])
            start = first if may_wait_in_cloud(instance, j) else self.sets.from_cloud[j]
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
                    counts["y_cloud", (j, t)] += 1
        counts.update({("C", (j, t)): t <= last[j] for j, t in self.model.C})
        counts.update({("zeta", j): int(solution.all_cloud[j]) for j in self.model.zeta})
        for variable in self.model.component_objects(pyo.Var):
            for key, variable_data in variable.items():
                if not variable_data.fixed:
                    variable_data.set_value(
                        int(counts[variable.local_name, key]), skip_validation=True
                    )

    def capacity_prices(self, duals: base.Duals) -> dict[str, Floats]:
        """Duals of (2d) as prices of the oracle: ``worker_capacity``, shape (W, T)."""
        prices = np.zeros((len(self.instance.worker_list), self.instance.horizon))
        for (w, t), row in self.model.eq_2d.items():
            if t <= self.instance.horizon:
                prices[w, t - 1] = max(0.0, -duals.get(row, 0.0))
        return {"worker_capacity": prices}


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudSubproblem(ProblemTwo, base.Subproblem):
    """A job's part of the program of problem (2), with mutable prices and residual capacities."""

    def set(self, prices: base.Prices, room: base.Prices | None = None) -> None:
        """``worker_capacity`` (W, T).

        Slots after T cost nothing, and are not for sale where `room` is given.
        """
        price = prices["worker_capacity"]
        for w, t in self.model.price:
            inside = t <= price.shape[1]
            self.model.price[w, t] = float(price[w, t - 1]) if inside else 0.0
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
    relax: bool = False, commitments: base.Commitments | None = None,
    incumbent: Solution | None = None, policy: base.ScenarioPolicy | None = None,
) -> EdgecloudProgram:  # fmt: skip
    """Build problem (2); a feasible `incumbent` shortens the time that it spans."""
    past = read_past(instance, commitments)
    known = incumbent if isinstance(incumbent, EdgecloudSolution) else None
    last = last_slots(instance, formulation, past, known, policy)
    sets, form = read_sets(instance, formulation, past, last), form or FORMS[formulation][0]
    if form == base.PRINTED:
        ends = past.locked_ends()
        slots = max([*last.values(), *ends.values()], default=1)
        model = printed_program(instance, sorted([*past.open_jobs, *ends]), slots, relax)
        fix_past(model, instance, past)
    else:
        model = no_migration_program(sets, relax)
    return EdgecloudProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax, sets=sets, model=model
    )


def fix_past(m: Model, instance: EdgecloudInstance, past: Past) -> None:
    """Fix what has run, all of locked jobs, and that a job seen at the edge is not in the cloud."""
    cloud, ran = len(instance.worker_list), Counter[tuple[int, ...]]()
    for run in past.rows:
        at = (run.job,) if run.place == cloud else (run.job, run.place)
        ran.update((*at, t) for t in range(run.first, run.last + 1))
    held, holders = ps_of_holds(instance, past.holds), {hold.job for hold in past.holds}
    locked = past.locked_ends()
    for variable in (m.y, m.y_cloud):
        for key, item in variable.items():
            if key[-1] < past.now or key[0] in locked:
                item.fix(ran[key])
    for variable in (m.z, m.z_cloud):
        for key, item in variable.items():
            if key[0] in holders:
                item.fix(int(key in held))
    for j in past.on_edge.intersection(past.open_jobs):
        m.zeta[j].fix(0)


def ps_of_holds(instance: EdgecloudInstance, holds: Iterable[ChunkRun]) -> set[tuple[int, ...]]:
    """(job, PS, slot) of the PSs that jobs hold, the first free one of a server; no PS: cloud."""
    held, taken = set[tuple[int, ...]](), set[tuple[int, int]]()
    for j, _, server, first, last in holds:
        kind = (server, instance.jobs[j].ps_type)
        for t in range(first, last + 1):
            if server == len(instance.servers):
                held.add((j, t))
                continue
            free = (p for p, of in enumerate(instance.ps_list) if of == kind)
            p = next(p for p in free if (p, t) not in taken)
            taken.add((p, t))
            held.add((j, p, t))
    return held


def build_subproblem(
    instance: EdgecloudInstance, position: int, formulation: str
) -> EdgecloudSubproblem:
    """A job's part of (2), prices 0, everything free: its time and what its workers cost."""
    past, last = Past(open_jobs=[position]), {position: _last_at_any_prices(instance, position)}
    sets = read_sets(instance, formulation, past, last)
    if formulation == "literal":
        m = printed_program(instance, [position], last[position])
    else:
        m = no_migration_program(sets)
    cells = sorted({key[1:] for key in m.y})
    m.price = pyo.Param(cells, mutable=True, initialize=0.0, within=pyo.Reals)
    m.residual = pyo.Param(cells, mutable=True, initialize=1.0, within=pyo.Reals)

    @m.Constraint(list(m.y), doc="(2d) within what is left of the workers")
    def residual_capacity(m: Model, j: int, w: int, t: int) -> Expr:
        return m.y[j, w, t] <= m.residual[w, t]

    paid = (m.price[w, t] * y for (_, w, t), y in m.y.items())
    m.objective.expr = m.objective.expr + pyo.quicksum(paid)
    return EdgecloudSubproblem(
        instance=instance, formulation=formulation, model=m, position=position, sets=sets
    )


def _last_at_any_prices(instance: EdgecloudInstance, j: int) -> int:
    """Last slot of a job's best response: the cloud's, or all work behind the last priced slot."""
    job = instance.jobs[j]
    if not may_wait_in_cloud(instance, j):
        return job.arrival + int(instance.cloud_upload[j] + instance.cloud_slots[j]) - 1
    ready = job.arrival + max(job.upload_slots.values())
    return max(instance.horizon, ready) + job.chunks * int(instance.edge_slots[j])


def _no_migration(m: Model, f: EdgecloudSets, j: int) -> list[ChunkRun]:
    """Runs of an open job in the program without migration."""
    cloud, zeta = len(f.server), round(m.zeta[j].value)
    length, now = (f.cloud_slots if zeta else f.edge_slots)[j], f.past.now
    begun = [(chunk, *at) for (i, chunk), at in f.past.started.items() if i == j]
    used = {chunk for chunk, _, _ in begun}
    fresh = (chunk for chunk in range(1, f.chunks[j] + 1) if chunk not in used)
    rows: list[ChunkRun] = []
    for w in f.places[j]:
        here = [(chunk, done) for chunk, place, done in begun if place == w]
        here += [(chunk, 0) for chunk in islice(fresh, max(0, round(m.x[j, w].value) - len(here)))]
        slots = (t for t in f.slots[j, w] if m.y[j, w, t].value > 0.5)
        rows += [ChunkRun(j, c, w, t, t) for c, done in here for t in islice(slots, length - done)]
    rows += [
        ChunkRun(j, chunk, cloud, now, now + length - done - 1)
        for chunk, place, done in begun
        if place == cloud and done < length
    ]
    starts = [t for t in f.starts(j, length) for _ in range(round(m.s[j, zeta, t].value))]
    into = zip(starts, fresh, strict=False)
    return rows + [ChunkRun(j, chunk, cloud, t, t + length - 1) for t, chunk in into]


def _literal(m: Model, f: EdgecloudSets, j: int) -> list[ChunkRun]:
    """Runs of an open job in the printed program, dealt out to its chunks slot by slot."""
    cloud, chunks, zeta = len(f.server), f.chunks[j], round(m.zeta[j].value)
    left = chunks * (f.cloud_slots if zeta else f.edge_slots)[j] - sum(map(sum, f.done[j].values()))
    units: dict[int, list[tuple[int, int]]] = defaultdict(list)  # (place, which) by slot
    for (i, w, t), works in m.y.items():
        if i == j and t >= f.past.now:
            units[t] += [(w, 0)] * round(works.value)
    for (i, t), workers in m.y_cloud.items():
        if i == j and t >= f.past.now:
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
    return rows


MODELS = base.FamilyModels(
    forms=FORMS,
    build_offline=build_offline,
    build_subproblem=build_subproblem,
    build_dual=build_dual,
    program_bytes=program_bytes,
    decisions={"strong": {"y": 2, "s": 2, "xc": None, "zeta": None}},
    linking=frozenset({"eq_2d", "eq_2d_cloud", "eq_2f", "eq_2f_cloud", "eq_7b"}),
)

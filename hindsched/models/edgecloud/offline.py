"""The edgecloud family's programs of problem (2), and the way between them and solutions.

``no-migration`` (default) is problem (2) with every chunk on one worker, which is what A_online may
do; ``literal`` is (2) as printed, which lets work move and split. Both carry the storage rows of
problem (7) where storage is limited. Symbols stand at the top of ``edgecloud_no_migration.py`` and
``literal.py``; the reformulations (4), (6), (8), (9) are in ``relaxations.py``
and ``dual.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.base import Commitments
from hindsched.models.edgecloud.builder import ProgramBuilder
from hindsched.models.edgecloud.literal import LiteralBuilder
from hindsched.models.edgecloud.no_migration import NoMigrationBuilder
from hindsched.models.edgecloud.side_rows import may_wait_in_cloud
from hindsched.models.edgecloud.windows import Past, last_slots, read_past
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.ps import place_parameter_servers
from hindsched.solutions.edgecloud.runs import Runs
from hindsched.solutions.edgecloud.solution import EdgecloudSolution

Row = tuple[int, int, int, int, int]
BUILDERS: dict[str, type[ProgramBuilder]] = {
    "no-migration": NoMigrationBuilder,
    "literal": LiteralBuilder,
}


def build_offline(
    instance: EdgecloudInstance,
    formulation: str | None = None,
    *,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: Solution | None = None,
    edge_ps_only: bool = False,
) -> pyo.ConcreteModel:
    """Build the offline program; see ``models/base.py``.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    formulation : str, optional
        ``no-migration`` (default) or ``literal``.
    relax : bool
        Drop integrality.
    commitments : Commitments, optional
        What is already fixed.
    incumbent : EdgecloudSolution, optional
        A feasible solution, for a shorter time limit.
    edge_ps_only : bool
        Ask for an edge PS in every slot in which a job uses an edge worker.
    """
    formulation = instance.check_formulation(formulation)
    past = read_past(instance, commitments)
    known = incumbent if isinstance(incumbent, EdgecloudSolution) else None
    last = last_slots(instance, formulation, past, known, edge_ps_only=edge_ps_only)
    model = BUILDERS[formulation](instance, past, last, relax, edge_ps_only).build()
    model.formulation, model.instance = formulation, instance
    return model


def build_subproblem(
    instance: EdgecloudInstance, job: int | str, formulation: str | None = None
) -> pyo.ConcreteModel:
    """One job's block with mutable prices and residual capacities.

    The block is the job's part of `build_offline`. Its objective is the job's time plus the prices
    of the worker slots that it takes; `set_subproblem` sets prices and residual capacities.
    """
    formulation = instance.check_formulation(formulation)
    position = instance.job_index(job) if isinstance(job, str) else job
    last = {position: _last_at_any_prices(instance, position)}
    m = BUILDERS[formulation](instance, Past(open_jobs=[position]), last, False, False).build()
    m.formulation, m.instance = formulation, instance
    keys = sorted({key[1:] for key in m.y})
    m.price = pyo.Param(keys, mutable=True, initialize=0.0)
    m.residual = pyo.Param(keys, mutable=True, initialize=float(len(instance.worker_list)))
    m.residual_capacity = pyo.Constraint(
        list(m.y), rule=lambda m, j, w, t: m.y[j, w, t] <= m.residual[w, t]
    )
    m.objective.expr = m.objective.expr + pyo.quicksum(
        m.price[w, t] * y for (_, w, t), y in m.y.items()
    )
    return m


def _last_at_any_prices(instance: EdgecloudInstance, j: int) -> int:
    """Last slot of a job's best response: the cloud's, or all work behind the last priced slot."""
    job = instance.jobs[j]
    free = instance.cloud_workers(job.worker_type) is None
    if free and instance.cloud_ps(job.ps_type) is None:
        return job.arrival + int(instance.cloud_upload[j] + instance.cloud_slots[j]) - 1
    ready = job.arrival + max(job.upload_slots.values())
    return max(instance.horizon, ready) + job.chunks * int(instance.edge_slots[j])


def set_subproblem(
    model: pyo.ConcreteModel,
    prices: Mapping[str, NDArray[np.float64]],
    residual: Mapping[str, NDArray[np.float64]] | None = None,
) -> None:
    """Set a block's prices and residual capacities.

    Parameters
    ----------
    model : ConcreteModel
        From `build_subproblem`.
    prices : mapping
        ``worker_capacity``, shape (W, T): price of a worker's slots. In ``literal``, where
        identical workers are counted, they must have one price.
    residual : mapping, optional
        What is left of the same rows; None for full capacity. Slots after T are not for sale.
    """
    instance: EdgecloudInstance = model.instance
    members = list(instance.groups.values())
    given = prices["worker_capacity"]
    left = None if residual is None else residual["worker_capacity"]
    for place, t in model.price:
        workers = members[place] if model.formulation == "literal" else (place,)
        inside = t <= given.shape[1]
        model.price[place, t] = float(given[workers[0], t - 1]) if inside else 0.0
        if left is not None:
            model.residual[place, t] = (
                float(sum(left[w, t - 1] for w in workers)) if inside else 0.0
            )


def extract(
    model: pyo.ConcreteModel, instance: EdgecloudInstance, formulation: str | None = None
) -> EdgecloudSolution | None:
    """The solution at the variables' values; None if their counts do not add up."""
    formulation = instance.check_formulation(formulation)
    rows = list(model.past.rows)
    together: set[int] = set()
    taken: dict[tuple[int, int], set[int]] = {}
    for j in model.past.open_jobs:
        if round(pyo.value(model.zeta[j])):
            together.add(j)
        if formulation == "literal":
            found = _read_literal(model, instance, j, taken)
        else:
            found = _read_no_migration(model, instance, j)
        if found is None:
            return None
        rows += found
    runs = Runs.of(rows)
    locked = set(range(len(instance.jobs))) - set(model.past.open_jobs)
    cloud_only = locked - {j for j, _, place, _, _ in rows if place < len(instance.worker_list)}
    holds = place_parameter_servers(instance, runs, together | cloud_only)
    return EdgecloudSolution(instance, runs, holds, formulation)


def _spans(slots: list[int]) -> list[tuple[int, int]]:
    """Slots as spans (first, last)."""
    spans: list[tuple[int, int]] = []
    for t in slots:
        if spans and spans[-1][1] == t - 1:
            spans[-1] = (spans[-1][0], t)
        else:
            spans.append((t, t))
    return spans


def _read_no_migration(
    m: pyo.ConcreteModel, instance: EdgecloudInstance, j: int
) -> list[Row] | None:
    past: Past = m.past
    cloud = len(instance.worker_list)
    zeta = bool(round(pyo.value(m.zeta[j])))
    length = int((instance.cloud_slots if zeta else instance.edge_slots)[j])
    begun: dict[int, list[tuple[int, int]]] = {}
    for (i, chunk), (place, done) in past.started.items():
        if i == j:
            begun.setdefault(place, []).append((chunk, done))
    used = {chunk for chunks in begun.values() for chunk, _ in chunks}
    fresh = [c for c in range(1, instance.jobs[j].chunks + 1) if c not in used]
    fresh.reverse()
    rows: list[Row] = []
    for _, workers in instance.places(instance.jobs[j]):
        for w in workers:
            count = round(pyo.value(m.x[j, w]))
            mine = begun.get(w, [])
            if count - len(mine) > len(fresh):
                return None
            queue = [*mine, *((fresh.pop(), 0) for _ in range(count - len(mine)))]
            first, last = past.now, m.last[j]
            keys = ((j, w, t) for t in range(min(first, instance.jobs[j].arrival), last + 1))
            slots = [key[2] for key in keys if key in m.y and pyo.value(m.y[key]) > 0.5]
            for chunk, done in queue:
                left, slots = slots[: length - done], slots[length - done :]
                rows += [(j, chunk, w, *span) for span in _spans(left)]
            if slots:
                return None
    for chunk, done in begun.get(cloud, ()):
        if length > done:
            rows.append((j, chunk, cloud, past.now, past.now + length - done - 1))
    count = instance.jobs[j].chunks if zeta else round(pyo.value(m.xc[j]))
    count -= len(begun.get(cloud, ()))
    starts = _cloud_starts(m, instance, j, int(zeta), count)
    if starts is None or len(starts) != len(fresh):
        return None
    rows += [(j, fresh.pop(), cloud, t, t + length - 1) for t in starts]
    return rows


def _cloud_starts(
    m: pyo.ConcreteModel, instance: EdgecloudInstance, j: int, zeta: int, count: int
) -> list[int] | None:
    if not may_wait_in_cloud(instance, j):
        ready = int(instance.arrivals[j] + instance.cloud_upload[j])
        return [max(ready, m.past.now)] * count
    starts = [
        key[2] for key in m.s if key[:2] == (j, zeta) for _ in range(round(pyo.value(m.s[key])))
    ]
    return starts if len(starts) == count else None


def _read_literal(
    m: pyo.ConcreteModel,
    instance: EdgecloudInstance,
    j: int,
    taken: dict[tuple[int, int], set[int]],
) -> list[Row] | None:
    past: Past = m.past
    cloud = len(instance.worker_list)
    zeta = bool(round(pyo.value(m.zeta[j])))
    members = list(instance.groups.values())
    chunks = instance.jobs[j].chunks
    done = sum(last - first + 1 for i, _, _, first, last in past.rows if i == j)
    if zeta and not may_wait_in_cloud(instance, j):
        left = chunks * int(instance.cloud_slots[j]) - done
        ready = max(past.now, int(instance.arrivals[j] + instance.cloud_upload[j]))
        full, rest = divmod(left, chunks)
        ends = [ready + full - 1 + (c < rest) for c in range(chunks)]
        return [(j, c + 1, cloud, ready, end) for c, end in enumerate(ends) if end >= ready]
    left = chunks * int((instance.cloud_slots if zeta else instance.edge_slots)[j]) - done
    lanes: dict[int, dict[tuple[int, int], int]] = {}  # slot -> {(place, which) -> lane}
    at_cloud = m.k1 if zeta else m.k
    rows: list[Row] = []
    for t in range(min(past.now, instance.jobs[j].arrival), m.last[j] + 1):
        if left <= 0:
            break
        units: list[tuple[int, int]] = []
        for g, workers in enumerate(members):
            if (j, g, t) in m.y:
                blocked = taken.setdefault((g, t), _busy(past, workers, t))
                free = [w for w in workers if w not in blocked]
                before = lanes.get(t - 1, {})
                free.sort(key=lambda w: ((w, 0) not in before, w))
                chosen = free[: round(pyo.value(m.y[j, g, t]))]
                if len(chosen) != round(pyo.value(m.y[j, g, t])):
                    return None
                blocked.update(chosen)
                units += [(w, 0) for w in chosen]
        if (j, t) in at_cloud:
            room = chunks - len(units)
            count = round(pyo.value(at_cloud[j, t]))
            units += [(cloud, i) for i in range(min(room, count))]
        units = units[:left]
        left -= len(units)
        lanes[t] = _lanes(units, lanes.get(t - 1, {}), chunks)
        rows += [(j, lane, place, t, t) for (place, _), lane in lanes[t].items()]
    return rows if left <= 0 else None


def _busy(past: Past, workers: tuple[int, ...], t: int) -> set[int]:
    return {w for w in workers if t in past.busy.get(w, ())}


def _lanes(
    units: list[tuple[int, int]], before: Mapping[tuple[int, int], int], chunks: int
) -> dict[tuple[int, int], int]:
    """Number the workers of a job in a slot; one that ran before keeps its number."""
    kept = {unit: before[unit] for unit in units if unit in before}
    free = [c for c in range(chunks, 0, -1) if c not in set(kept.values())]
    return {unit: kept.get(unit) or free.pop() for unit in units}


def load(model: pyo.ConcreteModel, solution: Solution) -> None:
    """Set the variables' values from a solution of the whole instance, as a start."""
    assert isinstance(solution, EdgecloudSolution)
    m, instance, runs = model, solution.instance, solution.runs
    cloud = len(instance.worker_list)
    for variable in m.component_data_objects(pyo.Var):
        if not variable.fixed:
            variable.set_value(0, skip_validation=True)
    last = [solution.completion(job.name) or 0 for job in instance.jobs]
    for j, t in m.C:
        m.C[j, t].set_value(int(t <= last[j]), skip_validation=True)
    for j in m.past.open_jobs:
        if not m.zeta[j].fixed:
            m.zeta[j].set_value(int(solution.all_cloud[j]), skip_validation=True)
    literal = m.formulation == "literal"
    group = {w: g for g, ws in enumerate(instance.groups.values()) for w in ws}
    counted: set[tuple[int, int]] = set()
    for j, chunk, place, first, end in zip(
        *(column.tolist() for column in vars(runs).values()), strict=True
    ):
        fresh = (j, chunk) not in counted
        counted.add((j, chunk))
        if place == cloud and not literal:
            if not solution.all_cloud[j]:
                m.xc[j].set_value(m.xc[j].value + fresh, skip_validation=True)
            key = (j, int(solution.all_cloud[j]), first)
            if key in m.s:
                m.s[key].set_value(m.s[key].value + 1, skip_validation=True)
        elif not literal:
            m.x[j, place].set_value(m.x[j, place].value + fresh, skip_validation=True)
        for t in range(first, end + 1):
            if place < cloud:
                _count_one(m.y, (j, group[place] if literal else place, t))
            elif literal:
                _count_one(m.k1 if solution.all_cloud[j] else m.k, (j, t))


def _count_one(variable: Any, key: tuple[int, ...]) -> None:
    if key in variable:
        variable[key].set_value(variable[key].value + 1, skip_validation=True)


def capacity_prices(
    model: pyo.ConcreteModel, duals: Mapping[Any, float]
) -> dict[str, NDArray[np.float64]]:
    """Duals of (2d) as prices of the oracle's layout ``servers``: ``worker_capacity`` (W, T)."""
    instance: EdgecloudInstance = model.instance
    members = list(instance.groups.values())
    prices = np.zeros((len(instance.worker_list), instance.horizon))
    for (place, t), row in model.eq_2d.items():
        if t <= instance.horizon:
            workers = members[place] if model.formulation == "literal" else (place,)
            for w in workers:
                prices[w, t - 1] = max(0.0, -duals.get(row, 0.0))
    return {"worker_capacity": prices}

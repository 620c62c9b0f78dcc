"""Oasis instances from cluster traces.

A row (submission, duration, GPUs) becomes an elastic job whose work is duration x GPUs: one GPU a
worker, up to `elasticity` times the row's GPUs at once. Utilities come from the trace's own values
and deadlines where it has them, otherwise they are drawn as in the paper's Section V-A around a
target set from the duration.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.generators.sampling import Draws, rounded
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.instances.traces.origin import keep_origin
from hindsched.json_types import Draft

if TYPE_CHECKING:
    from hindsched.instances.traces.table import TraceTable

PER_GPU = {"gpu": 1, "cpu": 4, "memory_gb": 61, "storage_gb": 125, "bandwidth_mbps": 5000}
"""What an EC2 P2 server has for each GPU: a worker's demand."""
PS = {"cpu": 4, "memory_gb": 6, "storage_gb": 5, "bandwidth_mbps": 10000}
"""A PS serves two workers; five fit on a PS server."""
PS_SERVER = {"cpu": 36, "memory_gb": 60, "storage_gb": 1000, "bandwidth_mbps": 50000}
"""EC2 C4."""
WORKERS_PER_PS_SERVER = 10
SLOTS = 96
"""About how many slots an instance has, if neither their number nor their length is given."""
STRICT_DECAY = 6
SHARES = (0.10, 0.55, 0.35)


def from_trace(
    table: TraceTable,
    *,
    jobs: int = 60,
    seed: int = 0,
    start: float = 0.0,
    every: int = 1,
    slot_seconds: float | None = None,
    horizon: int | None = None,
    elasticity: int = 2,
    load: float = 2.0,
    gpus_per_server: int = 4,
    servers: int | None = None,
) -> OasisInstance:
    """Make an instance from rows of a trace.

    Parameters
    ----------
    table : TraceTable
        The trace (one part of it, if the caller has chosen one).
    jobs : int
        Number of jobs.
    seed : int
        Seed of the utilities that the trace does not have.
    start : float
        Seconds after the trace's first row at which to begin.
    every : int
        Keep every so many rows, which thins the stream of arrivals.
    slot_seconds : float, optional
        Length of a slot; by default the whole minutes with which the horizon below has about 96
        slots.
    horizon : int, optional
        Number of slots; by default the last arrival plus what nine tenths of the jobs need with all
        their workers.
    elasticity : int
        Most workers at once, as a multiple of the row's GPUs.
    load : float
        Offered GPU load (work of the jobs that the horizon lets finish over the GPUs' time) that
        sets the number of servers, if `servers` is not given.
    gpus_per_server : int
        GPUs of a worker server, whose other resources are in P2's proportion.
    servers : int, optional
        Number of worker servers; PS servers follow, one for 10 workers.

    Returns
    -------
    OasisInstance
        Its provenance names the trace, the settings, and jobs that cannot finish by the horizon,
        and has what `keep_origin` keeps.
    """
    settings = {
        "jobs": jobs, "start": start, "every": every, "slot_seconds": slot_seconds,
        "horizon": horizon, "elasticity": elasticity, "load": load,
        "gpus_per_server": gpus_per_server, "servers": servers,
    }  # fmt: skip
    _check(settings)
    window = table.window(start, (jobs - 1) * every + 1).rows.iloc[::every]
    rows: list[Draft] = [{str(k): v for k, v in row.items()} for row in window.to_dict("records")]
    waited = [row["submit_seconds"] - rows[0]["submit_seconds"] for row in rows]
    shortest = sorted(row["duration_seconds"] / elasticity for row in rows)
    most_need = shortest[(9 * (jobs - 1)) // 10]
    if slot_seconds is None:
        slot_seconds = 60.0 * max(1, math.ceil((waited[-1] + most_need) / 60 / SLOTS))
    arrivals = [int(seconds // slot_seconds) + 1 for seconds in waited]
    gpu_slots = [row["duration_seconds"] * row["gpus"] / slot_seconds for row in rows]
    most = [elasticity * int(row["gpus"]) for row in rows]
    if horizon is None:
        horizon = max(arrivals) + math.ceil(most_need / slot_seconds)
    elif horizon < max(arrivals):
        rule = f"must reach the last arrival, slot {max(arrivals)}"
        raise InputError("set.horizon", horizon, rule)
    fitting = [
        work <= n * (horizon - arrival + 1)
        for work, n, arrival in zip(gpu_slots, most, arrivals, strict=True)
    ]
    if servers is None:
        offered = math.fsum(work for work, fits in zip(gpu_slots, fitting, strict=True) if fits)
        servers = max(1, math.floor(offered / (load * horizon * gpus_per_server)))
    ps_servers = max(1, math.ceil(servers * gpus_per_server / WORKERS_PER_PS_SERVER))
    worker_server = {key: value * gpus_per_server for key, value in PER_GPU.items()}
    made = OasisInstance.parse(
        {
            "format": "hindsched/1",
            "family": "oasis",
            "name": f"oasis-{table.format}-{jobs}-{int(start)}-s{seed}",
            "horizon": horizon,
            "slot_seconds": slot_seconds,
            "provenance": {
                "generator": "oasis from a trace",
                **table.provenance(),
                "seed": seed,
                "settings": settings,
                "too_long_for_the_horizon": [
                    str(row["job"]) for row, fits in zip(rows, fitting, strict=True) if not fits
                ],
            },
            "resources": list(PER_GPU),
            "bandwidth_resource": "bandwidth_mbps",
            "worker_servers": [
                {"name": f"w{i + 1}", "capacity": worker_server} for i in range(servers)
            ],
            "ps_servers": [{"name": f"p{i + 1}", "capacity": PS_SERVER} for i in range(ps_servers)],
            "jobs": [
                {
                    "name": f"j{index + 1}",
                    "arrival": arrival,
                    "epochs": 1,
                    "chunks": n,
                    "minibatches": 1,
                    "minibatch_slots": rounded(work / n),
                    "gradient_mb": 0,
                    "worker": PER_GPU,
                    "ps": PS,
                    "utility": _utility(row, Draws(seed, "utility", str(index)), slot_seconds),
                }
                for index, (row, arrival, n, work) in enumerate(
                    zip(rows, arrivals, most, gpu_slots, strict=True)
                )
            ],
        }
    )
    has_values = bool((window["value_kind"] != "").all())
    return keep_origin(
        made,
        window,
        took=(
            "submission: arrival",
            "duration x GPUs: work",
            f"GPUs x {elasticity}: most workers at once",
            *(("values and deadlines: utility",) if has_values else ()),
        ),
        made_up=(
            f"{servers} worker servers and {ps_servers} PS servers of EC2 shapes",
            "demands of a worker (one GPU's share of a P2 server) and of a PS",
            *(() if has_values else ("utilities, drawn around the duration",)),
        ),
    )


def _check(settings: Draft) -> None:
    for name in ("jobs", "every", "elasticity", "gpus_per_server", "horizon", "servers"):
        value = settings[name]
        optional = name in ("horizon", "servers")
        if not (optional and value is None) and (type(value) is not int or value < 1):
            raise InputError(f"set.{name}", value, "must be an integer of at least 1")
    for name in ("load", "slot_seconds"):
        value = settings[name]
        if value is not None and not value > 0:
            raise InputError(f"set.{name}", value, "must be above 0")


def _utility(row: Draft, draws: Draws, slot_seconds: float) -> Draft:
    """Values of the trace as a sigmoid, or Section V-A's classes around the row's duration."""
    deadlines = [float(second) / slot_seconds for second in row["deadlines_seconds"]]
    values = [float(value) for value in row["values"]]
    if row["value_kind"] == "best-effort":
        return _sigmoid(2 * values[0], 0, 0)
    if row["value_kind"] == "strict":
        return _sigmoid(values[0], STRICT_DECAY, deadlines[0] + 0.5)
    if row["value_kind"] == "soft":
        last = deadlines[-1]
        shape = tuple(rounded(deadline / last) for deadline in deadlines)
        priority, decay, target = fit_steps(shape, tuple(values))
        return _sigmoid(priority, decay / last, target * last)
    decay_range = draws.choice([(0.0, 0.0), (0.01, 1.0), (4.0, 6.0)], SHARES)
    target = row["duration_seconds"] / slot_seconds * draws.uniform(0.5, 1.5)
    return _sigmoid(draws.uniform(1, 100), draws.uniform(*decay_range), target)


def _sigmoid(priority: float, decay: float, target: float) -> Draft:
    return {
        "kind": "sigmoid",
        "priority": rounded(priority),
        "decay": rounded(decay),
        "target": rounded(target),
    }


@lru_cache(maxsize=4096)
def fit_steps(
    deadlines: tuple[float, ...], values: tuple[float, ...]
) -> tuple[float, float, float]:
    """Fit a sigmoid to a falling staircase by least squares at the middle of each step.

    Parameters
    ----------
    deadlines : tuple of float
        Ends of the steps, ascending, the last one 1.
    values : tuple of float
        Value within each deadline.

    Returns
    -------
    priority, decay, target : float
        In the deadlines' unit. Decay and target are searched on a fixed grid and the priority
        follows in closed form, so that the result does not hang on an optimiser's last digits.
    """
    middles = (np.array((0.0, *deadlines[:-1])) + np.array(deadlines)) / 2
    steps = np.array(values)
    decays = np.array([rounded(float(d)) for d in np.geomspace(0.5, 100.0, 120)])
    targets = np.linspace(0.0, 1.5, 151)
    exponent = decays[:, None, None] * (middles - targets[None, :, None])
    shape = 1.0 / (1.0 + np.exp(exponent))
    priority = (shape * steps).sum(axis=2) / (shape**2).sum(axis=2)
    error = ((priority[:, :, None] * shape - steps) ** 2).sum(axis=2)
    best = int(np.argmin(np.round(error, 9)))
    decay, target = np.unravel_index(best, error.shape)
    chosen = priority[decay, target]
    return rounded(float(chosen)), float(decays[decay]), rounded(float(targets[target]))

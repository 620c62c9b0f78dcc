"""Astraea instances from cluster traces: virtual clusters are the tenants.

A row (virtual cluster, submission, duration, GPUs) becomes a job of its virtual cluster's tenant
whose work is duration x GPUs: D is `elasticity` times the GPUs, the number of mini-batches follows
from a mini-batch time drawn from the paper's range. What a trace does not say (gradient, update
time, bandwidths, utility) is drawn from the ranges of Section 5.1. The paper sets the number of
workers to the GPUs asked for and also draws D from [20, 50]: both cannot be, so the GPUs asked for
are the workers of those rivals that do not choose the number themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hindsched.errors import InputError
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.generators.ranges import check_count, check_positive
from hindsched.instances.generators.sampling import Draws, rounded
from hindsched.instances.traces.origin import keep_origin
from hindsched.json_types import Draft

if TYPE_CHECKING:
    import pandas as pd

    from hindsched.instances.traces.table import TraceTable

GPUS_PER_NODE = 8
"""Of Philly's nodes."""

PHILLY_NODES = {
    "6214e9": 64, "7f04ca": 32, "11cb48": 16, "b436b2": 64, "ee9e8c": 64, "e13805": 16,
    "6c71a0": 32, "2869ce": 16, "ed69ec": 8, "103959": 8, "0e4a51": 32,
}  # fmt: skip
"""Nodes of the Philly virtual clusters for which a number is published (HeliosArtifact, MIT)."""

NO_NODES = "a virtual cluster without a number of nodes"
RANGES = {
    "minibatch_slots": (0.001, 0.05),
    "update_ms": (10.0, 100.0),
    "gradient_mb": (30.0, 575.0),
    "slope": (-2.0, -0.1),
    "intercept": (100.0, 1000.0),
    "power_scale": (100.0, 1000.0),
    "exponent": (1.0, 2.0),
}


def from_trace(
    table: TraceTable,
    *,
    jobs: int = 100,
    seed: int = 0,
    start: float = 0.0,
    slot_seconds: float = 3600,
    horizon: int | None = None,
    elasticity: int = 2,
    node_scale: float = 1.0,
    servers: int | None = None,
    load: float = 2.0,
    nodes: Mapping[str, int] | None = None,
    capacity: str | None = None,
    date: str | None = None,
    utility: str = "linear",
    utility_origin: str = "arrival",
) -> AstraeaInstance:
    """Make an instance from rows of a trace.

    Parameters
    ----------
    table : TraceTable
        The trace; its parts are the virtual clusters.
    jobs : int
        Number of jobs: consecutive rows of virtual clusters with known nodes.
    seed : int
        Seed of what the trace does not say.
    start : float
        Seconds after the trace's first row at which to begin.
    slot_seconds : float
        Length of a slot.
    horizon : int, optional
        Number of slots; by default four times the least power of 2 that covers the arrivals and
        the shortest durations of nine tenths of the jobs: their batch's last slot at lambda = 2.
    elasticity : int
        D as a multiple of the GPUs.
    node_scale : float
        Factor on the numbers of nodes (at least one stays), for contention with few jobs.
    servers : int, optional
        Number of nodes, shared out over the virtual clusters as their jobs ask for GPU time.
    load : float
        Offered GPU load that sets the number of nodes where nothing else does.
    nodes : mapping, optional
        Nodes of 8 GPUs by virtual cluster, added to those of `capacity`.
    capacity : str, optional
        File with the tenants' capacities: ``vc,node num`` (Philly) or one row a day with GPUs by
        virtual cluster (Helios). Without it Philly has its published numbers; of other traces,
        which publish none, nodes are made up from `servers` or `load`.
    date : str, optional
        Day of a Helios table; its first day if not given.
    utility : {"linear", "power"}
        Kind of utilities.
    utility_origin : {"arrival", "absolute"}
        Of the instance.

    Returns
    -------
    AstraeaInstance
        ``provenance`` names the trace and the settings, counts the rows rejected because their
        virtual cluster has no known nodes, and the jobs too long for the horizon.
    """
    settings = {
        "jobs": jobs, "start": start, "slot_seconds": slot_seconds, "horizon": horizon,
        "elasticity": elasticity, "node_scale": node_scale, "servers": servers, "load": load,
        "capacity": capacity, "date": date, "utility": utility, "utility_origin": utility_origin,
    }  # fmt: skip
    _check({**settings, "nodes": nodes})
    gpus = {} if servers is not None else tenant_gpus(table.format, capacity, date, nodes)
    window, refused = _rows(table, gpus, start, jobs)
    rows = [{str(k): v for k, v in row.items()} for row in window.to_dict("records")]
    waited = [row["submit_seconds"] - rows[0]["submit_seconds"] for row in rows]
    arrivals = [int(seconds // slot_seconds) for seconds in waited]
    shortest = sorted(row["duration_seconds"] / elasticity / slot_seconds for row in rows)
    if horizon is None:
        cover = max(arrivals[-1] + 1, math.ceil(shortest[(9 * (jobs - 1)) // 10]), 2)
        horizon = 4 * 2 ** math.ceil(math.log2(cover))
    elif horizon <= arrivals[-1]:
        raise InputError("set.horizon", horizon, f"must exceed the last arrival, {arrivals[-1]}")
    is_made_up = not gpus
    if is_made_up:
        gpus = shared_gpus(rows, servers, load * horizon * slot_seconds)
    cluster, tenants = _cluster(gpus, node_scale)
    draws = Draws(seed, "bandwidth")
    made = AstraeaInstance.parse(
        {
            "name": f"astraea-{table.format}-{jobs}-{int(start)}-s{seed}",
            "horizon": horizon,
            "slot_seconds": slot_seconds,
            "utility_origin": utility_origin,
            "tenants": tenants,
            "servers": cluster,
            "worker_bandwidth_mbps": draws.integer(100, 5 * 1024),
            "ps_bandwidth_mbps": draws.integer(5000, 20_000),
            "jobs": [
                _job(row, arrival, Draws(seed, "job", str(index)), settings, f"j{index + 1}")
                for index, (row, arrival) in enumerate(zip(rows, arrivals, strict=True))
            ],
            "provenance": {
                "generator": "astraea from a trace",
                **table.provenance(),
                "seed": seed,
                "settings": settings,
                "rejected": {NO_NODES: refused},
                "too_long_for_the_horizon": sum(
                    length > horizon - arrival
                    for length, arrival in zip(
                        (row["duration_seconds"] / elasticity / slot_seconds for row in rows),
                        arrivals,
                        strict=True,
                    )
                ),
            },
        }
    )
    quotas = f"{len(cluster)} nodes of 8 GPUs with a PS each"
    return keep_origin(
        made,
        window,
        took=(
            "submission: arrival",
            "duration x GPUs: work",
            f"GPUs: requested workers; times {elasticity}: most at once",
            "virtual cluster or part: tenant",
            *(() if is_made_up else (f"{quotas}, by the virtual clusters' numbers",)),
        ),
        made_up=(
            *((f"{quotas}, shared out as the tenants ask for GPU time",) if is_made_up else ()),
            "utilities, mini-batch and update times, gradients and bandwidths, drawn",
        ),
    )


def _check(s: Draft) -> None:
    for name in ("jobs", "elasticity"):
        check_count(name, s[name])
    if s["horizon"] is not None:
        check_count("horizon", s["horizon"])
    for name in ("slot_seconds", "node_scale", "load"):
        check_positive(name, s[name])
    if s["servers"] is not None:
        check_count("servers", s["servers"])
        for name in ("capacity", "nodes"):
            if s[name] is not None:
                raise InputError("set.servers", s["servers"], f"must not be given with {name}")
    if s["start"] != 0:
        check_positive("start", s["start"])
    if s["utility"] not in ("linear", "power"):
        raise InputError("set.utility", s["utility"], "must be one of linear, power")
    for name in ("capacity", "date"):
        if s[name] is not None and not isinstance(s[name], str):
            raise InputError(f"set.{name}", s[name], "must be text")
    if s["date"] is not None and s["capacity"] is None:
        raise InputError("set.date", s["date"], "needs capacity")


def tenant_gpus(
    trace_format: str,
    capacity: str | None,
    date: str | None,
    nodes: Mapping[str, int] | None,
) -> dict[str, int]:
    """GPUs by virtual cluster, those without any left out; empty if nothing says how many.

    Raises
    ------
    InputError
        If a number is no count.
    """
    gpus: dict[str, int] = {}
    if nodes is not None and not isinstance(nodes, Mapping):
        raise InputError("set.nodes", nodes, "must give a number of nodes by virtual cluster")
    if capacity is not None:
        gpus = _read_capacity(capacity, date)
    elif trace_format == "philly":
        gpus = {name: GPUS_PER_NODE * count for name, count in PHILLY_NODES.items()}
    for name, count in (nodes or {}).items():
        check_count(f"nodes.{name}", count)
        gpus[name] = GPUS_PER_NODE * count
    return {name: count for name, count in gpus.items() if count > 0}


def shared_gpus(rows: list[Draft], servers: int | None, gpu_seconds_a_gpu: float) -> dict[str, int]:
    """GPUs of whole nodes by part, as its jobs ask for GPU time; every part has a node.

    Parameters
    ----------
    rows : list of dict
        The jobs.
    servers : int, optional
        Number of nodes; None for as many as the GPU time asked for needs.
    gpu_seconds_a_gpu : float
        GPU seconds that are asked of each GPU if `servers` is None.

    Examples
    --------
    >>> asked = [{"part": "a", "duration_seconds": 30.0, "gpus": 1}] * 3
    >>> shared_gpus([*asked, {"part": "b", "duration_seconds": 30.0, "gpus": 1}], 5, 1.0)
    {'a': 32, 'b': 8}
    """
    asked: dict[str, float] = {}
    for row in rows:
        seconds = float(row["duration_seconds"]) * int(row["gpus"])
        asked[str(row["part"])] = asked.get(str(row["part"]), 0.0) + seconds
    total = math.fsum(asked.values())
    if servers is None:
        servers = max(len(asked), math.ceil(total / gpu_seconds_a_gpu / GPUS_PER_NODE))
    if servers < len(asked):
        raise InputError("set.servers", servers, f"must be at least {len(asked)}, one a tenant")
    nodes = dict.fromkeys(asked, 1)
    for _ in range(servers - len(asked)):  # the next node goes where it is asked for most
        neediest = max(asked, key=lambda part: asked[part] / nodes[part])
        nodes[neediest] += 1
    return {part: GPUS_PER_NODE * count for part, count in nodes.items()}


def _read_capacity(path: str, date: str | None) -> dict[str, int]:
    from hindsched.instances.traces.table import load_capacities

    return load_capacities(path, date, GPUS_PER_NODE)


def _rows(
    table: TraceTable, gpus: Mapping[str, int], start: float, jobs: int
) -> tuple[pd.DataFrame, int]:
    """Consecutive rows of known virtual clusters, and how many others stood between them.

    Where no number of nodes is known of any, all are taken.
    """
    later = table.rows[table.rows["submit_seconds"] >= start]
    known = later["part"].isin(list(gpus)) if gpus else later["part"].notna()
    found = later[known].head(jobs)
    if len(found) < jobs:
        rule = f"the trace has {len(found)} jobs of tenants with nodes from second {start:g} on"
        raise InputError("jobs", jobs, rule)
    refused = int((~known.loc[: found.index[-1]]).sum())
    return found, refused


def _cluster(gpus: Mapping[str, int], scale: float) -> tuple[list[Draft], list[Draft]]:
    """Nodes of 8 GPUs (the last one of a tenant may be smaller) with one PS each; the tenants."""
    servers: list[Draft] = []
    tenants = []
    for name, total in gpus.items():
        left = max(min(GPUS_PER_NODE, total), math.floor(total * scale))
        own = []
        while left > 0:
            own.append(min(GPUS_PER_NODE, left))
            left -= own[-1]
        servers += [
            {"name": f"{name}-{index + 1}", "workers": count, "ps": 1}
            for index, count in enumerate(own)
        ]
        tenants.append({"name": name, "worker_quota": sum(own), "ps_quota": len(own)})
    return servers, tenants


def _job(row: Draft, arrival: int, draws: Draws, settings: Draft, name: str) -> Draft:
    workers = int(row["gpus"])
    chunks = settings["elasticity"] * workers
    work = row["duration_seconds"] * workers / settings["slot_seconds"]
    about = draws.uniform(*RANGES["minibatch_slots"])
    minibatches = max(1, round(work / chunks / about))
    linear = {
        "kind": "linear",
        "slope": draws.uniform(*RANGES["slope"]),
        "intercept": draws.uniform(*RANGES["intercept"]),
    }
    power = {
        "kind": "power",
        "scale": draws.uniform(*RANGES["power_scale"]),
        "exponent": draws.uniform(*RANGES["exponent"]),
    }
    update = draws.uniform(*RANGES["update_ms"]) / 1000 / settings["slot_seconds"]
    return {
        "name": name,
        "tenant": str(row["part"]),
        "arrival": arrival,
        "epochs": 1,
        "chunks": chunks,
        "minibatches": minibatches,
        "minibatch_slots": rounded(work / chunks / minibatches),
        "update_slots": rounded(update),
        "gradient_mb": draws.uniform(*RANGES["gradient_mb"]),
        "utility": linear if settings["utility"] == "linear" else power,
        "requested_workers": workers,
    }

"""Random instances of astraea with the ranges of the paper's Section 5.1, and those from traces.

With the printed ranges (the preset ``printed``) a job trains for about 2000 worker-hours; linear
revenue is 113 to 241 a job with one round a batch and 27 to 174 with two (seeds 100 to 104). The
preset ``paper`` shortens mini-batches to a tenth, ``minibatch_scale`` = 0.1.
The paper sets the number of workers to the GPUs asked for and also draws D from [20, 50]: both
cannot be, so the GPUs asked for are the workers of those baselines that do not choose themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from hindsched.errors import InputError
from hindsched.instances import base
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.base import Count, Instance, Positive, PositiveCount
from hindsched.instances.generators import ranges
from hindsched.instances.generators.ranges import Draws, arrival_slots, rounded
from hindsched.instances.generators.registry import FamilyGenerator, suites_of
from hindsched.json_types import Draft

if TYPE_CHECKING:
    from hindsched.instances.traces.table import TraceTable

SLOT_SECONDS = 3600
GPUS_PER_NODE = 8  # of Philly's nodes
PHILLY_NODES = {
    "6214e9": 64, "7f04ca": 32, "11cb48": 16, "b436b2": 64, "ee9e8c": 64, "e13805": 16,
    "6c71a0": 32, "2869ce": 16, "ed69ec": 8, "103959": 8, "0e4a51": 32,
}  # fmt: skip
"""Nodes of the Philly virtual clusters for which a number is published (HeliosArtifact, MIT)."""
NO_NODES = "a virtual cluster without a number of nodes"


class AstraeaSettings(ranges.Settings):
    """Settings of `generate`; the defaults are the preset ``paper``.

    Of a server with several types, the numbers are of each type; a job's times differ by type then.
    """

    jobs: PositiveCount = 100
    servers: PositiveCount = 100
    tenants: PositiveCount = 14
    horizon: PositiveCount = 1500
    arrival_span: PositiveCount = 48  # arrivals are 0..arrival_span - 1
    workers_per_server: Annotated[tuple[Count, ...], BeforeValidator(ranges.listed)] = (2, 8)
    ps_per_server: Count = 1
    worker_mbps: ranges.Wholes = (100, 5120)
    ps_mbps: ranges.Wholes = (5000, 20_000)
    epochs: ranges.Wholes = (50, 100)
    chunks: ranges.Wholes = (20, 50)
    minibatches: ranges.Wholes = (10, 50)
    minibatch_slots: ranges.Positives = (0.001, 0.05)
    minibatch_scale: Positive = 0.1  # a factor on `minibatch_slots`
    update_ms: ranges.Amounts = (10.0, 100.0)
    gradient_mb: ranges.Amounts = (30.0, 575.0)
    utility: Literal["linear", "power", "mixed"] = "linear"
    utility_origin: str = "arrival"
    slope: Annotated[ranges.Range, ranges.within(-base.LARGEST_NUMBER, 0)] = (-2.0, -0.1)
    intercept: ranges.Range = (100.0, 1000.0)
    power_scale: ranges.Positives = (100.0, 1000.0)
    exponent: ranges.Amounts = (1.0, 2.0)
    requested: ranges.Wholes = (1, 8)
    worker_types: PositiveCount = 1
    ps_types: PositiveCount = 1

    @model_validator(mode="after")
    def _check_arrivals(self) -> Self:
        if self.arrival_span > self.horizon:
            rule = f"must not exceed horizon = {self.horizon}"
            raise InputError("arrival_span", self.arrival_span, rule)
        return self


PRESETS: dict[str, Draft] = {
    "small": AstraeaSettings.values(
        jobs=5, servers=4, tenants=2, horizon=12, arrival_span=3, workers_per_server=(1, 2, 3),
        worker_mbps=(1000, 1000), ps_mbps=(2000, 2000), epochs=(1, 1), chunks=(2, 5),
        minibatches=(2, 4), minibatch_slots=(0.3, 0.7), minibatch_scale=1.0, update_ms=(0.0, 0.0),
        gradient_mb=(20_000.0, 50_000.0), slope=(-4.0, -0.5), intercept=(60.0, 150.0),
        power_scale=(60.0, 150.0), requested=(1, 4),
    ),
    "paper": AstraeaSettings.values(),
    "printed": AstraeaSettings.values(minibatch_scale=1.0),
}  # fmt: skip


def generate(preset: str, seed: int, **settings: object) -> Instance:
    """Generate a random instance from a preset, a seed and settings of `AstraeaSettings`."""
    s = AstraeaSettings.of(PRESETS[preset], settings)
    workers = [f"w{k + 1}" for k in range(s.worker_types)]
    ps = [f"p{k + 1}" for k in range(s.ps_types)]
    draws = Draws(seed, "servers")
    servers: list[Draft] = [
        {
            "name": f"s{h + 1}",
            "workers": _values_by_type(
                [draws.choice(s.workers_per_server) for _ in workers], workers
            ),
            "ps": _values_by_type([s.ps_per_server for _ in ps], ps),
        }
        for h in range(s.servers)
    ]
    draws = Draws(seed, "bandwidth")
    data: Draft = {
        "name": f"astraea-{preset}-{s.utility}-j{s.jobs}-s{seed}",
        "horizon": s.horizon,
        "slot_seconds": SLOT_SECONDS,
        "utility_origin": s.utility_origin,
        "tenants": _tenants(s, Draws(seed, "tenants"), servers),
        "servers": servers,
        "worker_bandwidth_mbps": _values_by_type(
            [draws.integer(*s.worker_mbps) for _ in workers], workers
        ),
        "ps_bandwidth_mbps": _values_by_type([draws.integer(*s.ps_mbps) for _ in ps], ps),
        "jobs": _astraea_jobs(s, seed, workers, ps),
        "provenance": {"generator": "astraea", "preset": preset, "seed": seed, **settings},
    }
    return AstraeaInstance.parse(data)


def _values_by_type(values: Sequence[object], types: Sequence[str]) -> Any:
    """A bare number for one type, else numbers keyed by type."""
    return values[0] if len(types) == 1 else dict(zip(types, values, strict=True))


def _tenants(s: AstraeaSettings, draws: Draws, servers: list[Draft]) -> list[Draft]:
    """Tenants own servers in one stretch each, at least one while there are enough."""
    weights = [draws.uniform(0.5, 2.0) for _ in range(s.tenants)]
    bounds = [0, *itertools.accumulate(weights)]
    spare = max(0, len(servers) - s.tenants)
    cuts = [
        min(len(servers), index + int(spare * bound / bounds[-1] + 0.5))
        for index, bound in enumerate(bounds)
    ]
    cuts[-1] = len(servers)

    def quota(field: str, u: int) -> Any:
        owned = [server[field] for server in servers[cuts[u] : cuts[u + 1]]]
        like = servers[0][field]
        if not isinstance(like, dict):
            return sum(owned)
        return {name: sum(counts[name] for counts in owned) for name in like}

    return [
        {"name": f"u{u + 1}", "worker_quota": quota("workers", u), "ps_quota": quota("ps", u)}
        for u in range(s.tenants)
    ]


def _astraea_jobs(s: AstraeaSettings, seed: int, workers: list[str], ps: list[str]) -> list[Draft]:
    arrivals = arrival_slots(Draws(seed, "arrivals"), s.jobs, s.arrival_span)
    jobs = []
    for number, slot in enumerate(arrivals, start=1):
        draws = Draws(seed, "job", str(number))
        job: Draft = {"name": f"j{number}", "arrival": slot - 1}
        job["tenant"] = f"u{draws.integer(1, s.tenants)}"
        job |= draws.integers(s, "epochs", "chunks", "minibatches")
        times = [rounded(draws.uniform(*s.minibatch_slots) * s.minibatch_scale)]
        updates = [rounded(draws.uniform(*s.update_ms) / 1000 / SLOT_SECONDS)]
        job["gradient_mb"] = draws.uniform(*s.gradient_mb)
        utilities = _utilities(s, draws)
        kind = s.utility
        if kind == "mixed":
            kind = "linear" if draws.chance(0.5) else "power"
        job["utility"] = utilities[kind]
        job["requested_workers"] = draws.integer(*s.requested)
        times += [rounded(times[0] * draws.uniform(0.5, 2.0)) for _ in workers[1:]]
        updates += [rounded(updates[0] * draws.uniform(0.5, 2.0)) for _ in ps[1:]]
        job["minibatch_slots"], job["update_slots"] = (
            _values_by_type(times, workers),
            _values_by_type(updates, ps),
        )
        jobs.append(job)
    return jobs


def _utilities(s: AstraeaSettings, draws: Draws) -> dict[str, Draft]:
    """A linear and a power utility of Section 5.1's ranges."""
    slope, intercept = draws.uniform(*s.slope), draws.uniform(*s.intercept)
    scale, exponent = draws.uniform(*s.power_scale), draws.uniform(*s.exponent)
    return {
        "linear": {"kind": "linear", "slope": slope, "intercept": intercept},
        "power": {"kind": "power", "scale": scale, "exponent": exponent},
    }


class TraceSettings(ranges.RowSettings):
    """Settings of `from_trace`.

    A job takes the trace's duration; with `minibatch_scale` its work is drawn from Section 5.1's
    ranges, as in the paper, and Philly's clusters share `servers` as they share its nodes.
    By default the horizon is four times the least power of 2 that covers the arrivals and the
    shortest durations of nine tenths of the jobs: their batch's last slot at lambda = 2.
    """

    slot_seconds: Positive = 3600
    horizon: PositiveCount | None = None
    elasticity: PositiveCount = 2  # D as a multiple of the GPUs
    servers: PositiveCount | None = None  # nodes, shared out as the clusters ask for GPU time
    load: Positive = 2.0  # offered GPU load that sets the nodes where nothing else does
    minibatch_scale: Positive | None = None  # work is drawn, with such a factor on its times
    utility: Literal["linear", "power"] = "linear"
    utility_origin: str = "arrival"


def from_trace(
    table: TraceTable, *, jobs: int = 100, seed: int = 0, **settings: object
) -> Instance:
    """Make an instance from consecutive rows of virtual clusters with known nodes.

    ``provenance`` counts the rows rejected because their virtual cluster has no known nodes, and
    the jobs too long for the horizon.
    """
    s = TraceSettings.of({}, settings)
    nodes = PHILLY_NODES if table.format == "philly" else {}
    if s.servers is not None:
        nodes = _shared_nodes(nodes, s.servers) if nodes and s.minibatch_scale else {}
    later = table.rows[table.rows["submit_seconds"] >= s.start]
    known = later["part"].isin(list(nodes)) if nodes else later["part"].notna()
    chosen = later[known].iloc[:: s.every].head(jobs)
    if len(chosen) < jobs:
        rule = f"the trace has {len(chosen)} jobs of tenants with nodes from second {s.start:g} on"
        raise InputError("jobs", jobs, rule)
    rows = ranges.records_of(chosen)
    arrivals = ranges.arrivals_of(rows, s.slot_seconds, 0)
    lengths = [row["duration_seconds"] / s.elasticity / s.slot_seconds for row in rows]
    nearly_all = math.ceil(sorted(lengths)[(9 * (jobs - 1)) // 10])
    cover = max(arrivals[-1] + 1, nearly_all, 2)
    horizon = s.horizon or 4 * 2 ** math.ceil(math.log2(cover))
    if horizon <= arrivals[-1]:
        raise InputError("set.horizon", horizon, f"must exceed the last arrival, {arrivals[-1]}")
    nodes = nodes or _asked_nodes(rows, s.servers, s.load * horizon * s.slot_seconds)
    drawn, draws = AstraeaSettings(), Draws(seed, "bandwidth")
    data: Draft = {
        "name": f"astraea-{table.format}-{jobs}-{int(s.start)}-s{seed}",
        "horizon": horizon,
        "slot_seconds": s.slot_seconds,
        "utility_origin": s.utility_origin,
        "tenants": [
            {"name": name, "worker_quota": GPUS_PER_NODE * count, "ps_quota": count}
            for name, count in nodes.items()
        ],
        "servers": [
            {"name": f"{name}-{index + 1}", "workers": GPUS_PER_NODE, "ps": 1}
            for name, count in nodes.items()
            for index in range(count)
        ],
        "worker_bandwidth_mbps": draws.integer(*drawn.worker_mbps),
        "ps_bandwidth_mbps": draws.integer(*drawn.ps_mbps),
        "jobs": [
            {"name": f"j{index + 1}", "arrival": arrivals[index], "tenant": str(row["part"]),
             **_traced_job(drawn, Draws(seed, "job", str(index)), row, s)}
            for index, row in enumerate(rows)
        ],
    }  # fmt: skip
    return ranges.traced(
        AstraeaInstance, data, rows, table, seed, s,
        rejected={NO_NODES: int((~known.loc[: chosen.index[-1]]).sum())},
        too_long_for_the_horizon=sum(
            length > horizon - arrival for length, arrival in zip(lengths, arrivals, strict=True)
        ),
    )  # fmt: skip


def _traced_job(drawn: AstraeaSettings, draws: Draws, row: Draft, s: TraceSettings) -> Draft:
    workers = int(row["gpus"])
    if s.minibatch_scale:
        work: Draft = {**draws.integers(drawn, "epochs", "chunks", "minibatches")}
        work["minibatch_slots"] = rounded(draws.uniform(*drawn.minibatch_slots) * s.minibatch_scale)
    else:
        chunks = s.elasticity * workers
        slots = row["duration_seconds"] * workers / s.slot_seconds / chunks
        minibatches = max(1, round(slots / draws.uniform(*drawn.minibatch_slots)))
        work = {"epochs": 1, "chunks": chunks, "minibatches": minibatches,
                "minibatch_slots": rounded(slots / minibatches)}  # fmt: skip
    utilities = _utilities(drawn, draws)
    return {
        **work,
        "update_slots": rounded(draws.uniform(*drawn.update_ms) / 1000 / s.slot_seconds),
        "gradient_mb": draws.uniform(*drawn.gradient_mb),
        "utility": utilities[s.utility],
        "requested_workers": workers,
    }


def _asked_nodes(
    rows: list[Draft], servers: int | None, gpu_seconds_a_gpu: float
) -> dict[str, int]:
    """Nodes by part, as its jobs ask for GPU time.

    Without a number of servers there are as many as the GPU seconds asked of each GPU need.
    """
    asked: dict[str, float] = {}
    for row in rows:
        seconds = float(row["duration_seconds"]) * int(row["gpus"])
        asked[str(row["part"])] = asked.get(str(row["part"]), 0.0) + seconds
    if servers is None:
        total = math.fsum(asked.values())
        servers = max(len(asked), math.ceil(total / gpu_seconds_a_gpu / GPUS_PER_NODE))
    return _shared_nodes(asked, servers)


def _shared_nodes(asked: Mapping[str, float], servers: int) -> dict[str, int]:
    """So many nodes by part: one each, the next where it is asked for most."""
    if servers < len(asked):
        raise InputError("set.servers", servers, f"must be at least {len(asked)}, one a tenant")
    nodes = dict.fromkeys(asked, 1)
    for _ in range(servers - len(asked)):
        nodes[max(asked, key=lambda part: asked[part] / nodes[part])] += 1
    return nodes


LEVELS: tuple[Draft, ...] = (
    {"jobs": 4, "servers": 4},
    {"jobs": 6, "servers": 5},
    {"jobs": 8, "servers": 5, "horizon": 20, "arrival_span": 4},
    {"jobs": 6, "servers": 4, "utility": "power"},
    {"jobs": 6, "servers": 4, "utility": "mixed", "utility_origin": "absolute"},
    {"jobs": 5, "servers": 3, "worker_types": 2, "ps_types": 2, "workers_per_server": [1, 2]},
)
"""Of contention, of both utilities, and one with two types each."""
ASSUMPTIONS: Draft = {
    "servers": 40, "workers_per_server": (1, 2), "horizon": 1000, "utility_origin": "absolute",
}  # fmt: skip
GENERATOR = FamilyGenerator(
    presets=PRESETS,
    generate=generate,
    assumptions=ASSUMPTIONS,
    from_trace=from_trace,
    trace_settings=TraceSettings,
    suites=suites_of(
        generate, small=[("small", 10 + index, level) for index, level in enumerate(LEVELS)]
    ),
)

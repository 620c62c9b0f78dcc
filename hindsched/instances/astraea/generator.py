"""Random instances of astraea with the ranges of the paper's Section 5.1.

With the printed ranges a job trains for about 2000 worker-hours and linear revenue turns negative
before it ends: the total revenue of the paper's own algorithm is negative. The preset ``paper``
therefore multiplies the time of a mini-batch by ``minibatch_scale`` = 0.1 (which reproduces the
revenues of the paper's magnitude); ``minibatch_scale=1`` gives the ranges as printed.

The paper takes the servers and the tenants' shares from the Philly trace. Here each server belongs
to one tenant, tenants own servers in one stretch, in proportion to drawn weights; `astraea_trace`
takes the trace's own virtual clusters.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.trace import from_trace
from hindsched.instances.base import (
    LARGEST_NUMBER,
    BrokenRule,
    Count,
    Instance,
    Positive,
    PositiveCount,
)
from hindsched.instances.generators.ranges import (
    Amounts,
    Positives,
    Range,
    Wholes,
    listed,
    within,
)
from hindsched.instances.generators.sampling import Draws, arrival_slots, rounded
from hindsched.instances.generators.settings import Settings
from hindsched.json_types import Draft

SLOT_SECONDS = 3600

_PAPER: Draft = {
    "jobs": 100,
    "servers": 100,
    "tenants": 14,
    "horizon": 1500,
    "arrival_span": 48,
    "workers_per_server": (2, 8),
    "ps_per_server": 1,
    "worker_mbps": (100, 5120),
    "ps_mbps": (5000, 20_000),
    "epochs": (50, 100),
    "chunks": (20, 50),
    "minibatches": (10, 50),
    "minibatch_slots": (0.001, 0.05),
    "minibatch_scale": 0.1,
    "update_ms": (10.0, 100.0),
    "gradient_mb": (30.0, 575.0),
    "utility": "linear",
    "utility_origin": "arrival",
    "slope": (-2.0, -0.1),
    "intercept": (100.0, 1000.0),
    "power_scale": (100.0, 1000.0),
    "exponent": (1.0, 2.0),
    "requested": (1, 8),
    "worker_types": 1,
    "ps_types": 1,
}
_SMALL: Draft = {
    **_PAPER,
    "jobs": 5,
    "servers": 4,
    "tenants": 2,
    "horizon": 12,
    "arrival_span": 3,
    "workers_per_server": (1, 2, 3),
    "worker_mbps": (1000, 1000),
    "ps_mbps": (2000, 2000),
    "epochs": (1, 1),
    "chunks": (2, 5),
    "minibatches": (2, 4),
    "minibatch_slots": (0.3, 0.7),
    "minibatch_scale": 1.0,
    "update_ms": (0.0, 0.0),
    "gradient_mb": (20_000.0, 50_000.0),
    "slope": (-4.0, -0.5),
    "intercept": (60.0, 150.0),
    "power_scale": (60.0, 150.0),
    "requested": (1, 4),
}
PRESETS: dict[str, Draft] = {"small": _SMALL, "paper": _PAPER}


class AstraeaSettings(Settings):
    """The settings that `generate` explains, and what each may be."""

    jobs: PositiveCount
    servers: PositiveCount
    tenants: PositiveCount
    horizon: PositiveCount
    arrival_span: PositiveCount
    workers_per_server: Annotated[tuple[Count, ...], BeforeValidator(listed)]
    ps_per_server: Count
    worker_mbps: Wholes
    ps_mbps: Wholes
    epochs: Wholes
    chunks: Wholes
    minibatches: Wholes
    minibatch_slots: Positives
    minibatch_scale: Positive
    update_ms: Amounts
    gradient_mb: Amounts
    utility: Literal["linear", "power", "mixed"]
    utility_origin: str
    slope: Annotated[Range, within(-LARGEST_NUMBER, 0)]
    intercept: Range
    power_scale: Positives
    exponent: Amounts
    requested: Wholes
    worker_types: PositiveCount
    ps_types: PositiveCount

    @model_validator(mode="after")
    def _check_arrivals(self) -> Self:
        if self.arrival_span > self.horizon:
            rule = f"must not exceed horizon = {self.horizon}"
            raise BrokenRule("arrival_span", self.arrival_span, rule)
        return self


def generate(preset: str, seed: int, **settings: object) -> Instance:
    """Generate a random instance.

    Parameters
    ----------
    preset : str
        ``small`` or ``paper``.
    seed : int
        Seed of the draws.
    **settings
        In place of the preset's: ``jobs, servers, tenants, horizon, arrival_span`` (arrivals are
        0..arrival_span-1), ``workers_per_server`` (choices), ``ps_per_server``, the ranges ``[low,
        high]`` of ``worker_mbps, ps_mbps`` (one number an instance), ``epochs, chunks, minibatches,
        minibatch_slots, update_ms, gradient_mb, slope, intercept, power_scale, exponent,
        requested``, ``minibatch_scale`` (factor on minibatch_slots), ``utility`` (``linear``,
        ``power`` or ``mixed``), ``utility_origin``, and ``worker_types, ps_types``: with several, a
        server has workers and PSs of each type, a job's times differ by type.
    """
    s = AstraeaSettings.of("astraea", PRESETS, preset, settings)
    workers, ps = _names("w", s.worker_types), _names("p", s.ps_types)
    servers = _servers(s, seed, workers, ps)
    draws = Draws(seed, "bandwidth")
    return AstraeaInstance.parse(
        {
            "name": f"astraea-{preset}-{s.utility}-j{s.jobs}-s{seed}",
            "horizon": s.horizon,
            "slot_seconds": SLOT_SECONDS,
            "utility_origin": s.utility_origin,
            "tenants": _tenants(s, seed, servers, workers, ps),
            "servers": servers,
            "worker_bandwidth_mbps": typed(
                [draws.integer(*s.worker_mbps) for _ in workers], workers
            ),
            "ps_bandwidth_mbps": typed([draws.integer(*s.ps_mbps) for _ in ps], ps),
            "jobs": _jobs(s, seed, workers, ps),
            "provenance": {"generator": "astraea", "preset": preset, "seed": seed, **settings},
        }
    )


def _names(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{k + 1}" for k in range(count))


def typed(values: Sequence[object], types: tuple[str, ...]) -> Any:
    """A bare number for one type, else numbers keyed by type."""
    return values[0] if len(types) == 1 else dict(zip(types, values, strict=True))


def _servers(
    s: AstraeaSettings, seed: int, workers: tuple[str, ...], ps: tuple[str, ...]
) -> list[Draft]:
    draws = Draws(seed, "servers")
    return [
        {
            "name": f"s{h + 1}",
            "workers": typed([draws.choice(s.workers_per_server) for _ in workers], workers),
            "ps": typed([s.ps_per_server for _ in ps], ps),
        }
        for h in range(s.servers)
    ]


def _tenants(
    s: AstraeaSettings,
    seed: int,
    servers: list[Draft],
    workers: tuple[str, ...],
    ps: tuple[str, ...],
) -> list[Draft]:
    """Tenants own servers in one stretch each, at least one while there are enough."""
    draws = Draws(seed, "tenants")
    weights = [draws.uniform(0.5, 2.0) for _ in range(s.tenants)]
    bounds = [0, *itertools.accumulate(weights)]
    spare = max(0, len(servers) - s.tenants)
    cuts = [
        min(len(servers), index + int(spare * bound / bounds[-1] + 0.5))
        for index, bound in enumerate(bounds)
    ]
    cuts[-1] = len(servers)
    tenants = []
    for u in range(s.tenants):
        own = servers[cuts[u] : cuts[u + 1]]
        tenants.append(
            {
                "name": f"u{u + 1}",
                "worker_quota": _total(own, "workers", workers),
                "ps_quota": _total(own, "ps", ps),
            }
        )
    return tenants


def _total(servers: list[Draft], field: str, types: tuple[str, ...]) -> Any:
    if len(types) == 1:
        return sum(server[field] for server in servers)
    return {name: sum(server[field][name] for server in servers) for name in types}


def _jobs(
    s: AstraeaSettings, seed: int, workers: tuple[str, ...], ps: tuple[str, ...]
) -> list[Draft]:
    arrivals = arrival_slots(Draws(seed, "arrivals"), s.jobs, s.arrival_span)
    jobs = []
    for number, slot in enumerate(arrivals, start=1):
        draws = Draws(seed, "job", str(number))
        tenant = draws.integer(1, s.tenants)
        whole = {
            "epochs": draws.integer(*s.epochs),
            "chunks": draws.integer(*s.chunks),
            "minibatches": draws.integer(*s.minibatches),
        }
        times = [rounded(draws.uniform(*s.minibatch_slots) * s.minibatch_scale)]
        updates = [rounded(draws.uniform(*s.update_ms) / 1000 / SLOT_SECONDS)]
        gradient = draws.uniform(*s.gradient_mb)
        utility = draw_utility(s, draws)
        requested = draws.integer(*s.requested)
        times += [rounded(times[0] * draws.uniform(0.5, 2.0)) for _ in workers[1:]]
        updates += [rounded(updates[0] * draws.uniform(0.5, 2.0)) for _ in ps[1:]]
        jobs.append(
            {
                "name": f"j{number}",
                "tenant": f"u{tenant}",
                "arrival": slot - 1,
                **whole,
                "minibatch_slots": typed(times, workers),
                "update_slots": typed(updates, ps),
                "gradient_mb": gradient,
                "utility": utility,
                "requested_workers": requested,
            }
        )
    return jobs


def draw_utility(s: AstraeaSettings, draws: Draws) -> Draft:
    """A linear or power utility of Section 5.1's ranges."""
    kind = s.utility
    slope, intercept = draws.uniform(*s.slope), draws.uniform(*s.intercept)
    scale, exponent = draws.uniform(*s.power_scale), draws.uniform(*s.exponent)
    if kind == "mixed":
        kind = "linear" if draws.chance(0.5) else "power"
    if kind == "linear":
        return {"kind": "linear", "slope": slope, "intercept": intercept}
    return {"kind": "power", "scale": scale, "exponent": exponent}


def _small_suite() -> list[Instance]:
    """Make instances of rising contention, of both utilities, and one with two types each."""
    levels: tuple[Draft, ...] = (
        {"jobs": 4, "servers": 4},
        {"jobs": 6, "servers": 5},
        {"jobs": 8, "servers": 5, "horizon": 20, "arrival_span": 4},
        {"jobs": 6, "servers": 4, "utility": "power"},
        {"jobs": 6, "servers": 4, "utility": "mixed", "utility_origin": "absolute"},
        {"jobs": 5, "servers": 3, "worker_types": 2, "ps_types": 2, "workers_per_server": [1, 2]},
    )
    return [generate("small", 10 + index, **level) for index, level in enumerate(levels)]


SUITES = {"small": _small_suite}
__all__ = ["PRESETS", "SUITES", "from_trace", "generate"]

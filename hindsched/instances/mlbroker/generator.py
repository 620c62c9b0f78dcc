"""Random mlbroker instances with the settings of Section 6.1 and of the real experiment, 6.4.

Settings that the paper states are the preset ``paper``; those it leaves open (number of jobs, their
lives, how data splits over the centres, the symmetry of transfer prices, what ``USD per GB`` of
deployment is per GB of) are settings too, with the defaults below.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from pydantic import StrictBool

from hindsched.errors import InputError
from hindsched.instances.base import Count, Instance, NonNegative, Number, PositiveCount
from hindsched.instances.generators.ranges import Share, Span, check_positive, within
from hindsched.instances.generators.registry import Suite
from hindsched.instances.generators.sampling import Draws, arrival_slots, rounded
from hindsched.instances.generators.settings import (
    Settings,
    draw_integer,
    envelope,
)
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.traces.origin import keep_origin
from hindsched.json_types import Draft

if TYPE_CHECKING:
    from hindsched.instances.traces.table import TraceTable

RESOURCES = ("gpu", "cpu", "memory_gb", "storage_gb")

PAPER: Draft = {
    # stated in Section 6.1
    "datacenters": 15,
    "horizon": 50,
    "slot_days": 0.5,
    "gpus": (0, 4),
    "cpus": (1, 10),
    "memory_gb": (2, 32),
    "storage_gb": (5, 10),
    "ps_cpus": (1, 10),
    "ps_memory_gb": (2, 32),
    "ps_storage_gb": (5, 10),
    "capacity_gb": (16, 66),
    "data_gb": 500,
    "exchange_gb": (4.32, 82.8),
    "transfer_usd": (0.01, 0.02),
    "deployment_usd": (0.05, 0.1),
    "gpu_range": (1.2, 9.6),
    "cpu_range": (0.13, 0.24),
    "memory_range": (0.01, 0.1),
    "storage_range": (0.01, 0.1),
    "discount": (0.7, 0.8),
    "gpu_threshold": (500, 600),
    "cpu_threshold": (800, 1000),
    "memory_threshold": (1000, 1050),
    "storage_threshold": (1000, 1050),
    # not stated
    "jobs": 145,
    "burst": 0.5,
    "life_slots": (5, 15),
    "data_variation": 0.2,
    "persistent_share": 0.7,
    "symmetric_transfer": True,
    "deployment_gb": 1,
    "pinned_probability": 0.0,
}
"""Preset ``paper``. Two numbers are a range drawn uniformly; prices are USD per unit and day."""

SMALL: Draft = {
    "datacenters": 3,
    "horizon": 4,
    "jobs": 5,
    "life_slots": (1, 4),
    "data_gb": 120,
    "gpus": (1, 4),
    "gpu_threshold": (20, 30),
    "cpu_threshold": (40, 60),
    "memory_threshold": (100, 160),
    "storage_threshold": (60, 90),
}
"""Preset ``small``: thresholds within reach of a few jobs, small enough for an exact optimum."""

SECTION_64: Draft = {
    "datacenters": 3,
    "horizon": 10,
    "jobs": 24,
    "burst": 0.5,
    "life_slots": (3, 8),
    "instance_usd_per_hour": 3.06,
    "transfer_usd": 0.02,
    "discount": 0.75,
    "instance_threshold": 14,
    "slot_hours": 1.0,
    "dataset_gb": 138.0,
    "dataset_share": (0.05, 0.2),
    "deployment_usd": (0.05, 0.1),
    "deployment_gb": 1,
}
"""Preset ``section-6.4``: p3.2xlarge instances in three clusters and Table 3's models.

The paper set discount and thresholds itself and does not state them, nor the slot, the number of
jobs or the data."""

MODELS: dict[str, tuple[float, int, float]] = {
    # parameters in millions, batch size (Table 3); images trained per second on one V100 (ours)
    "alexnet": (61.1, 128, 2000.0),
    "vgg-16": (138.0, 64, 220.0),
    "vgg-19": (143.0, 64, 190.0),
    "inception-v3": (27.0, 128, 220.0),
    "resnet-152": (60.2, 128, 140.0),
}
IMAGE_GB = 138.0 / 1_281_167
EPOCHS_PER_SLOT = 10
"""Epochs that a slot's data is trained for in ``section-6.4`` (ours)."""
SYNCHRONISATIONS_PER_SLOT = 30
"""Exchanges of the whole model between a worker and the PS in a slot of ``section-6.4`` (ours)."""

PRESETS: dict[str, Draft] = {
    "paper": PAPER,
    "small": {**PAPER, **SMALL},
    "section-6.4": SECTION_64,
}


class MlbrokerSettings(Settings):
    """The settings that all presets have, and what each may be."""

    datacenters: PositiveCount
    horizon: PositiveCount
    jobs: Count
    burst: Share
    life_slots: Annotated[Span, within(1, 1e6)]
    transfer_usd: Span
    deployment_usd: Span
    deployment_gb: NonNegative


class PaperSettings(MlbrokerSettings):
    """The settings of `PAPER`, and what each may be."""

    slot_days: Annotated[Number, within(1e-4, 365)]
    gpus: Span
    cpus: Span
    memory_gb: Span
    storage_gb: Span
    ps_cpus: Span
    ps_memory_gb: Span
    ps_storage_gb: Span
    capacity_gb: Annotated[Span, within(1e-6, 1e9)]
    data_gb: Span
    exchange_gb: Span
    gpu_range: Span
    cpu_range: Span
    memory_range: Span
    storage_range: Span
    discount: Annotated[Span, within(0, 1)]
    gpu_threshold: Span
    cpu_threshold: Span
    memory_threshold: Span
    storage_threshold: Span
    data_variation: Share
    persistent_share: Share
    symmetric_transfer: StrictBool
    pinned_probability: Share

    @property
    def slot_hours(self) -> float:
        """Length of a slot."""
        return 24.0 * self.slot_days


class RealSettings(MlbrokerSettings):
    """The settings of `SECTION_64`, and what each may be."""

    instance_usd_per_hour: NonNegative
    discount: Share
    instance_threshold: NonNegative
    slot_hours: Annotated[Number, within(1e-3, 8760)]
    dataset_gb: NonNegative
    dataset_share: Span
    symmetric_transfer: bool = True


def generate(preset: str = "small", seed: int = 0, **settings: object) -> Instance:
    """Generate a random instance.

    Parameters
    ----------
    preset : str
        ``paper``, ``small`` or ``section-6.4``.
    seed : int
        Seed of all draws.
    **settings
        Settings in place of the preset's, see `PAPER` and `SECTION_64`. A range is two numbers
        drawn between uniformly, a single number is fixed. ``data_gb`` is a job's data per slot
        summed over the centres; it varies by ``data_variation`` from slot to slot and is split
        ``persistent_share`` by weights drawn once a job and otherwise by fresh ones, both flat on
        the simplex. ``deployment_usd`` is per GB of ``deployment_gb``. ``pinned_probability`` is
        the chance that a job's data may not leave a centre.

    Raises
    ------
    InputError
        For an unknown preset or setting, or a value that breaks a rule.
    """
    values = _settings(preset, settings)
    day = max(2, round(24 / values.slot_hours)) if isinstance(values, PaperSettings) else 24
    arrivals = arrival_slots(
        Draws(seed, "arrivals"),
        values.jobs,
        values.horizon,
        period=day,
        burst=values.burst,
    )
    return _build(preset, seed, values, arrivals, {})


def from_trace(
    table: TraceTable,
    *,
    jobs: int = 145,
    seed: int = 0,
    start: float = 0.0,
    every: int = 1,
    stretch: bool = True,
    slot_seconds: float | None = None,
    preset: str = "paper",
    **settings: object,
) -> Instance:
    """Make an instance whose jobs arrive as in a cluster trace; all else is drawn as in `generate`.

    Parameters
    ----------
    table : TraceTable
        Rows of a trace, from ``hindsched.instances.traces``.
    jobs : int
        How many rows to use.
    seed : int
        Seed of the other draws.
    start : float
        Seconds after the trace's first row at which to begin.
    every : int
        Keep every so many rows, which thins the stream of arrivals.
    stretch : bool
        Whether the submissions are stretched over the slots 1..horizon, as a stream of short
        cluster jobs needs to become one of geo-distributed jobs that live for days. Otherwise they
        fall into slots of the preset's length, the last ones into the last slot.
    slot_seconds : float, optional
        Length of a slot; submissions are then not stretched.
    preset : str
        Preset of the other settings, ``paper`` or ``small``.
    **settings
        Settings in place of the preset's.
    """
    if slot_seconds is not None:
        check_positive("slot_seconds", slot_seconds)
        stretch = False
        unit, seconds = ("slot_hours", 3600) if preset == "section-6.4" else ("slot_days", 86400)
        settings = {**settings, unit: slot_seconds / seconds}
    values = _settings(preset, {**settings, "jobs": jobs})
    if type(every) is not int or every < 1:
        raise InputError("set.every", every, "must be an integer of at least 1")
    if jobs < 1:
        raise InputError("jobs", jobs, "must be at least 1")
    rows = table.window(start, (jobs - 1) * every + 1).rows.iloc[::every]
    waited = [
        float(when) - float(rows["submit_seconds"].iloc[0]) for when in rows["submit_seconds"]
    ]
    horizon = values.horizon
    width = 3600.0 * values.slot_hours
    if stretch:
        width = max(waited[-1] / horizon, 1e-9)
    slots = [1 + min(horizon - 1, int(when / width)) for when in waited]
    origin = {**table.provenance(), "start": start, "every": every, "stretch": stretch}
    when = "stretched over the horizon" if stretch else f"{width:g} s a slot"
    return keep_origin(
        _build(preset, seed, values, slots, origin),
        rows,
        took=(f"submission: arrival, {when}",),
        made_up=(
            "life, demands, data, capacities and deployment of each job, drawn as in Section 6.1",
            f"{values.datacenters} data centres with prices, discounts and transfer fees, drawn",
            "nothing of the trace's durations and GPUs is used",
        ),
    )


def _settings(preset: str, settings: Draft) -> PaperSettings | RealSettings:
    kind = RealSettings if preset == "section-6.4" else PaperSettings
    return kind.of("mlbroker", PRESETS, preset, settings)


def _simplex(draws: Draws, size: int) -> list[float]:
    cuts = [0.0, *sorted(draws.unit() for _ in range(size - 1)), 1.0]
    return [right - left for left, right in pairwise(cuts)]


def _build(
    preset: str,
    seed: int,
    values: PaperSettings | RealSettings,
    arrivals: list[int],
    origin: Draft,
) -> Instance:
    names = [f"r{index + 1}" for index in range(values.datacenters)]
    if isinstance(values, RealSettings):
        resources, datacenters = ["instance"], _clusters(values, names)
        jobs = [_real_job(seed, values, j, slot, names) for j, slot in enumerate(arrivals)]
    else:
        resources, datacenters = list(RESOURCES), _datacenters(seed, values, names)
        jobs = [_job(seed, values, j, slot, names) for j, slot in enumerate(arrivals)]
    size = f"r{len(names)}-t{values.horizon}-j{len(jobs)}"
    seconds = rounded(3600.0 * values.slot_hours)
    shared = envelope("mlbroker", preset, seed, values.horizon, values, size, seconds, origin)
    return MlbrokerInstance.parse(
        {
            **shared,
            "resources": resources,
            "datacenters": datacenters,
            "transfer_usd_per_gb": _transfer(seed, values, len(names)),
            "jobs": jobs,
        }
    )


def _transfer(seed: int, values: PaperSettings | RealSettings, size: int) -> list[list[float]]:
    draws = Draws(seed, "transfer")
    prices = [[0.0] * size for _ in range(size)]
    for row in range(size):
        for column in range(size):
            if row == column:
                continue
            if column < row and values.symmetric_transfer:
                prices[row][column] = prices[column][row]
            else:
                prices[row][column] = draws.uniform(*values.transfer_usd)
    return prices


def _datacenters(seed: int, values: PaperSettings, names: list[str]) -> list[Draft]:
    ranges = (values.gpu_range, values.cpu_range, values.memory_range, values.storage_range)
    limits = (
        values.gpu_threshold, values.cpu_threshold,
        values.memory_threshold, values.storage_threshold,
    )  # fmt: skip
    centers = []
    for name in names:
        draws = Draws(seed, f"datacenter {name}")
        prices = {}
        for resource, price, limit in zip(RESOURCES, ranges, limits, strict=True):
            unit = rounded(draws.uniform(*price) * values.slot_days)
            share = draws.uniform(*values.discount)
            prices[resource] = {
                "unit_usd": unit,
                "discounted_usd": rounded(unit * share),
                "threshold": draws.uniform(*limit),
            }
        centers.append({"name": name, "prices": prices})
    return centers


def _clusters(values: RealSettings, names: list[str]) -> list[Draft]:
    unit = rounded(values.instance_usd_per_hour * values.slot_hours)
    price = {
        "unit_usd": unit,
        "discounted_usd": rounded(unit * values.discount),
        "threshold": values.instance_threshold,
    }
    return [{"name": name, "prices": {"instance": price}} for name in names]


def _split(draws: Draws, total: float, own: list[float], share: float) -> list[float]:
    fresh = _simplex(draws, len(own))
    return [
        rounded(total * (share * typical + (1 - share) * new))
        for typical, new in zip(own, fresh, strict=True)
    ]


def _job(seed: int, values: PaperSettings, index: int, arrival: int, names: list[str]) -> Draft:
    name = f"j{index + 1}"
    draws = Draws(seed, f"job {name}")
    life = max(1, draw_integer(draws, values.life_slots))
    departure = min(values.horizon, arrival + life - 1)
    worker = {
        "gpu": draw_integer(draws, values.gpus),
        "cpu": draw_integer(draws, values.cpus),
        "memory_gb": draw_integer(draws, values.memory_gb),
        "storage_gb": draw_integer(draws, values.storage_gb),
    }
    server = {
        "cpu": draw_integer(draws, values.ps_cpus),
        "memory_gb": draw_integer(draws, values.ps_memory_gb),
        "storage_gb": draw_integer(draws, values.ps_storage_gb),
    }
    job: Draft = {
        "name": name,
        "arrival": arrival,
        "departure": departure,
        "worker": worker,
        "ps": server,
        "capacity_gb": draws.uniform(*values.capacity_gb),
        "exchange_gb": draws.uniform(*values.exchange_gb),
        "deployment_usd": rounded(draws.uniform(*values.deployment_usd) * values.deployment_gb),
    }
    own = _simplex(draws, len(names))
    typical = draws.uniform(*values.data_gb)
    spread = values.data_variation
    job["data_gb"] = [
        _split(
            draws,
            typical * draws.uniform(1 - spread, 1 + spread),
            own,
            values.persistent_share,
        )
        for _ in range(arrival, departure + 1)
    ]
    if values.pinned_probability > 0:
        pins = Draws(seed, f"pinned {name}")
        job["pinned_datacenters"] = [
            center for center in names if pins.chance(values.pinned_probability)
        ]
    return job


def _real_job(seed: int, values: RealSettings, index: int, arrival: int, names: list[str]) -> Draft:
    name = f"j{index + 1}"
    draws = Draws(seed, f"job {name}")
    model = list(MODELS)[draw_integer(draws, (0, len(MODELS) - 1))]
    million_parameters, _, images_per_second = MODELS[model]
    life = max(1, draw_integer(draws, values.life_slots))
    departure = min(values.horizon, arrival + life - 1)
    images = images_per_second * 3600 * values.slot_hours / EPOCHS_PER_SLOT
    return {
        "name": f"{name}-{model}",
        "arrival": arrival,
        "departure": departure,
        "worker": {"instance": 1},
        "ps": {"instance": 1},
        "capacity_gb": rounded(images * IMAGE_GB),
        "exchange_gb": rounded(2 * million_parameters * 4e-3 * SYNCHRONISATIONS_PER_SLOT),
        "deployment_usd": rounded(draws.uniform(*values.deployment_usd) * values.deployment_gb),
        "data_gb": [
            _split(
                draws,
                values.dataset_gb * draws.uniform(*values.dataset_share),
                [1 / len(names)] * len(names),
                0.0,
            )
            for _ in range(arrival, departure + 1)
        ],
    }


SMALL_LEVELS: tuple[tuple[tuple[int, int], Draft], ...] = (
    # Prices differ so much that the cheapest centre decides: nearly everybody is optimal.
    ((0, 3), {}),
    # Equal prices and deep discounts within reach: pooling decides.
    ((1, 2), {"gpu_range": (5, 5.5), "discount": (0.4, 0.5), "gpu_threshold": (25, 40)}),
    # Equal prices, dear transfers and little talk: the place of the data decides.
    ((0, 1), {"gpu_range": (5, 5.5), "transfer_usd": (0.05, 0.1), "exchange_gb": (0, 5),
              "jobs": 4, "horizon": 3}),
    # The same with data that moves every slot and dear launches: following it or not decides.
    ((0, 1), {"gpu_range": (5, 5.5), "transfer_usd": (0.2, 0.4), "exchange_gb": (0, 5),
              "deployment_gb": 100, "persistent_share": 0.2, "jobs": 4}),
)  # fmt: skip
"""Seeds and settings of the suite ``small``: what decides the cost differs from level to level."""


def _small_suite() -> list[Instance]:
    return [generate("small", seed, **level) for seeds, level in SMALL_LEVELS for seed in seeds]


def _medium_suite() -> list[Instance]:
    return [
        generate("paper", seed, datacenters=6, horizon=10, jobs=20, life_slots=(3, 8))
        for seed in range(2)
    ]


def _paper_suite() -> list[Instance]:
    return [generate("paper", 0)]


SUITES: dict[str, Suite] = {
    "small": _small_suite,
    "medium": _medium_suite,
    "paper": _paper_suite,
}

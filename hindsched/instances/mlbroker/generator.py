"""Random mlbroker instances with the settings of Section 6.1 and of the real experiment, 6.4.

Settings that the paper states are the preset ``paper``; those it leaves open (number of jobs, their
lives, how data splits over the centres, what ``USD per GB`` of
deployment is per GB of) are settings too. Two numbers are a range drawn uniformly, one is fixed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from hindsched.instances.base import Count, Instance, NonNegative, Number, PositiveCount
from hindsched.instances.generators import ranges
from hindsched.instances.generators.ranges import Draws, Share, Span, arrival_slots, rounded, within
from hindsched.instances.generators.registry import FamilyGenerator, suites_of
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.json_types import Draft

RESOURCES = ("gpu", "cpu", "memory_gb", "storage_gb")
MODELS: dict[str, tuple[float, float]] = {
    # parameters in millions (Table 3); images trained per second on one V100 (ours)
    "alexnet": (61.1, 2000.0),
    "vgg-16": (138.0, 220.0),
    "vgg-19": (143.0, 190.0),
    "inception-v3": (27.0, 220.0),
    "resnet-152": (60.2, 140.0),
}
IMAGE_GB = 138.0 / 1_281_167
EPOCHS_PER_SLOT = 10  # epochs that a slot's data is trained for in ``section-6.4`` (ours)
SYNCHRONISATIONS_PER_SLOT = 30
"""Exchanges of the whole model between a worker and the PS in a slot of ``section-6.4`` (ours)."""


class MlbrokerSettings(ranges.Settings):
    """Settings that all presets have."""

    datacenters: PositiveCount = 15
    horizon: PositiveCount = 50
    jobs: Count = 145
    burst: Share = 0.5  # deviation of the logarithm of the slots' rates
    life_slots: Annotated[Span, within(1, 1e6)] = (5, 15)
    transfer_usd: Span = (0.01, 0.02)  # a GB
    deployment_usd: Span = (0.05, 0.1)  # a GB of a launch
    deployment_gb: NonNegative = 1


class PaperSettings(MlbrokerSettings):
    """Settings of Section 6.1; prices are USD per unit and day.

    `data_gb` is a job's in a slot, summed over the centres.
    """

    slot_days: Annotated[Number, within(1e-4, 365)] = 0.5
    gpus: Span = (0, 4)
    cpus: Span = (1, 10)
    memory_gb: Span = (2, 32)
    storage_gb: Span = (5, 10)
    ps_cpus: Span = (1, 10)
    ps_memory_gb: Span = (2, 32)
    ps_storage_gb: Span = (5, 10)
    capacity_gb: Annotated[Span, within(1e-6, 1e9)] = (16, 66)  # trained by a worker in a slot
    data_gb: Span = 500  # type: ignore[assignment]
    exchange_gb: Span = (4.32, 82.8)  # of a worker with the PS in a slot
    gpu_range: Span = (1.2, 9.6)
    cpu_range: Span = (0.13, 0.24)
    memory_range: Span = (0.01, 0.1)
    storage_range: Span = (0.01, 0.1)
    discount: Annotated[Span, within(0, 1)] = (0.7, 0.8)  # share of the price beyond the threshold
    gpu_threshold: Span = (500, 600)
    cpu_threshold: Span = (800, 1000)
    memory_threshold: Span = (1000, 1050)
    storage_threshold: Span = (1000, 1050)
    data_variation: Share = 0.2  # from slot to slot
    persistent_share: Share = 0.7  # weights of the centres drawn once a job; the rest anew

    @property
    def slot_hours(self) -> float:
        """Length of a slot."""
        return 24.0 * self.slot_days


class RealSettings(MlbrokerSettings):
    """Settings of Section 6.4: p3.2xlarge instances in three clusters and Table 3's models.

    The paper set discount and thresholds itself and does not state them, nor the slot, the number
    of jobs or the data: `dataset_share` of `dataset_gb` awaits a job in each slot.
    """

    datacenters: PositiveCount = 3
    horizon: PositiveCount = 10
    jobs: Count = 24
    life_slots: Annotated[Span, within(1, 1e6)] = (3, 8)
    instance_usd_per_hour: NonNegative = 3.06
    transfer_usd: Span = 0.02  # type: ignore[assignment]
    discount: Share = 0.75
    instance_threshold: NonNegative = 14
    slot_hours: Annotated[Number, within(1e-3, 8760)] = 1.0
    dataset_gb: NonNegative = 138.0
    dataset_share: Span = (0.05, 0.2)


REAL = "section-6.4"
PRESETS: dict[str, Draft] = {
    "paper": PaperSettings.values(),
    # Thresholds within reach of a few jobs, small enough for an exact optimum.
    "small": PaperSettings.values(
        datacenters=3, horizon=4, jobs=5, life_slots=(1, 4), data_gb=120, gpus=(1, 4),
        gpu_threshold=(20, 30), cpu_threshold=(40, 60), memory_threshold=(100, 160),
        storage_threshold=(60, 90),
    ),
    REAL: RealSettings.values(),
}  # fmt: skip


def generate(preset: str = "small", seed: int = 0, **settings: object) -> Instance:
    """Generate a random instance from a preset, a seed and settings.

    They are those of `PaperSettings`, for ``section-6.4`` of `RealSettings`.
    """
    s = _preset_settings(preset, settings)
    day = max(2, round(24 / s.slot_hours)) if isinstance(s, PaperSettings) else 24
    draws = Draws(seed, "arrivals")
    arrivals = arrival_slots(draws, s.jobs, s.horizon, period=day, burst=s.burst)
    data = _broker_data(preset, seed, s, arrivals)
    origin = {"generator": "mlbroker", "preset": preset, "seed": seed, "settings": s.changed()}
    return MlbrokerInstance.parse({**data, "provenance": origin})


def _preset_settings(preset: str, settings: Draft) -> PaperSettings | RealSettings:
    kind = RealSettings if preset == REAL else PaperSettings
    return kind.of(PRESETS[preset], settings)


def _broker_data(
    preset: str, seed: int, s: PaperSettings | RealSettings, arrivals: list[int]
) -> Draft:
    """The file of an instance whose jobs arrive in these slots, without its provenance."""
    names = [f"r{index + 1}" for index in range(s.datacenters)]
    transfer, draws = [[0.0] * len(names) for _ in names], Draws(seed, "transfer")
    for row in range(len(names)):
        for column in range(row + 1, len(names)):
            transfer[row][column] = transfer[column][row] = draws.uniform(*s.transfer_usd)
    return {
        "name": f"mlbroker-{preset}-r{len(names)}-t{s.horizon}-j{len(arrivals)}-s{seed}",
        "horizon": s.horizon,
        "slot_seconds": rounded(3600.0 * s.slot_hours),
        "resources": ["instance"] if isinstance(s, RealSettings) else list(RESOURCES),
        "datacenters": [{"name": name, "prices": _draw_prices(seed, s, name)} for name in names],
        "transfer_usd_per_gb": transfer,
        "jobs": [
            _broker_job(Draws(seed, f"job j{j}"), s, f"j{j}", slot)
            for j, slot in enumerate(arrivals, 1)
        ],
    }


def _draw_prices(seed: int, s: PaperSettings | RealSettings, name: str) -> Draft:
    """The prices of a data centre by resource."""
    if isinstance(s, RealSettings):
        unit = rounded(s.instance_usd_per_hour * s.slot_hours)
        return {"instance": _tier(unit, s.discount, s.instance_threshold)}
    draws = Draws(seed, f"datacenter {name}")
    prices = {}
    for resource in RESOURCES:
        word = resource.removesuffix("_gb")
        unit = rounded(draws.uniform(*getattr(s, f"{word}_range")) * s.slot_days)
        share = draws.uniform(*s.discount)
        prices[resource] = _tier(unit, share, draws.uniform(*getattr(s, f"{word}_threshold")))
    return prices


def _tier(unit: float, share: float, threshold: float) -> Draft:
    return {"unit_usd": unit, "discounted_usd": rounded(unit * share), "threshold": threshold}


def _simplex(draws: Draws, size: int) -> list[float]:
    cuts = [0.0, *sorted(draws.unit() for _ in range(size - 1)), 1.0]
    return [right - left for left, right in pairwise(cuts)]


def _split_data(draws: Draws, total: float, weights: list[float], share: float) -> list[float]:
    fresh = _simplex(draws, len(weights))
    pairs = zip(weights, fresh, strict=True)
    return [rounded(total * (share * typical + (1 - share) * new)) for typical, new in pairs]


def _broker_job(draws: Draws, s: PaperSettings | RealSettings, name: str, arrival: int) -> Draft:
    """A job of Section 6.1, or one of Section 6.4 that trains a model of Table 3."""
    job: Draft = {"name": name, "arrival": arrival}
    if isinstance(s, RealSettings):
        model = draws.choice(list(MODELS))
        million_parameters, images_per_second = MODELS[model]
        images = images_per_second * 3600 * s.slot_hours / EPOCHS_PER_SLOT
        job |= {
            "name": f"{name}-{model}",
            "worker": {"instance": 1},
            "ps": {"instance": 1},
            "capacity_gb": rounded(images * IMAGE_GB),
            "exchange_gb": rounded(2 * million_parameters * 4e-3 * SYNCHRONISATIONS_PER_SLOT),
        }
    job["departure"] = min(s.horizon, arrival + max(1, draws.integer(*s.life_slots)) - 1)
    if isinstance(s, PaperSettings):
        worker = zip(RESOURCES, (s.gpus, s.cpus, s.memory_gb, s.storage_gb), strict=True)
        ps = zip(RESOURCES[1:], (s.ps_cpus, s.ps_memory_gb, s.ps_storage_gb), strict=True)
        job["worker"] = {key: draws.integer(*span) for key, span in worker}
        job["ps"] = {key: draws.integer(*span) for key, span in ps}
        job["capacity_gb"] = draws.uniform(*s.capacity_gb)
        job["exchange_gb"] = draws.uniform(*s.exchange_gb)
    job["deployment_usd"] = rounded(draws.uniform(*s.deployment_usd) * s.deployment_gb)
    life = range(arrival, job["departure"] + 1)
    if isinstance(s, RealSettings):
        equal = [1 / s.datacenters] * s.datacenters
        job["data_gb"] = [
            _split_data(draws, s.dataset_gb * draws.uniform(*s.dataset_share), equal, 0.0)
            for _ in life
        ]
    else:
        weights, spread = _simplex(draws, s.datacenters), s.data_variation
        typical = draws.uniform(*s.data_gb)
        job["data_gb"] = [
            _split_data(
                draws, typical * draws.uniform(1 - spread, 1 + spread), weights, s.persistent_share
            )
            for _ in life
        ]
    return job


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


SIZES = {"datacenters": 6, "horizon": 10, "jobs": 20, "life_slots": (3, 8)}
GENERATOR = FamilyGenerator(
    presets=PRESETS,
    generate=generate,
    assumptions={"jobs": 12},  # K R = 12 in preset ``small``
    suites=suites_of(
        generate,
        small=[("small", seed, level) for seeds, level in SMALL_LEVELS for seed in seeds],
        medium=[("paper", seed, SIZES) for seed in range(2)],
        paper=[("paper", 0, {})],
    ),
)

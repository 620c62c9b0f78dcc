"""Random cars."""

from __future__ import annotations

from typing import Any

import numpy as np

from hindsched.instances.generators.registry import FamilyGenerator

from .instance import TollboothInstance

PRESETS: dict[str, dict[str, Any]] = {"small": {"jobs": 12, "horizon": 10, "booths": 2}}


def generate(preset: str, seed: int, **settings: Any) -> TollboothInstance:
    """Draw arrivals, lengths and tolls."""
    chosen = {**PRESETS[preset], **settings}
    rng = np.random.default_rng(seed)
    jobs: list[dict[str, Any]] = [
        {
            "name": f"car{number}",
            "arrival": int(rng.integers(1, chosen["horizon"] - 2)),
            "length": int(rng.integers(1, 4)),
            "toll": round(float(rng.uniform(1, 9)), 2),
        }
        for number in range(1, chosen["jobs"] + 1)
    ]
    jobs.sort(key=lambda job: job["arrival"])
    data = {"family": "tollbooth", "name": f"tollbooth-s{seed}", "horizon": chosen["horizon"]}
    data |= {"slot_seconds": 60, "booths": chosen["booths"], "jobs": jobs}
    return TollboothInstance.parse(data)


GENERATOR = FamilyGenerator(
    presets=PRESETS,
    generate=generate,
    suites={"small": lambda: [generate("small", seed) for seed in range(2)]},
)

"""Write the recipes of the benchmark library and the names of the generators' suites.

``python benchmarks/library_recipes.py``; run it when a generator's suite or a witness changes.

Three suites a family: ``library-small`` is meant to be proven within seconds, ``library-medium``
within minutes or nearly, ``library-large`` is the papers' scale. The settings below are the whole
choice; a change of them is a new version of the library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

from hindsched.instances.base import FAMILIES
from hindsched.instances.catalogue import make_members
from hindsched.instances.generators.registry import generate

VERSION = 1
TARGET = Path(__file__).parents[1] / "hindsched/instances/recipes.json"
MEMBERS = TARGET.with_name("members.json")
Row = tuple[str, str, str, int, dict[str, Any]]
"""Suite, member, preset, seed, settings."""


def oasis() -> Iterator[Row]:
    for servers in (3, 5, 8, 14):
        for seed in range(2, 7):
            yield "small", f"h{servers}-s{seed}", "small", seed, {"servers": servers}
    for servers in (10, 20):
        for seed in range(5):
            size = {"jobs": 30, "horizon": 30, "servers": servers}
            yield "medium", f"t30-j30-h{servers}-s{seed}", "paper", seed, size
    for seed in range(3):
        size = {"jobs": 100, "horizon": 100, "servers": 50}
        yield "large", f"t100-j100-h50-s{seed}", "paper", seed, size
    yield "large", "t300-j300-h50-s0", "paper", 0, {"jobs": 300, "horizon": 300, "servers": 50}


def batchsched() -> Iterator[Row]:
    both = (("ps", "parameter-server"), ("rar", "ring-allreduce"))
    for word, architecture in both:
        for jobs, horizon in ((5, 6), (6, 4)):
            for seed in range(5):
                size = {"jobs": jobs, "horizon": horizon, "servers": 3}
                settings = {**size, "architecture": architecture}
                yield "small", f"{word}-j{jobs}-t{horizon}-s{seed}", "small", seed, settings
    for word, architecture in both:
        for seed in range(5):
            size = {"jobs": 30, "servers": 40, "capacity_fraction": 0.2}
            settings = {**size, "architecture": architecture}
            yield "medium", f"{word}-j30-s{seed}", "paper", seed, settings
        for fraction in (0.1, 0.2):
            settings = {"architecture": architecture, "capacity_fraction": fraction}
            yield "large", f"{word}-c{fraction:g}-s0", "paper", 0, settings


def astraea() -> Iterator[Row]:
    for utility in ("linear", "power"):
        for jobs, servers in ((6, 5), (8, 5)):
            for seed in range(5):
                settings = {"jobs": jobs, "servers": servers, "utility": utility}
                yield "small", f"{utility}-j{jobs}-s{seed}", "small", seed, settings
        for seed in range(5):
            size = {"jobs": 40, "servers": 20, "utility": utility}
            yield "medium", f"{utility}-j40-s{seed}", "paper", seed, size
        for seed in range(2):
            yield "large", f"{utility}-s{seed}", "paper", seed, {"utility": utility}


def edgecloud() -> Iterator[Row]:
    kinds: dict[str, dict[str, Any]] = {
        "open": {},
        "few": {"cloud_workers": 2},
        "closed": {"cloud_workers": 0, "jobs": 5},
        "storage": {"storage_gb": 8, "chunk_gb": [2, 4]},
    }
    for word, settings in kinds.items():
        for seed in range(10, 15):
            yield "small", f"{word}-s{seed}", "small", seed, settings
    for word, fields in (("open", {}), ("closed", {"cloud_workers": 0})):
        for seed in range(5):
            size = {"jobs": 30, "minibatch_scale": 0.05, **fields}
            yield "medium", f"{word}-j30-s{seed}", "paper", seed, size
    yield "large", "open-s0", "paper", 0, {}
    yield "large", "light-s1", "paper", 1, {"minibatch_scale": 0.05}
    for seed in (2, 3):
        settings = {"minibatch_scale": 0.05, "cloud_workers": 0}
        yield "large", f"closed-s{seed}", "paper", seed, settings


def mlbroker() -> Iterator[Row]:
    equal = {"gpu_range": [5, 5.5]}
    local = {**equal, "exchange_gb": [0, 5], "jobs": 4}
    kinds: dict[str, dict[str, Any]] = {
        "prices": {},
        "pooling": {**equal, "discount": [0.4, 0.5], "gpu_threshold": [25, 40]},
        "data": {**local, "transfer_usd": [0.05, 0.1], "horizon": 3},
        "moving": {
            **local, "transfer_usd": [0.2, 0.4], "deployment_gb": 100, "persistent_share": 0.2,
        },
    }  # fmt: skip
    for word, settings in kinds.items():
        for seed in range(10, 15):
            yield "small", f"{word}-s{seed}", "small", seed, settings
    for seed in range(10):
        size = {"datacenters": 6, "horizon": 10, "jobs": 20, "life_slots": [3, 8]}
        yield "medium", f"r6-t10-j20-s{seed}", "paper", seed, size
    for seed in range(4):
        yield "large", f"s{seed}", "paper", seed, {}


def gang() -> Iterator[Row]:
    kinds: dict[str, dict[str, Any]] = {
        "poisson": {},
        "bursty": {"arrivals": "bursty"},
        "weighted": {"weight": [1, 9]},
        "servers": {"servers": 2, "placement": "consolidated"},
    }
    for word, settings in kinds.items():
        for seed in range(10, 15):
            yield "small", f"{word}-s{seed}", "small", seed, settings
    for preset in ("paper", "bursty"):
        for seed in range(5):
            yield "medium", f"{preset}-j100-s{seed}", preset, seed, {"jobs": 100}
        for seed in range(2):
            yield "large", f"{preset}-j1000-s{seed}", preset, seed, {"jobs": 1000}


def main() -> None:
    """Make every instance once for its hash, and write the file."""
    rows = []
    for family in (oasis, batchsched, astraea, edgecloud, mlbroker, gang):
        word = family.__name__
        for size, member, preset, seed, settings in family():
            suite = f"library-{size}"
            made = generate(word, preset, seed, **settings)
            instance = made.with_fields(name=f"{word}-{suite}-{member}")
            rows.append({
                "family": word, "suite": suite, "member": member, "preset": preset, "seed": seed,
                "settings": settings, "jobs": len(instance.jobs), "horizon": instance.horizon,
                "sha256": instance.sha256(),
            })  # fmt: skip
    body = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    head = f'{{\n "format": "hindsched-recipes/1",\n "version": {VERSION},\n'
    TARGET.write_text(f'{head} "recipes": [\n{body}\n ]\n}}\n')
    print(f"{len(rows)} recipes in {TARGET}")
    write_members()


def write_members() -> None:
    """Write the names, sizes and hashes of the instances in the generators' suites."""
    families = []
    for word in FAMILIES:
        rows = [list(astuple(member))[1:6] for member in make_members(word)]
        body = ",\n".join(f"   {json.dumps(row)}" for row in rows)
        families.append(f'  "{word}": [\n{body}\n  ]')
    text = '{\n "format": "hindsched-members/1",\n "members": {\n'
    MEMBERS.write_text(text + ",\n".join(families) + "\n }\n}\n")
    print(f"members of the suites in {MEMBERS}")


if __name__ == "__main__":
    main()

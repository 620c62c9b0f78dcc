"""Random tiny instances: small numbers, extreme numbers and numbers full of ties.

Every instance draws a *temper* for its numbers: whole and small, decimals that add up exactly only
as decimals (0.1 + 0.2 = 0.3), decimals a hair beside a tie (0.3000001 against 0.3), sizes from 1e-9
to 1e9, or a mixture. A family's function returns the JSON data of an instance file.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

TEMPERS = ("whole", "whole", "decimal", "decimal", "near", "third", "scaled", "mixed")

PLAIN = ("whole", "decimal", "scaled")
"""Tempers in which no amount lies a hair beside another."""


class Numbers:
    """Numbers of one instance."""

    def __init__(self, family: str, seed: int) -> None:
        self.random = random.Random(f"{family} {seed}")
        self.temper = self.random.choice(TEMPERS)
        self.scale = Decimal(10) ** self.random.choice((-9, -7, -3, 3, 6, 9))

    def chance(self, probability: float) -> bool:
        """Draw a yes or no."""
        return self.random.random() < probability

    def whole(self, low: int, high: int) -> int:
        """Draw a whole number."""
        return self.random.randint(low, high)

    def size(self, low: int, high: int, scaled: bool = True) -> Any:
        """Draw a number of about `low` to `high`, as the temper has it.

        `scaled` says that it may be scaled, with all others: amounts and prices may, times not.
        """
        temper = self.temper
        if temper == "mixed":
            temper = self.random.choice(("whole", "decimal", "near", "third"))
        value = Decimal(self.random.randint(low, high))
        if temper == "decimal":
            value = Decimal(self.random.randint(10 * low, 10 * high)) / 10
        elif temper == "near":
            value += self.random.choice((0, 0, 0, 1, -1)) * Decimal(10) ** -self.whole(4, 9)
        elif temper == "third":
            value = (value / 3).quantize(Decimal(10) ** -self.random.choice((1, 6, 12, 16)))
        elif temper == "scaled" and scaled:
            value *= self.scale
        return number(max(value, Decimal(0)))

    def money(self, low: int, high: int) -> Any:
        """Draw a price or a worth: in a mixture one may dwarf another."""
        value = self.size(low, high)
        if self.temper == "mixed" and self.chance(0.2):
            return number(Decimal(str(value)) * self.scale)
        return value

    def slots(self, low: int, high: int) -> Any:
        """Draw a time of about `low` / 4 to `high` / 4 slots."""
        parts = (4, 5) if self.temper in PLAIN else (3, 4, 5)
        time = Decimal(str(self.size(low, high, False))) / self.random.choice(parts)
        return number(time.quantize(Decimal(10) ** -12))

    def gradient(self, mbps: Any, slot_seconds: Any) -> Any:
        """Draw a gradient that `mbps` moves there and back in a handy part of a slot."""
        part = self.random.choice((0, 0, 0, Decimal("0.1"), Decimal("0.25"), Decimal("0.5"), None))
        if part is None:
            part = Decimal(self.whole(1, 10**6)) / 10**6
        return number(part * Decimal(str(mbps)) * Decimal(str(slot_seconds)) / 16)


def number(value: Decimal) -> Any:
    """Return a decimal as a JSON number that is written with the same digits."""
    whole = value == value.to_integral_value() and abs(value) < 10**15
    return int(value) if whole else float(value)


def positive(draw: Callable[[], Any]) -> Any:
    """Draw until the number is positive."""
    while (value := draw()) <= 0:
        pass
    return value


def fitting(draw: Callable[[], dict[str, Any]], servers: list[dict[str, Any]]) -> dict[str, Any]:
    """Draw a demand until some server holds it; give up what does not fit in the end."""
    for _ in range(20):
        demand = draw()
        for server in servers:
            have = server["capacity"]
            if all(Decimal(str(v)) <= Decimal(str(have.get(r, 0))) for r, v in demand.items()):
                return demand
    return {r: min(v, servers[0]["capacity"].get(r, 0)) for r, v in demand.items()}


def envelope(family: str, seed: int, horizon: int, slot_seconds: Any = 3600) -> dict[str, Any]:
    """Return the fields that all families share."""
    return {
        "format": "hindsched/1",
        "family": family,
        "name": f"{family}-{seed}",
        "horizon": horizon,
        "slot_seconds": slot_seconds,
    }


def oasis(seed: int) -> dict[str, Any]:
    """A few elastic jobs on one to three servers a side."""
    n = Numbers("oasis", seed)
    seconds = n.random.choice((1, 60, 3600, 0.5))
    horizon = n.random.choice((1, 2, 3, 3, 4, 4))
    resources = [*["gpu", "cpu"][: n.whole(1, 2)], "mbps"]
    servers = {
        side: [
            {
                "name": f"{side[0]}{s}",
                "capacity": {r: positive(lambda: n.size(3, 6)) for r in resources},
            }
            for s in range(n.whole(1, 2))
        ]
        for side in ("worker_servers", "ps_servers")
    }
    jobs = []
    for i in range(n.whole(1, 3)):
        arrival = n.whole(1, horizon // 2 + 1 if n.chance(0.8) else horizon)

        def demand(low: int, high: int, most: int, sparse: float) -> dict[str, Any]:
            drawn = {r: n.size(0, most) for r in resources[:-1] if n.chance(sparse)}
            return drawn | {"mbps": positive(lambda: n.size(low, high))}

        worker = fitting(lambda: demand(1, 2, 2, 1), servers["worker_servers"])
        ps = fitting(lambda: demand(1, 4, 1, 0.6), servers["ps_servers"])
        if n.chance(0.6):
            utility = {
                "kind": "sigmoid", "priority": n.money(0, 20), "decay": n.size(0, 3, False),
                "target": n.size(0, 3, False),
            }  # fmt: skip
        else:
            utility = {
                "kind": "linear", "slope": number(-Decimal(str(n.size(0, 2)))),
                "intercept": n.money(2, 12),
            }  # fmt: skip
        jobs.append(
            {
                "name": f"j{i}", "arrival": arrival, "epochs": n.random.choice((1, 1, 2)),
                "chunks": n.whole(1, 3), "minibatches": n.random.choice((1, 1, 2)),
                "minibatch_slots": positive(lambda: n.slots(1, 3)),
                "gradient_mb": n.gradient(worker["mbps"], seconds),
                "worker": worker, "ps": ps, "utility": utility,
            }
        )  # fmt: skip
    data = envelope("oasis", seed, horizon, seconds)
    data |= {"resources": resources, "bandwidth_resource": "mbps", **servers, "jobs": jobs}
    return data


def batchsched(seed: int) -> dict[str, Any]:
    """A few jobs, parameter servers or a ring."""
    n = Numbers("batchsched", seed)
    seconds = n.random.choice((60, 3600, 1800.5))
    ring = n.chance(0.4)
    resources = [*["gpu", "cpu"][: n.whole(1, 2)], "mbps"]
    servers = [
        {"name": f"s{s}", "capacity": {r: n.size(2, 4) for r in resources}}
        for s in range(n.whole(1, 3))
    ]

    def kinds(prefix: str, most: int) -> list[dict[str, Any]]:
        demands = []
        for k in range(n.whole(1, most)):
            demand = fitting(
                lambda: (
                    {r: n.size(0, 2) for r in resources[:-1]}
                    | {"mbps": positive(lambda: n.size(1, 2))}
                ),
                servers,
            )
            demands.append({"name": f"{prefix}{k}", "demand": demand})
        return demands

    workers, ps = kinds("w", 2), kinds("p", 2)
    horizon = n.whole(1, 3)
    jobs = []
    for j in range(n.whole(1, 3)):
        job = {
            "name": f"j{j}", "arrival": n.whole(1, horizon),
            "weight": positive(lambda: n.money(1, 9)), "epochs": 1, "chunks": n.whole(1, 3),
            "minibatches": n.whole(1, 2),
            "minibatch_slots": [positive(lambda: n.slots(1, 5)) for _ in workers],
            "gradient_mb": n.gradient(n.random.choice(workers)["demand"]["mbps"], seconds),
        }  # fmt: skip
        if ring:
            job["reduce_slots"] = n.slots(0, 2)
        else:
            job["update_slots"] = [n.slots(0, 2) for _ in ps]
        jobs.append(job)
    data = envelope("batchsched", seed, horizon, seconds)
    data |= {
        "architecture": "ring-allreduce" if ring else "parameter-server",
        "resources": resources, "bandwidth_resource": "mbps", "servers": servers,
        "worker_types": workers, "jobs": jobs,
    }  # fmt: skip
    return data if ring else data | {"ps_types": ps}


def astraea(seed: int) -> dict[str, Any]:
    """A few jobs of two tenants, one or two types."""
    n = Numbers("astraea", seed)
    seconds = n.random.choice((60, 3600, 1800.5))
    typed = n.chance(0.25)
    names = ["a", "b"]

    def typed_or(draw: Callable[[], Any]) -> Any:
        return {name: draw() for name in names} if typed else draw()

    servers = [
        {"name": f"s{s}", "workers": typed_or(lambda: n.whole(0, 3)), "ps": n.whole(0, 3)}
        for s in range(n.whole(1, 3))
    ]

    def quotas(kind: str) -> list[Any]:
        counts = [server[kind] for server in servers]
        if isinstance(counts[0], dict):
            total = {name: sum(count[name] for count in counts) for name in names}
            first = {name: n.whole(0, total[name]) for name in names}
            return [first, {name: total[name] - first[name] for name in names}]
        first = n.whole(0, sum(counts))
        return [first, sum(counts) - first]

    tenants = [
        {"name": f"u{u}", "worker_quota": worker, "ps_quota": ps}
        for u, (worker, ps) in enumerate(zip(quotas("workers"), quotas("ps"), strict=True))
    ]
    bandwidth = typed_or(lambda: positive(lambda: n.size(1, 2)))
    rates = list(bandwidth.values()) if typed else [bandwidth]
    horizon = n.whole(2, 6)
    jobs = []
    for j in range(n.whole(1, 4)):
        if n.chance(0.6):
            utility = {
                "kind": "linear", "slope": number(-Decimal(str(n.size(0, 4)))),
                "intercept": n.money(0, 20),
            }  # fmt: skip
        else:
            utility = {
                "kind": "power", "scale": positive(lambda: n.size(1, 9, False)),
                "exponent": n.random.choice((0, 1, 2, 0.5, n.size(0, 3, False))),
            }  # fmt: skip
        jobs.append(
            {
                "name": f"j{j}", "tenant": f"u{n.whole(0, 1)}", "arrival": n.whole(0, horizon // 2),
                "epochs": 1, "chunks": n.whole(1, 3), "minibatches": n.whole(1, 2),
                "minibatch_slots": typed_or(lambda: positive(lambda: n.slots(1, 4))),
                "update_slots": n.slots(0, 2),
                "gradient_mb": n.gradient(n.random.choice(rates), seconds),
                "utility": utility,
            }
        )  # fmt: skip
    data = envelope("astraea", seed, horizon, seconds)
    data |= {
        "utility_origin": n.random.choice(("arrival", "absolute")), "tenants": tenants,
        "servers": servers, "worker_bandwidth_mbps": bandwidth,
        "ps_bandwidth_mbps": positive(lambda: n.size(1, 3)), "jobs": jobs,
    }  # fmt: skip
    return data


def edgecloud(seed: int) -> dict[str, Any]:
    """A few jobs on a few workers and a cloud, unlimited or with few workers or PSs."""
    n = Numbers("edgecloud", seed)
    seconds = n.random.choice((1800, 3600))
    kinds = ["t", "v"][: n.whole(1, 2)]
    limited = n.chance(0.3)
    servers = [
        {
            "name": f"s{s}",
            "workers": [n.random.choice(kinds) for _ in range(n.whole(0, 2))],
            "ps": ["p"] * n.whole(0, 2),
        }
        for s in range(n.whole(0, 2))
    ]
    cloud: dict[str, Any] = {"name": "cloud"}
    if n.chance(0.3):
        cloud["workers"] = {kind: n.whole(1, 2) for kind in kinds if n.chance(0.7)}
    if n.chance(0.3):
        cloud["ps"] = {"p": n.whole(1, 2)}
    horizon = n.whole(1, 3)
    jobs = []
    number = n.whole(1, 3)
    for j in range(number):
        rate = positive(lambda: n.size(1, 2))
        upload = {server["name"]: n.whole(0, 2) for server in servers} | {"cloud": n.whole(0, 5)}
        jobs.append(
            {
                "name": f"j{j}", "arrival": n.whole(1, horizon),
                "epochs": n.random.choice((1, 1, 2)),
                "chunks": n.whole(1, 3 if number < 3 else 2), "minibatches": 1,
                "minibatch_slots": positive(lambda: n.slots(1, 5)), "update_slots": n.slots(0, 1),
                "gradient_mb": n.gradient(rate, seconds), "bandwidth_mbps": rate,
                "worker_type": n.random.choice(kinds),
                "ps_type": "p", "upload_slots": upload,
            }
        )  # fmt: skip
        if limited:
            jobs[-1]["chunk_gb"] = n.size(0, 2)
    if limited:
        for server in servers:
            server["storage_gb"] = n.size(1, 6)
    data = envelope("edgecloud", seed, horizon, seconds)
    return data | {"servers": servers, "cloud": cloud, "jobs": jobs}


def mlbroker(seed: int) -> dict[str, Any]:
    """One to three jobs over two or three data centres and slots."""
    n = Numbers("mlbroker", seed)
    horizon = n.whole(1, 3)
    resources = ["gpu", "cpu"][: n.whole(1, 2)]
    centres = []
    for r in range(n.whole(2, 3)):
        prices = {}
        for k in resources:
            low, high = sorted((n.money(0, 5), n.money(0, 5)))
            prices[k] = {"unit_usd": high, "discounted_usd": low, "threshold": n.size(0, 6)}
        centres.append({"name": f"r{r}", "prices": prices})
    size = range(len(centres))
    transfer = [[0 if r == o else n.money(0, 4) for o in size] for r in size]
    jobs = []
    for i in range(n.whole(1, 3 if horizon < 3 else 2)):
        arrival = n.whole(1, horizon)
        departure = n.whole(arrival, horizon)
        capacity = positive(lambda: n.size(1, 3))
        jobs.append(
            {
                "name": f"j{i}", "arrival": arrival, "departure": departure,
                "worker": {k: n.size(0, 3) for k in resources},
                "ps": {k: n.size(0, 2) for k in resources if n.chance(0.7)},
                "capacity_gb": capacity, "exchange_gb": n.size(0, 2),
                "deployment_usd": n.money(0, 6),
                "data_gb": [[n.size(0, 2) for _ in size] for _ in range(arrival, departure + 1)],
            }
        )  # fmt: skip
        if n.chance(0.2):
            jobs[-1]["pinned_datacenters"] = [c["name"] for c in centres if n.chance(0.6)]
    data = envelope("mlbroker", seed, horizon, 43200)
    if n.chance(0.2):
        names = ("transfer", "resource", "deployment", "communication")
        data["cost_weights"] = {name: n.size(0, 3, False) for name in names}
    data |= {"resources": resources, "datacenters": centres, "transfer_usd_per_gb": transfer}
    return data | {"jobs": jobs}


def gang(seed: int) -> dict[str, Any]:
    """A few jobs on a pool, or on two servers; times are whole slots of any length."""
    n = Numbers("gang", seed)
    seconds = Decimal(str(n.random.choice((1, 60, 0.5, 0.1, 0.3))))
    sizes = [n.whole(1, 3) for _ in range(n.whole(1, 2))]
    jobs = []
    for i in range(n.whole(1, 4)):
        submit, duration = n.whole(0, 4), n.whole(1, 3)
        gpus = n.whole(1, sum(sizes))
        job = {"name": f"j{i}", "submit": number(submit * seconds), "gpus": gpus}
        job["duration"] = number(duration * seconds)
        if n.chance(0.7):
            job["weight"] = positive(lambda: n.money(0, 5))
        if n.chance(0.6):
            late = Decimal(str(n.size(submit, submit + 2 * duration, False)))
            job["deadline"] = number(late * seconds)
        if n.chance(0.4):
            job["most_gpus"] = n.whole(gpus, sum(sizes) + 1)
        jobs.append(job)
    data = envelope("gang", seed, 9, number(seconds))
    if n.chance(0.5):
        return data | {"gpus": sum(sizes), "jobs": jobs}
    servers = [{"name": f"s{i}", "gpus": size} for i, size in enumerate(sizes)]
    placement = n.random.choice(("pool", "consolidated"))
    return data | {"servers": servers, "placement": placement, "jobs": jobs}


FAMILIES: dict[str, Callable[[int], dict[str, Any]]] = {
    "oasis": oasis,
    "batchsched": batchsched,
    "astraea": astraea,
    "edgecloud": edgecloud,
    "mlbroker": mlbroker,
    "gang": gang,
}


def write(family: str, seed: int, path: Path) -> None:
    """Write the instance of a seed."""
    path.write_text(json.dumps(FAMILIES[family](seed)), encoding="utf-8")

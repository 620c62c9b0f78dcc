"""Who pays and who gains: (2) and, with several types, (11) of astraea, in exact arithmetic.

A job that runs outside its tenant's fair share pays its price in each slot. What it pays for
workers of a type is divided among the tenants in proportion to what each leaves unused of that type
in that slot, the payer's own part included; PSs likewise. The printed (2) takes c per job; it must
be per slot, else the gain is counted once a slot too often. Sums are fractions of the stored
floats, so that the gains add up to the payments exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.instances.astraea.instance import MOST_REVENUE, AstraeaInstance

if TYPE_CHECKING:
    from hindsched.solutions.astraea.row import AstraeaRow

    RowsByTenant = Sequence[Sequence[tuple[str, AstraeaRow]]]
    """Rows with their job's name, by tenant."""


def unused_quota(
    instance: AstraeaInstance, rows: RowsByTenant, last_slot: int
) -> tuple[Ints, Ints]:
    """What each tenant leaves unused of its fair share, by slot and type.

    Jobs that pay nothing run within the fair share; the rest of the quota is on offer. Negative
    where unpaid jobs exceed it, which offline schedules may: (3) knows no payments.

    Returns
    -------
    workers, ps : ndarray of int, shapes (last_slot, tenants, W) and (last_slot, tenants, P)
    """
    workers = np.repeat(instance.worker_quota[None], last_slot, axis=0)
    ps = np.repeat(instance.ps_quota[None], last_slot, axis=0)
    for tenant, own in enumerate(rows):
        for _, row in own:
            if row.payment is None:
                span = slice(row.first - 1, row.last)
                workers[span, tenant, row.worker_type] -= row.num_workers
                ps[span, tenant, row.ps_type] -= int(row.ps.sum())
    return workers, ps


def paid(rows: RowsByTenant) -> list[Fraction]:
    """What each tenant pays."""
    found = []
    for own in rows:
        total = Fraction(0)
        for _, row in own:
            if row.payment is not None:
                total += row.slots * (Fraction(row.payment[0]) + Fraction(row.payment[1]))
        found.append(total)
    return found


def gained(rows: RowsByTenant, unused: tuple[Ints, Ints]) -> list[Fraction]:
    """What each tenant receives."""
    found = [Fraction(0)] * len(rows)
    workers, ps = unused
    for own in rows:
        for _, row in own:
            for price, offered in zip(
                row.payment or (), (workers[:, :, row.worker_type], ps[:, :, row.ps_type]),
                strict=False,
            ):  # fmt: skip
                for t in range(row.first - 1, row.last):
                    _divide(Fraction(price), np.maximum(offered[t], 0), found)
    return found


def _divide(price: Fraction, offered: Ints, found: list[Fraction]) -> None:
    """Add one slot's price to the tenants in proportion to what they offer."""
    total = int(offered.sum())
    if price and total > 0:
        unit = price / total
        for u in np.flatnonzero(offered):
            found[u] += int(offered[u]) * unit


def initial_share(instance: AstraeaInstance, tenant: int) -> float:
    """Mean share of the cluster's workers and PSs that a tenant brought in (Section 5.1)."""
    means = []
    for quota in (instance.worker_quota, instance.ps_quota):
        total = quota.sum(axis=0)
        shares = quota[tenant][total > 0] / total[total > 0]
        means.append(float(shares.mean()) if shares.size else 0.0)
    return sum(means) / 2


def read_payment(where: str, payment: object) -> tuple[float, float] | None:
    """Read ``payment: {workers, ps}``: numbers from 0 on, paid in each slot of the row."""
    if payment is None:
        return None
    if not isinstance(payment, dict) or set(payment) != {"workers", "ps"}:
        raise InputError(where, payment, "must have the keys workers and ps")
    for key, price in payment.items():
        number = isinstance(price, int | float) and not isinstance(price, bool)
        if not number or not 0 <= price <= MOST_REVENUE:
            rule = f"must be a finite number from 0 on, at most {MOST_REVENUE:.0e}"
            raise InputError(f"{where}.{key}", price, rule)
    return float(payment["workers"]), float(payment["ps"])

"""Which units of which servers a tenant would own if nothing were shared.

Units are dealt out in the order of the servers and the tenants, so that an instance whose tenants
own whole servers in one stretch (as generated and traced ones do) gives each its own back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob


def private_units(instance: AstraeaInstance) -> tuple[Ints, Ints]:
    """Workers and PSs by tenant and server: shapes (U, S, W) and (U, S, P)."""
    return (
        _deal(instance.worker_quota, instance.worker_count),
        _deal(instance.ps_quota, instance.ps_count),
    )


def _deal(quota: Ints, count: Ints) -> Ints:
    """Overlap of the tenants' and the servers' stretches of each type's numbered units."""
    ends_quota, ends_count = np.cumsum(quota, axis=0), np.cumsum(count, axis=0)
    last = np.minimum(ends_quota[:, None], ends_count[None])
    first = np.maximum((ends_quota - quota)[:, None], (ends_count - count)[None])
    dealt: Ints = np.maximum(0, last - first)
    return dealt


def tenant_alone(
    instance: AstraeaInstance, tenant: int, jobs: tuple[AstraeaJob, ...] = ()
) -> AstraeaInstance:
    """The instance of a tenant (by position) alone on its own units (not validated again)."""
    workers, ps = (units[tenant] for units in private_units(instance))
    used = np.flatnonzero(workers.any(axis=1) | ps.any(axis=1))
    servers = tuple(
        instance.servers[s].model_copy(
            update={
                "workers": _counts(workers[s], instance.worker_types, instance.servers[s].workers),
                "ps": _counts(ps[s], instance.ps_types, instance.servers[s].ps),
            }
        )
        for s in used
    )
    return instance.with_fields(servers=servers, tenants=(instance.tenants[tenant],), jobs=jobs)


def _counts(values: Ints, types: tuple[str, ...], given: object) -> Any:
    """Counts in the form in which the server's were given."""
    if not isinstance(given, dict):
        return int(values[0])
    return dict(zip(types, values.tolist(), strict=True))

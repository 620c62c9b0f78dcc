"""A bound whose blocks are divided over the workers of a Dask cluster, the same as by one process.

Each worker keeps its share of the blocks; only prices and answers travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

from hindsched.analysis.sweep import SchedulerLost, connect
from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.json_types import Keywords
from hindsched.solvers.bounds.distributed import ShareAnswer, ShareTeam, answer, divided_over
from hindsched.solvers.door.api import methods, solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result
from hindsched.solvers.methods import base
from hindsched.solvers.oracles.base import BlockOracle

DIVIDED = {"bound": base.bound, "preemptive": base.preemptive}
"""The methods that divide their blocks."""


def bound_on_cluster(
    instance: Instance,
    address: str,
    method: str = "bound",
    *,
    formulation: str | None = None,
    options: SolveOptions | Keywords | None = None,
) -> Result:
    """Bound an instance's optimum with its blocks divided over the cluster at an address.

    Raises
    ------
    InputError
        If the method or the family does not divide its blocks, or there is no scheduler.
    SchedulerLost
        If the scheduler goes away, or a worker that holds a share.
    """
    known = methods(instance.family)
    if method in known and known[method] is not DIVIDED.get(method):
        rule = f"must be absent: {method} of {instance.family} does not divide its blocks"
        raise InputError("dask", address, rule)
    with closing(connect(address)) as client:
        team = ClusterTeam(client, address)
        with divided_over(team):
            found = solve(instance, method, formulation=formulation, options=options)
    moved = team.bytes_moved // max(1, team.evaluations)
    details = {**found.details, "shares": team.size, "bytes_an_evaluation": moved}
    return replace(found, details=details, backend=f"{found.backend}, {team.size} shares")


class ClusterTeam(ShareTeam):
    """Workers of a Dask cluster, a share each."""

    def __init__(self, client: Any, address: str) -> None:
        client.wait_for_workers(1)
        self._client, self._address = client, address
        homes = sorted(client.scheduler_info(n_workers=-1)["workers"])
        self._at = [partial(client.submit, workers=[home], pure=False) for home in homes]
        self.size = len(homes)

    def hold(self, shares: Sequence[BlockOracle]) -> None:
        """Send each share to a worker, which keeps it."""
        self._held = [at(_same, share) for at, share in zip(self._at, shares, strict=False)]

    def ask(self, prices: Floats) -> Sequence[ShareAnswer]:
        """Answers of all shares."""
        asked = [at(answer, own, prices) for at, own in zip(self._at, self._held, strict=False)]
        try:
            found: list[ShareAnswer] = self._client.gather(asked)
        except (OSError, CancelledError) as error:
            lost = f"a worker or the scheduler of {self._address} is lost ({error})"
            raise SchedulerLost(lost) from None
        return found


def _same(share: BlockOracle) -> BlockOracle:
    return share

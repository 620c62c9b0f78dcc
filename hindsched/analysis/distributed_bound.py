"""A bound computed by several processes or machines, the same as by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from hindsched.analysis.sweep import (
    ATTEMPTS,
    SchedulerLost,
    check_workers,
    connect,
    submit,
    worker_process,
)
from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
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


def divided_bound(
    instance: Instance,
    method: str = "bound",
    *,
    workers: int = 2,
    dask: str | None = None,
    formulation: str | None = None,
    options: SolveOptions | Keywords | None = None,
) -> Result:
    """Bound an instance's optimum with its blocks divided over workers.

    Raises
    ------
    InputError
        If the method or the family does not divide its blocks, or there is no scheduler.
    SchedulerLost
        If the scheduler goes away, or a worker of the cluster that holds a share.
    """
    known = methods(instance.family)
    if method in known and known[method] is not DIVIDED.get(method):
        rule = f"must be 0 or absent: {method} of {instance.family} does not divide its blocks"
        raise InputError("dask" if dask else "workers", dask or workers, rule)
    check_workers(workers)
    with local_team(workers) if dask is None else cluster_team(dask) as team, divided_over(team):
        found = solve(instance, method, formulation=formulation, options=options)
    details = {
        **found.details,
        "shares": team.size,
        "bytes_an_evaluation": team.bytes_moved // max(1, team.evaluations),
        "taken_over": team.taken_over,
    }
    return replace(found, details=details, backend=f"{found.backend}, {team.size} shares")


class LocalTeam(ShareTeam):
    """Local processes, each with one share; one that dies is started again."""

    def __init__(self, workers: int) -> None:
        self.size = workers
        self._shares: list[BlockOracle] = []
        self._processes: list[Any] = []

    def hold(self, shares: Sequence[BlockOracle]) -> None:
        """Start a process a share."""
        self.close()
        self._shares = list(shares)
        self._processes = [_holder(share) for share in shares]

    def ask(self, prices: Floats) -> Sequence[ShareAnswer]:
        """Answers of all shares."""
        from joblib.externals.loky.process_executor import BrokenProcessPool

        found: dict[int, ShareAnswer] = {}
        for _ in range(ATTEMPTS + 1):
            waiting: dict[int, Any] = {}
            left = [k for k in range(len(self._shares)) if k not in found]
            for k in left:
                with suppress(BrokenProcessPool):
                    waiting[k] = submit(self._processes[k], _answer_held, prices)
            for k in left:
                try:
                    found[k] = waiting[k].result()
                except (KeyError, BrokenProcessPool):
                    self.taken_over += 1
                    self._processes[k].shutdown(kill_workers=True)
                    self._processes[k] = _holder(self._shares[k])
            if len(found) == len(self._shares):
                return [found[k] for k in range(len(found))]
        raise SolveFailed("a process that holds part of the bound dies whenever it is asked")

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.shutdown(kill_workers=True)
        self._processes = []


class ClusterTeam(ShareTeam):
    """Workers of a Dask cluster, a share each; nothing but prices and answers travels."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        client.wait_for_workers(1)
        self._homes = sorted(client.scheduler_info(n_workers=-1)["workers"])
        self._held: list[Any] = []
        self.size = len(self._homes)

    def hold(self, shares: Sequence[BlockOracle]) -> None:
        """Send each share to a worker, which keeps it."""
        self._held = [
            self._at(home, _same, share) for share, home in zip(shares, self._homes, strict=False)
        ]

    def ask(self, prices: Floats) -> Sequence[ShareAnswer]:
        """Answers of all shares."""
        asked = [
            self._at(home, answer, own, prices)
            for own, home in zip(self._held, self._homes, strict=False)
        ]
        try:
            found: list[ShareAnswer] = self._client.gather(asked)
        except (OSError, CancelledError) as error:
            lost = f"a worker or the scheduler of {self._address} is lost ({error})"
            raise SchedulerLost(lost) from None
        return found

    def _at(self, home: str, function: Any, *given: Any) -> Any:
        return self._client.submit(function, *given, workers=[home], pure=False)


@contextmanager
def local_team(workers: int) -> Iterator[LocalTeam]:
    """A team of local processes, each with one share."""
    team = LocalTeam(workers)
    try:
        yield team
    finally:
        team.close()


@contextmanager
def cluster_team(address: str) -> Iterator[ClusterTeam]:
    """A team of all workers of the Dask cluster at an address."""
    client = connect(address)
    try:
        yield ClusterTeam(client, address)
    finally:
        client.close(timeout=2)


_share: list[BlockOracle] = []
"""In a local worker: the share that it holds."""


def _holder(share: BlockOracle) -> Any:
    """A local process that holds a share."""
    process = worker_process()
    submit(process, _hold, share)
    return process


def _hold(share: BlockOracle) -> None:
    _share[:] = [share]


def _answer_held(prices: Floats) -> ShareAnswer:
    return answer(_share[0], prices)


def _same(share: BlockOracle) -> BlockOracle:
    return share

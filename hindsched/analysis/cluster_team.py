"""Workers of a Dask cluster that hold shares of a bound's blocks.

A share is bound to one worker, so that nothing but prices and answers travels. When a worker leaves
the cluster, the one that holds least is given its shares.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from hindsched.analysis.cluster import (
    FETCH_SECONDS,
    Say,
    Watch,
    connect,
    say_line,
    without_tracebacks,
)
from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.solvers.bounds.distributed import ShareAnswer, ShareTeam, answer
from hindsched.solvers.oracles.base import BlockOracle

POLL_SECONDS = 0.25
"""How often to look whether a worker has left while an answer is awaited."""


class ClusterTeam(ShareTeam):
    """Workers of a Dask cluster; at first as many shares as workers.

    Parameters
    ----------
    client : distributed.Client
        Client of the scheduler.
    watch : Watch
        Says what is wrong with the cluster, and raises if waiting does not help.
    """

    def __init__(self, client: Any, watch: Watch) -> None:
        self._client, self._watch = client, watch
        self._shares: list[BlockOracle] = []
        self._held: list[Any] = []
        self._homes: list[str] = []
        self.size = len(self._wait_for_workers())

    def hold(self, shares: Sequence[BlockOracle]) -> None:
        """Send each share to a worker."""
        self._shares = list(shares)
        homes = self._wait_for_workers()
        self._homes = [homes[k % len(homes)] for k in range(len(shares))]
        self._held = [self._send(k) for k in range(len(shares))]

    def ask(self, prices: Floats) -> Sequence[ShareAnswer]:
        """Answers of all shares; those of workers that left are asked of others."""
        asked = [self._submit(k, prices) for k in range(len(self._shares))]
        patience = FETCH_SECONDS
        while True:
            self._wait_for_answers(asked, prices)
            try:
                return self._collect(asked, patience)
            except TimeoutError:  # a worker left with its answer, which has to be asked again
                patience *= 2
            except CancelledError:
                raise self._watch.lost() from None

    def _wait_for_answers(self, asked: list[Any], prices: Floats) -> None:
        """Wait until all are there; those of workers that left are replaced in the list."""
        next_look = time.monotonic() + POLL_SECONDS
        while not all(future.done() for future in asked):
            self._wait(asked)
            if time.monotonic() < next_look:
                continue
            next_look = time.monotonic() + POLL_SECONDS
            self._watch.look()
            there = self._wait_for_workers()
            for k, home in enumerate(self._homes):
                if home not in there:
                    self._move(k, there)
                    asked[k] = self._submit(k, prices)
        for future in asked:
            if future.status == "error":
                raise SolveFailed(f"lost on the cluster: {future.exception()}")
            if future.status == "cancelled":  # so are all futures of a scheduler that is gone
                raise self._watch.lost()

    def _collect(self, asked: Sequence[Any], patience: float) -> list[ShareAnswer]:
        """Fetch the answers; `TimeoutError` if one of them does not come."""
        found: list[ShareAnswer] = self._client.sync(
            lambda: self._client.gather(asked, asynchronous=True), callback_timeout=patience
        )
        return found

    def _wait(self, asked: Sequence[Any]) -> None:
        """Wait for all answers, but not longer than until the next look."""
        from distributed import wait

        with suppress(TimeoutError), self._client.as_current():
            wait(asked, timeout=POLL_SECONDS)

    def _wait_for_workers(self) -> list[str]:
        while True:
            self._watch.look()
            found = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
            if found:
                return found
            time.sleep(POLL_SECONDS)

    def _send(self, share: int) -> Any:
        return self._client.submit(
            _keep, self._shares[share], workers=[self._homes[share]], pure=False
        )

    def _submit(self, share: int, prices: Floats) -> Any:
        return self._client.submit(
            _answer, self._held[share], prices, workers=[self._homes[share]], pure=False
        )

    def _move(self, share: int, there: Sequence[str]) -> None:
        """Give a share whose worker has left to the worker that holds least."""
        self._held[share].cancel()
        held = Counter(home for home in self._homes if home in there)
        self._homes[share] = min(there, key=lambda home: held[home])
        self._held[share] = self._send(share)
        self.taken_over += 1


@contextmanager
def cluster_team(address: str, say: Say | None = None) -> Iterator[ClusterTeam]:
    """A team of a Dask cluster's workers, as many as there are.

    Parameters
    ----------
    address : str
        Address of the scheduler, ``tcp://host:port`` or ``host:port``.
    say : callable, optional
        Takes the lines that are said while waiting; standard error if None.

    Raises
    ------
    InputError
        If there is no scheduler at the address, or a worker cannot run the package.
    SchedulerLost
        If the scheduler goes away.
    """
    with without_tracebacks():
        client = connect(address)
        try:
            yield ClusterTeam(client, Watch(client, address, say or say_line))
        finally:
            client.close(timeout=2)


def _keep(share: BlockOracle) -> BlockOracle:
    """Hold a share where this runs."""
    return share


def _answer(share: BlockOracle, prices: Floats) -> ShareAnswer:
    return answer(share, prices)

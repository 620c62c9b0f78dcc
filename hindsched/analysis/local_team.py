"""Local processes that hold shares of a bound's blocks; one that dies is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from hindsched.analysis.local_pool import (
    DEATHS_IN_A_ROW,
    ONE_THREAD,
    Parent,
    end_executor,
    prepare_worker,
)
from hindsched.analysis.trackers import start_trackers
from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.solvers.bounds.distributed import ShareAnswer, ShareTeam, answer
from hindsched.solvers.door.interrupt import without_interrupts
from hindsched.solvers.oracles.base import BlockOracle


class LocalTeam(ShareTeam):
    """Processes on this machine, each with one share.

    Parameters
    ----------
    workers : int
        Number of processes, at least 1.
    """

    def __init__(self, workers: int) -> None:
        self.size = workers
        self._pools: list[Any] = []
        self._shares: list[BlockOracle] = []

    def hold(self, shares: Sequence[BlockOracle]) -> None:
        """Start a process a share."""
        self.close()
        self._shares = list(shares)
        self._pools = [_start(share) for share in shares]

    def ask(self, prices: Floats) -> Sequence[ShareAnswer]:
        """Answers of all shares; the process of a share that dies is started again."""
        from joblib.externals.loky.process_executor import BrokenProcessPool

        waiting: dict[int, Future[ShareAnswer] | None] = {
            share: _submit(pool, prices) for share, pool in enumerate(self._pools)
        }
        found: dict[int, ShareAnswer] = {}
        for share, future in waiting.items():
            for _ in range(DEATHS_IN_A_ROW):
                try:
                    if future is None:
                        raise BrokenProcessPool("died between two questions")
                    found[share] = future.result()
                    break
                except BrokenProcessPool:
                    self.taken_over += 1
                    self._pools[share].shutdown(wait=False, kill_workers=True)
                    self._pools[share] = _start(self._shares[share])
                    future = _submit(self._pools[share], prices)
            else:
                raise SolveFailed(f"a worker process of the bound died {DEATHS_IN_A_ROW} times")
        return [found[share] for share in range(len(self._pools))]

    def close(self) -> None:
        """End the processes."""
        for pool in self._pools:
            end_executor(pool, kill_workers=True)
        self._pools = []


@contextmanager
def local_team(workers: int) -> Iterator[LocalTeam]:
    """A team of local processes that ends with the block."""
    start_trackers()
    team = LocalTeam(workers)
    try:
        yield team
    finally:
        team.close()


_share: BlockOracle | None = None
"""In a worker process: the share that it holds."""


def _prepare(share: BlockOracle, parent: Parent) -> None:
    global _share
    prepare_worker(parent)
    _share = share


def _answer(prices: Floats) -> ShareAnswer:
    assert _share is not None
    return answer(_share, prices)


def _start(share: BlockOracle) -> Any:
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(
        max_workers=1, initializer=_prepare, initargs=(share, Parent.this()), env=ONE_THREAD
    )


def _submit(pool: Any, prices: Floats) -> Future[ShareAnswer] | None:
    """The future of a share's answer; None if its process is known to be dead."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        with without_interrupts():  # a process that this starts inherits that
            future: Future[ShareAnswer] = pool.submit(_answer, prices)
    except BrokenProcessPool:
        return None
    return future

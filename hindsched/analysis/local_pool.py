"""Running tasks in local processes that cannot outlive this one.

Tasks are pure, so whatever dies is run again. When a worker dies its pool is broken, and which of
the tasks that ran killed it is not known: the others go on in a new pool, and at the end those
suspects run one at a time, so that the one that kills its worker is found and reported while all
others finish.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import nullcontext, suppress
from functools import lru_cache
from itertools import islice
from pickle import dumps, loads
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from hindsched.analysis import tasks as in_tasks
from hindsched.analysis.records import Record
from hindsched.analysis.tasks import Task, failed_record
from hindsched.analysis.trackers import start_trackers
from hindsched.instances.base import Instance
from hindsched.limits import ask, nobody_asked
from hindsched.solvers.door.interrupt import catch_interrupt, interruption, without_interrupts

if TYPE_CHECKING:
    from joblib.externals.loky import ProcessPoolExecutor

DEATHS_IN_A_ROW = 4
"""Pools that break one after the other with nothing finished: then no worker can live here."""
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
OVERDUE = "time limit: neither finished nor stopped"
PARENT_CHECK_SECONDS = 1.0
POLL_SECONDS = 0.05
TAKEN_SECONDS = 5.0
PR_SET_PDEATHSIG = 1

INSTANCES_HELD = 256
"""Instances that a worker keeps: tasks of one instance come one after the other."""

Finished = Generator[tuple[Task, Record]]
Instances = Mapping[str, Instance]
RunTask = Callable[[Instance, Task], Record]
Load = Callable[[], None]
Item = TypeVar("Item")
Found = TypeVar("Found")


class LocalPool:
    """Worker processes that begin to load at once, before there are tasks for them.

    Parameters
    ----------
    workers : int
        Number of processes, at least 1.
    load : callable, optional
        Imports what tasks need: here, where workers can be copies of this process, else in each of
        them before its first task.
    """

    def __init__(self, workers: int, load: Load | None = None) -> None:
        from joblib.externals.loky import ProcessPoolExecutor

        from hindsched.analysis.copied_worker import Copying, can_be_copied

        start_trackers()
        self.size = workers
        context = None
        if load is not None and can_be_copied():
            context = Copying()
            _load(load)
        self._executor = ProcessPoolExecutor(
            max_workers=workers,
            context=context,
            initializer=_prepare,
            initargs=(Parent.this(), load),
            env=ONE_THREAD,
        )
        self._unfinished: list[Future[Any]] = []
        self.submit(_nothing)  # the processes start with the first thing to do

    def submit(self, function: Callable[..., Found], *arguments: object) -> Future[Found]:
        """Have a worker call a function."""
        with without_interrupts():  # workers that this starts inherit that
            future: Future[Found] = self._executor.submit(function, *arguments)
        self._unfinished = [item for item in self._unfinished if not item.done()] + [future]
        return future

    def spread(
        self, function: Callable[[Item], Found], items: Sequence[Item], weights: Sequence[float]
    ) -> Iterator[Found]:
        """Call a function on each item, from now on, and yield the results in order.

        A worker gets one share of the items, all of about the same weight: see `_in_pool` for why
        nothing waits in the pool. What a worker dies with is done here.
        """
        shares = balanced(weights, self.size)
        futures = [self._share(function, [items[at] for at in share]) for share in shares]
        return self._collected(function, items, shares, futures)

    def _share(
        self, function: Callable[[Item], Found], items: Sequence[Item]
    ) -> Future[list[Found]] | None:
        from joblib.externals.loky.process_executor import BrokenProcessPool

        with suppress(BrokenProcessPool):
            return self.submit(_each, function, items)
        return None

    @staticmethod
    def _collected(
        function: Callable[[Item], Found],
        items: Sequence[Item],
        shares: Sequence[Sequence[int]],
        futures: Sequence[Future[list[Found]] | None],
    ) -> Iterator[Found]:
        from joblib.externals.loky.process_executor import BrokenProcessPool

        found: dict[int, Found] = {}
        for share, future in zip(shares, futures, strict=True):
            with suppress(BrokenProcessPool):
                if future is not None:
                    found |= zip(share, future.result(), strict=True)
        for place, item in enumerate(items):
            yield found[place] if place in found else function(item)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the processes: at once after an error, or where nobody waits for what they do."""
        wait_until_taken(self._unfinished)
        is_early = kind is not None or not all(future.done() for future in self._unfinished)
        end_executor(self._executor, kill_workers=is_early)


def end_executor(executor: ProcessPoolExecutor, *, kill_workers: bool) -> None:
    """End a pool's processes and all its threads.

    Parameters
    ----------
    executor : ProcessPoolExecutor
        The pool.
    kill_workers : bool
        Whether what its processes do is of no use any more.

    Notes
    -----
    loky does not wait for the thread that feeds the processes. It may be the last to hold the
    pool's semaphores: where Python ends while it gives one back, the tracker is not told of it.
    """
    feeder: threading.Thread | None = executor._call_queue._thread
    executor.shutdown(wait=True, kill_workers=kill_workers)
    if feeder is not None:
        feeder.join(TAKEN_SECONDS)


def balanced(weights: Sequence[float], number: int) -> list[list[int]]:
    """Positions in at most so many shares of about the same weight: each to the lightest share."""
    shares: list[list[int]] = [[] for _ in range(number)]
    held = [0.0] * number
    for place in sorted(range(len(weights)), key=lambda place: -weights[place]):
        lightest = held.index(min(held))
        shares[lightest].append(place)
        held[lightest] += weights[place]
    return [share for share in shares if share]


def run_locally(
    tasks: Sequence[Task],
    instances: Instances,
    workers: int,
    run: RunTask,
    pool: LocalPool | None = None,
) -> Finished:
    """Run tasks in local processes and yield each with its record as they finish.

    Parameters
    ----------
    tasks : sequence of Task
        What to run.
    instances : mapping
        Instances by name.
    workers : int
        Number of processes, at least 1.
    run : callable
        Runs one task on its instance.
    pool : LocalPool, optional
        Processes that are there already, in place of the first that would be started here.
    """
    suspects: list[Task] = []
    for task, record in _in_pools(tasks, instances, workers, run, pool):
        if isinstance(record, str):
            suspects.append(task)
        else:
            yield task, record
    for task, record in _in_pools(suspects, instances, 1, run):
        yield task, record if isinstance(record, dict) else failed_record(task, record)


def _in_pools(
    tasks: Sequence[Task],
    instances: Instances,
    workers: int,
    run: RunTask,
    given: LocalPool | None = None,
) -> Generator[tuple[Task, Record | str]]:
    """Run tasks in pools, a new one whenever one breaks; why, for tasks that ran when one did."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left = {task.key: task for task in tasks}
    deaths = 0
    while left:
        running: dict[Future[Record], Task] = {}
        try:
            with LocalPool(workers) if given is None else nullcontext(given) as pool:
                for task, record in _in_pool(list(left.values()), instances, pool, run, running):
                    del left[task.key]
                    deaths = 0
                    yield task, record
        except BrokenProcessPool as error:
            deaths += 1
            why = OVERDUE if "SIGALRM" in str(error) else "the worker process died"
            lost = list(running.values()) if deaths < DEATHS_IN_A_ROW else list(left.values())
            for task in lost:
                del left[task.key]
                yield task, why
        given = None


def _in_pool(
    tasks: Sequence[Task],
    instances: Instances,
    pool: LocalPool,
    run: RunTask,
    running: dict[Future[Record], Task],
) -> Finished:
    """Yield records as they finish; `BrokenProcessPool` if a worker dies, `running` says on what.

    A worker gets one task at a time, and the next before anything is done with the last one's
    record: the pool's own queue of waiting tasks stays empty, because loky trips over that queue
    when it is told to kill its workers. For the same reason an interrupt only sets an event here,
    and is raised where the pool is at rest.
    """
    packed = {name: dumps(instances[name]) for name in {task.instance for task in tasks}}
    waiting = iter(tasks)
    ended: list[tuple[Task, Record]] = []
    with catch_interrupt() as interrupted:
        try:
            while True:
                for task in islice(waiting, pool.size - len(running)):
                    running[pool.submit(_in_worker, run, packed[task.instance], task)] = task
                yield from ended
                ended.clear()
                if not running:
                    break
                done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:  # what is finished is kept, also after an interrupt
                    if interrupted.is_set() and future.exception() is not None:
                        continue  # the signal went to the workers too
                    record = future.result()
                    ended.append((running.pop(future), record))
                if interrupted.is_set():
                    yield from ended
                    raise interruption()
        finally:
            wait_until_taken(running)


def wait_until_taken(futures: Iterable[Future[Any]]) -> None:
    """Wait until the pool's processes have taken what was handed to it, but not for ever."""
    end = time.monotonic() + TAKEN_SECONDS
    while not all(future.running() or future.done() for future in futures):
        if time.monotonic() > end:
            break
        time.sleep(POLL_SECONDS)


class Parent(NamedTuple):
    """What a worker is told of the process that starts it.

    Parameters
    ----------
    process : int
        Its id.
    asked : bool
        Whether somebody chose a limit of time or memory for it.
    """

    process: int
    asked: bool

    @classmethod
    def this(cls) -> Self:
        """Of the present process."""
        return cls(os.getpid(), not nobody_asked())


def prepare_worker(parent: Parent) -> None:
    """Leave Ctrl-C to the parent, and do not outlive it."""
    in_tasks.expendable.set()
    if parent.asked:  # the limit of memory itself the system hands on
        ask()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    if sys.platform == "linux":  # the kernel sees to it, whatever this process is in the middle of
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def watch() -> None:
        while os.getppid() == parent.process:  # another one as soon as the parent is dead
            time.sleep(PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _prepare(parent: Parent, load: Load | None) -> None:
    prepare_worker(parent)
    if load is not None:
        _load(load)


def _load(load: Load) -> None:
    with suppress(Exception):  # a task that needs it says so
        load()


def _nothing() -> None:
    pass


def _in_worker(run: RunTask, packed: bytes, task: Task) -> Record:
    return run(_unpacked(packed), task)


@lru_cache(INSTANCES_HELD)
def _unpacked(packed: bytes) -> Instance:
    """The instance of a task, the same object for all its tasks."""
    instance: Instance = loads(packed)
    return instance


def _each(function: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    return [function(item) for item in items]

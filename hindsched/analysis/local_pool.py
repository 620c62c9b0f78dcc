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
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from typing import Any, NamedTuple, Self

from hindsched.analysis import tasks as in_tasks
from hindsched.analysis.records import Record
from hindsched.analysis.tasks import Task, failed_record
from hindsched.analysis.trackers import start_trackers
from hindsched.instances.base import Instance
from hindsched.limits import ask, nobody_asked
from hindsched.solvers.interrupt import catch_interrupt, interruption, without_interrupts

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

Finished = Generator[tuple[Task, Record]]
Instances = Mapping[str, Instance]
RunTask = Callable[[Instance, Task], Record]


def run_locally(
    tasks: Sequence[Task], instances: Instances, workers: int, run: RunTask
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
    """
    suspects: list[Task] = []
    for task, record in _in_pools(tasks, instances, workers, run):
        if isinstance(record, str):
            suspects.append(task)
        else:
            yield task, record
    for task, record in _in_pools(suspects, instances, 1, run):
        yield task, record if isinstance(record, dict) else failed_record(task, record)


def _in_pools(
    tasks: Sequence[Task], instances: Instances, workers: int, run: RunTask
) -> Generator[tuple[Task, Record | str]]:
    """Run tasks in pools, a new one whenever one breaks; why, for tasks that ran when one did."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left = {task.key: task for task in tasks}
    deaths = 0
    while left:
        running: dict[Future[Record], Task] = {}
        try:
            for task, record in _in_pool(list(left.values()), instances, workers, run, running):
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


def _in_pool(
    tasks: Sequence[Task],
    instances: Instances,
    workers: int,
    run: RunTask,
    running: dict[Future[Record], Task],
) -> Finished:
    """Yield records as they finish; `BrokenProcessPool` if a worker dies, `running` says on what.

    A worker gets the instances once and then one task at a time: the pool's own queue of waiting
    tasks stays empty, because loky trips over that queue when it is told to kill its workers. For
    the same reason an interrupt only sets an event here, and is raised where the pool is at rest.
    """
    from joblib.externals.loky import ProcessPoolExecutor

    start_trackers()
    pool = ProcessPoolExecutor(
        max_workers=workers,
        initializer=prepare_worker,
        initargs=(instances, Parent.this()),
        env=ONE_THREAD,
    )
    waiting = iter(tasks)
    finished = False
    with catch_interrupt() as interrupted:
        try:
            while True:
                for task in islice(waiting, workers - len(running)):
                    with without_interrupts():  # workers that it starts inherit that
                        running[pool.submit(_in_worker, run, task)] = task
                if not running:
                    break
                done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:  # what is finished is kept, also after an interrupt
                    if interrupted.is_set() and future.exception() is not None:
                        continue  # the signal went to the workers too
                    record = future.result()
                    yield running.pop(future), record
                if interrupted.is_set():
                    raise interruption()
            finished = True
        finally:
            wait_until_taken(running)
            pool.shutdown(wait=True, kill_workers=not finished)


def wait_until_taken(futures: Iterable[Future[Any]]) -> None:
    """Wait until the pool's processes have taken what was handed to it, but not for ever."""
    end = time.monotonic() + TAKEN_SECONDS
    while not all(future.running() or future.done() for future in futures):
        if time.monotonic() > end:
            break
        time.sleep(POLL_SECONDS)


_instances_of_worker: Instances = {}
"""In a worker process: the instances that tasks name."""


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


def prepare_worker(instances: Instances, parent: Parent) -> None:
    """Keep the instances, leave Ctrl-C to the parent, and do not outlive it."""
    global _instances_of_worker
    _instances_of_worker = instances
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


def _in_worker(run: RunTask, task: Task) -> Record:
    return run(_instances_of_worker[task.instance], task)

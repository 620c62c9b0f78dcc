"""Running many tasks: local processes by default, a Dask cluster by address, or in this process.

Tasks are pure, so whatever dies is run again: a lost local worker breaks its pool, and the tasks
that were not finished are handed to a new one; the third time each runs alone, so that the one
that kills its worker is found and reported while all others finish.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from itertools import islice
from multiprocessing import resource_tracker

from hindsched.analysis.tasks import Record, Task, failed_record, run_task
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.solvers.interrupt import catch_interrupt

DEFAULT_WORKERS = 2
BROKEN_POOLS_ALLOWED = 2
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
QUIET = "ignore:resource_tracker:UserWarning"
"""A killed worker cannot give back Pyomo's semaphore; Python cleans up, but would say so."""
DASK_RETRIES = 2
DASK_TIMEOUT = "10s"
PARENT_CHECK_SECONDS = 1.0
POLL_SECONDS = 0.05
TAKEN_SECONDS = 5.0

Finished = Generator[tuple[Task, Record]]
Instances = Mapping[str, Instance]
RunTask = Callable[[Instance, Task], Record]


def run_tasks(
    tasks: Sequence[Task],
    instances: Sequence[Instance],
    *,
    workers: int = DEFAULT_WORKERS,
    dask: str | None = None,
    on_record: Callable[[Record], None] | None = None,
    stop_when_interrupted: bool = True,
) -> list[Record]:
    """Run tasks and return their records in the order of the tasks.

    Parameters
    ----------
    tasks : sequence of Task
        What to run.
    instances : sequence of Instance
        The instances that the tasks name.
    workers : int
        Local processes; 0 runs everything in this process.
    dask : str, optional
        Address of a Dask scheduler, in place of local processes.
    on_record : callable, optional
        Called in this process with each record as it comes in; a store keeps it.
    stop_when_interrupted : bool
        Whether Ctrl-C during a solve in this process, which ends with the interval it has, stops
        everything; otherwise its record is kept and the next task runs.

    Raises
    ------
    InputError
        If the number of workers is negative or there is no scheduler at the address.
    KeyboardInterrupt
        After Ctrl-C; records that came in before it were handed to `on_record`.
    """
    check_workers(workers)
    named = {instance.name: instance for instance in instances}
    if dask is not None:
        finished = _on_dask(tasks, named, dask)
    elif workers == 0:
        finished = _here(tasks, named)
    else:
        finished = _local(tasks, named, workers)
    records: dict[str, Record] = {}
    with closing(finished):
        for task, record in finished:
            if stop_when_interrupted and record.get("stopped_by") == "interrupted":
                raise KeyboardInterrupt
            records[task.key] = record
            if on_record is not None:
                on_record(record)
    return [records[task.key] for task in tasks]


def check_workers(workers: int) -> None:
    """Refuse a number of local processes that is negative."""
    if workers < 0:
        raise InputError("workers", workers, "must be at least 0")


def _here(tasks: Sequence[Task], instances: Instances) -> Finished:
    for task in tasks:
        yield task, run_task(instances[task.instance], task)


def _local(tasks: Sequence[Task], instances: Instances, workers: int) -> Finished:
    from joblib.externals.loky.process_executor import BrokenProcessPool

    missing = {task.key: task for task in tasks}
    for _ in range(BROKEN_POOLS_ALLOWED):
        try:
            for task, record in _in_pool(list(missing.values()), instances, workers):
                del missing[task.key]
                yield task, record
        except BrokenProcessPool:
            continue
        break
    for task in list(missing.values()):
        try:
            yield from _in_pool([task], instances, 1)
        except BrokenProcessPool as error:
            reason = str(error).split("\n", 1)[0]
            yield task, failed_record(task, f"the worker process died: {reason}")


def _in_pool(tasks: Sequence[Task], instances: Instances, workers: int) -> Finished:
    """Yield records as they finish; `BrokenProcessPool` if a worker dies.

    A worker gets the instances once and then one task at a time: the pool's own queue of waiting
    tasks stays empty, because loky trips over that queue when it is told to kill its workers. For
    the same reason Ctrl-C only sets an event here, and is raised where the pool is at rest.
    """
    from joblib.externals.loky import ProcessPoolExecutor

    _start_quiet_tracker()
    pool = ProcessPoolExecutor(
        max_workers=workers,
        initializer=_prepare_worker,
        initargs=(instances,),
        env=ONE_THREAD,
    )
    waiting = iter(tasks)
    running: dict[Future[Record], Task] = {}
    finished = False
    with catch_interrupt() as interrupted:
        try:
            while True:
                for task in islice(waiting, workers - len(running)):
                    running[pool.submit(_in_worker, run_task, task)] = task
                if not running:
                    break
                done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:  # what is finished is kept, also after Ctrl-C
                    yield running.pop(future), future.result()
                if interrupted.is_set():
                    raise KeyboardInterrupt
            finished = True
        finally:
            _wait_until_taken(running)
            pool.shutdown(wait=True, kill_workers=not finished)


def _start_quiet_tracker() -> None:
    """Start Python's tracker of shared resources, which the workers use too, with `QUIET`."""
    given = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = f"{given},{QUIET}" if given else QUIET
    try:
        resource_tracker.ensure_running()
    finally:
        if given is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = given


def _wait_until_taken(futures: Iterable[Future[Record]]) -> None:
    end = time.monotonic() + TAKEN_SECONDS
    while not all(future.running() or future.done() for future in futures):
        if time.monotonic() > end:
            break
        time.sleep(POLL_SECONDS)


def _on_dask(tasks: Sequence[Task], instances: Instances, address: str) -> Finished:
    try:
        from distributed import Client, as_completed
        from distributed.comm import resolve_address
    except ImportError:
        raise InputError("dask", address, "needs the extra hindsched[dask]") from None
    try:
        resolve_address(address)  # a client of a malformed one would complain again when it dies
        client = Client(address, timeout=DASK_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).split("\n", 1)[0] or "no answer"
        raise InputError("dask", address, f"must be a scheduler's address ({reason})") from None
    with client:
        futures = {}
        for task in tasks:
            future = client.submit(
                run_task, instances[task.instance], task, retries=DASK_RETRIES, pure=False
            )
            futures[future] = task
        try:
            for future in as_completed(futures, loop=client.loop):
                task = futures[future]
                if future.status == "finished":
                    yield task, future.result()
                else:
                    yield task, failed_record(task, f"lost on the cluster: {future.exception()}")
        finally:
            client.cancel(list(futures))


_instances_of_worker: Instances = {}
"""In a worker process: the instances that tasks name."""


def _prepare_worker(instances: Instances) -> None:
    """Keep the instances, leave Ctrl-C to the parent, and do not outlive it."""
    global _instances_of_worker
    _instances_of_worker = instances
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _in_worker(run: RunTask, task: Task) -> Record:
    return run(_instances_of_worker[task.instance], task)

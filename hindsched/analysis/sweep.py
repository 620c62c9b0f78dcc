"""Running many tasks: local processes by default, a Dask cluster by address, or in this process."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial

from hindsched.analysis.cluster import run_on_cluster
from hindsched.analysis.local_pool import LocalPool, RunTask, run_locally
from hindsched.analysis.records import Record
from hindsched.analysis.tasks import Task, run_task
from hindsched.compiler_clock import load_compiler
from hindsched.errors import InputError
from hindsched.instances.base import FAMILIES, Instance, family_module, has_module
from hindsched.online.registry import algorithms
from hindsched.solvers.door.interrupt import interruption

DEFAULT_WORKERS = 2


def run_tasks(
    tasks: Sequence[Task],
    instances: Sequence[Instance],
    *,
    workers: int = DEFAULT_WORKERS,
    dask: str | None = None,
    on_record: Callable[[Record], None] | None = None,
    stop_when_interrupted: bool = True,
    run_limit: float | None = None,
    pool: LocalPool | None = None,
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
    run_limit : float, optional
        Seconds of each run of an algorithm: one that overruns it fails.
    pool : LocalPool, optional
        Local processes that are there already; as many as `workers`.

    Raises
    ------
    InputError
        If the number of workers is negative, there is no scheduler at the address, or a worker of
        the cluster cannot run the tasks.
    SchedulerLost
        If the cluster's scheduler goes away; records that came in before were handed over.
    KeyboardInterrupt
        After Ctrl-C (`Terminated` after SIGTERM); records that came in before it were handed to
        `on_record`.
    """
    check_workers(workers)
    named = {instance.name: instance for instance in instances}
    run = run_task if run_limit is None else partial(run_task, run_limit=run_limit)
    if dask is not None:
        finished = run_on_cluster(tasks, named, dask, run)
    elif workers == 0:
        finished = _here(tasks, named, run)
    else:
        finished = run_locally(tasks, named, workers, run, pool)
    records: dict[str, Record] = {}
    with closing(finished):
        for task, record in finished:
            if stop_when_interrupted and record.get("stopped_by") == "interrupted":
                raise interruption()
            records[task.key] = record
            if on_record is not None:
                on_record(record)
    return [records[task.key] for task in tasks]


@contextmanager
def begun_pool(workers: int, family: str | None = None) -> Iterator[LocalPool | None]:
    """Local processes that load what tasks need while instances are read; None for no workers.

    Parameters
    ----------
    workers : int
        Number of processes.
    family : str, optional
        Whose tasks; all families' if None.
    """
    if workers <= 0:
        yield None
        return
    with LocalPool(
        workers, partial(load_modules, FAMILIES if family is None else (family,))
    ) as made:
        yield made


def load_modules(families: Sequence[str]) -> None:
    """Import what solves and runs of families need, in a worker: it takes a second and stays."""
    for family in families:
        algorithms(family)
        if has_module("solvers.families", family, "methods"):
            family_module("solvers.families", family, "methods")
    importlib.import_module("cvxpy")
    load_compiler()
    gc.freeze()  # no collection has to go through it ever again


def check_workers(workers: int) -> None:
    """Refuse a number of local processes that is negative."""
    if workers < 0:
        raise InputError("workers", workers, "must be at least 0")


def _here(
    tasks: Sequence[Task], instances: Mapping[str, Instance], run: RunTask
) -> Generator[tuple[Task, Record]]:
    for task in tasks:
        yield task, run(instances[task.instance], task)

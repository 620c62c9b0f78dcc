"""Many tasks side by side: in local processes, on a Dask cluster, or in this process.

The local pool is joblib's loky: unlike the pools that stand on multiprocessing it never runs the
caller's script a second time, and takes classes that a notebook defines. Every worker is an
executor of its own, so that it is known whose task died with it: that task is tried once more and
then has failed, and no other one notices. A Dask cluster tries some times by itself.
"""

from __future__ import annotations

import math
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from hindsched.analysis.tasks import OFFLINE, Record, Task, failed_record, run_task
from hindsched.errors import HindschedError, InputError
from hindsched.instances.base import Instance
from hindsched.solvers.door.result import versions
from hindsched.solvers.door.work import catch_interrupt, interruption, without_interrupts
from hindsched.solvers.parallel import end_with

DEFAULT_WORKERS = 2
POLL_SECONDS = 0.2
# What neither ends nor stops by itself loses its process after so many times its limit, and so many
# seconds more: a new process has to load and to compile first.
OVERRUN_SHARE, OVERRUN_SECONDS = 1.2, 30.0
CONNECT_SECONDS = 10
WORKER_SETTINGS = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore:resource_tracker:UserWarning",  # a killed worker tidies nothing up
}  # fmt: skip


class SchedulerLost(HindschedError):
    """The scheduler of a Dask cluster went away."""


@dataclass(frozen=True)
class Lost:
    """What is left of a call whose process died, or that did not end in time."""

    reason: str


def map_calls(
    function: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    *,
    workers: int = DEFAULT_WORKERS,
    dask: str | None = None,
    time_limit: float | None = None,
) -> Generator[tuple[int, Any]]:
    """Call a function on many arguments; each place and result, or `Lost`, as the calls end.

    `SchedulerLost` if the cluster's scheduler goes away; Ctrl-C (``Terminated`` on SIGTERM) ends it
    after the results that were there.
    """
    check_workers(workers)
    if dask is not None:
        return _on_cluster(function, arguments, dask)
    if workers == 0:
        return ((place, function(*given)) for place, given in enumerate(arguments))
    return _locally(function, arguments, workers, time_limit)


def run_tasks(
    tasks: Sequence[Task],
    instances: Sequence[Instance],
    *,
    workers: int = DEFAULT_WORKERS,
    dask: str | None = None,
    on_record: Callable[[Record], None] | None = None,
    stop_when_interrupted: bool = True,
    run_limit: float | None = None,
) -> list[Record]:
    """Run tasks and return their records in the order of the tasks; each goes to `on_record`."""
    named = {instance.name: instance for instance in instances}
    arguments = [(named[task.instance], task, run_limit) for task in tasks]
    limit = None if run_limit is None else max([run_limit, *map(_longest_solve, tasks)])
    records: dict[str, Record] = {}
    calls = map_calls(run_task, arguments, workers=workers, dask=dask, time_limit=limit)
    with closing(calls) as finished:
        for place, outcome in finished:
            task, record = tasks[place], outcome
            if isinstance(outcome, Lost):
                record = failed_record(task, named[task.instance], outcome.reason)
            if stop_when_interrupted and record.get("stopped_by") == "interrupted":
                raise interruption()
            records[task.key] = record
            if on_record is not None:
                on_record(record)
    return [records[task.key] for task in tasks]


def _longest_solve(task: Task) -> float:
    """Seconds of an offline task, and as many again to begin and end; infinite without a limit."""
    seconds = task.settings.get("time_limit") if task.kind == OFFLINE else 0.0
    return 2.0 * seconds if isinstance(seconds, int | float) else math.inf


def check_workers(workers: int) -> None:
    """Refuse a number of local processes that is negative."""
    if workers < 0:
        raise InputError("workers", workers, "must be at least 0")


def _begin_worker(alive: Connection) -> None:
    """Begin as a worker: leave Ctrl-C to the parent, and end when its end of the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":  # there a worker ends with the call that it is at
        end_with(alive.fileno())


def _locally(
    function: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    workers: int,
    time_limit: float | None,
) -> Generator[tuple[int, Any]]:
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    most = math.inf if time_limit is None else OVERRUN_SHARE * time_limit + OVERRUN_SECONDS
    waiting, died = deque(range(len(arguments))), set[int]()
    idle: list[ProcessPoolExecutor] = []
    running: dict[Future[Any], tuple[ProcessPoolExecutor, int, float]] = {}
    ended: list[tuple[int, Any]] = []

    def new_executor() -> ProcessPoolExecutor:
        alive, _ = map(pipes.enter_context, Pipe(duplex=False))  # open as long as this process is
        begin: Any = {"initializer": _begin_worker, "initargs": (alive,), "env": WORKER_SETTINGS}
        return ProcessPoolExecutor(1, **begin)

    with ExitStack() as pipes, catch_interrupt() as interrupted:
        try:
            while waiting or running or ended:
                while waiting and len(running) < workers:
                    place = waiting.popleft()
                    executor = idle.pop() if idle else new_executor()
                    with without_interrupts():  # the process that this may start inherits it
                        future = executor.submit(function, *arguments[place])
                    running[future] = executor, place, time.monotonic()
                yield from ended
                ended = []
                done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future, (executor, place, began) in list(running.items()):
                    if future not in done and time.monotonic() - began <= most:
                        continue
                    del running[future]
                    try:
                        ended.append((place, future.result(timeout=0)))
                        idle.append(executor)
                        continue
                    except TimeoutError:
                        ended.append((place, Lost("time limit: neither finished nor stopped")))
                    except BrokenProcessPool:
                        if place in died:
                            ended.append((place, Lost("the worker process died, twice")))
                        else:
                            waiting.append(place)
                            died.add(place)
                    executor.shutdown(kill_workers=True)
                if interrupted.is_set():
                    yield from ended
                    raise interruption()
        finally:
            for executor in idle:
                executor.shutdown()
            for executor, *_ in running.values():
                executor.shutdown(kill_workers=True)


def connect(address: str) -> Any:
    """A client of the Dask scheduler at an address; `InputError` if it cannot do the work."""
    try:
        from distributed import Client
        from distributed.comm import resolve_address
    except ImportError:
        raise InputError("dask", address, 'needs the extra: pip install ".[dask]"') from None
    try:
        resolve_address(address)  # a client of a malformed one complains again when it dies
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).split("\n", 1)[0] or "no answer"
        raise InputError("dask", address, f"must be a scheduler's address ({reason})") from None
    with suppress(OSError):
        version = versions()["hindsched"]
        for worker, installed in client.run(versions, on_error="return").items():
            if isinstance(installed, BaseException) or installed["hindsched"] != version:
                client.close()
                is_dict = isinstance(installed, dict)
                shown = installed if is_dict else f"without hindsched ({installed})"
                raise InputError(f"dask worker {worker}", shown, f"must run hindsched {version}")
        if not client.scheduler_info()["workers"]:
            sys.stderr.write(f"waiting: {address} has no worker yet: dask worker {address}\n")
    return client


def _on_cluster(
    function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], address: str
) -> Generator[tuple[int, Any]]:
    from distributed import KilledWorker, as_completed

    client = connect(address)
    places = {client.submit(function, *given, pure=False): place
              for place, given in enumerate(arguments)}  # fmt: skip
    try:
        for future in as_completed(list(places), loop=client.loop):
            place = places.pop(future)
            if future.status == "cancelled":  # as all are once the scheduler is gone
                raise SchedulerLost(f"the Dask scheduler at {address} is lost")
            error = future.exception() if future.status == "error" else None
            if error is None:
                yield place, future.result()
            elif isinstance(error, KilledWorker):  # which the cluster has tried some times
                yield place, Lost(f"lost on the cluster: {error}")
            else:
                raise error
    except OSError as error:
        raise SchedulerLost(f"the Dask scheduler at {address} is lost ({error})") from None
    finally:
        with suppress(Exception):
            client.cancel(list(places))
        client.close(timeout=2)

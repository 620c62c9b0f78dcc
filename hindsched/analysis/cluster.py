"""Running tasks on a Dask cluster: what is wrong with it is said while it can still be mended.

A cluster without workers is waited for, aloud. A worker without the package, or with another
version of it, is refused before it gets a task. A scheduler that goes away ends the run in one
line; records that came in before are kept.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hindsched.analysis.records import Record
from hindsched.analysis.tasks import Task, failed_record
from hindsched.errors import HindschedError, InputError
from hindsched.instances.base import Instance
from hindsched.solvers.door.versions import versions

RETRIES = 2
TIMEOUT = "10s"
POLL_SECONDS = 1.0
FIRST_NOTE_SECONDS, NOTE_EVERY_SECONDS = 3.0, 30.0
LOST_SECONDS = 4.0
FETCH_SECONDS = 4.0
"""How long a result that is there may travel before it counts as lost; doubled each time."""
LOSSES = 3
"""Results of a task that may be lost with their workers before it runs alone, and then fails."""
LOGGERS = ("distributed", "tornado", "asyncio")

Say = Callable[[str], None]


class SchedulerLost(HindschedError, RuntimeError):
    """The scheduler of a Dask cluster went away in the middle of a run."""


def run_on_cluster(
    tasks: Sequence[Task],
    instances: Mapping[str, Instance],
    address: str,
    run: Callable[[Instance, Task], Record],
    say: Say | None = None,
) -> Generator[tuple[Task, Record]]:
    """Run tasks on a Dask cluster and yield each with its record as they finish.

    Parameters
    ----------
    tasks : sequence of Task
        What to run.
    instances : mapping
        Instances by name.
    address : str
        Address of the scheduler, ``tcp://host:port`` or ``host:port``.
    run : callable
        Runs one task on its instance.
    say : callable, optional
        Takes the lines that are said while waiting; standard error if None.

    Raises
    ------
    InputError
        If there is no scheduler at the address, or a worker cannot run the tasks.
    SchedulerLost
        If the scheduler goes away.
    """
    say = say or say_line
    with without_tracebacks():
        client = connect(address)
        try:
            watch = Watch(client, address, say)
            watch.look()

            def submit(task: Task) -> Any:
                return client.submit(
                    run, instances[task.instance], task, retries=RETRIES, pure=False
                )

            futures = {submit(task): task for task in tasks}
            suspects: list[Task] = []
            try:
                yield from _finished(futures, submit, watch, suspects)
                for task in suspects:  # each alone: who dies now is who kills workers
                    futures[submit(task)] = task
                    yield from _finished(futures, submit, watch)
            finally:
                if client.status == "running":
                    client.cancel(list(futures))
        finally:
            client.close(timeout=2)


def _finished(
    futures: dict[Any, Task],
    submit: Callable[[Task], Any],
    watch: Watch,
    suspects: list[Task] | None = None,
) -> Generator[tuple[Task, Record]]:
    """Tasks that ended; those that workers died with go to `suspects` if given.

    Dask blames all that a dead worker had. Tasks whose results died with it before they were
    fetched are submitted again, at most `LOSSES` times in company and then alone.
    """
    from distributed import KilledWorker

    losses: Counter[str] = Counter()
    while futures:
        done = [future for future in futures if future.status != "pending"]
        for future in done:
            task = futures[future]
            found = _fetched(future, watch, FETCH_SECONDS * 2 ** losses[task.key])
            del futures[future]
            if isinstance(found, dict):
                yield task, found
                continue
            losses[task.key] += found is None
            if found is None and losses[task.key] < LOSSES:
                futures[submit(task)] = task
            elif suspects is not None and (found is None or isinstance(found, KilledWorker)):
                suspects.append(task)
            else:
                why = found or f"its result went {LOSSES} times in a row with its worker"
                yield task, failed_record(task, f"lost on the cluster: {why}")
        watch.look()
        if not done:
            time.sleep(POLL_SECONDS / 10)


def _fetched(future: Any, watch: Watch, patience: float) -> Record | Exception | None:
    """The record or the error of a task that ended; None if it is lost with its worker."""
    try:
        found: Record | Exception | None = None
        if future.status == "finished":
            found = future.result(timeout=patience)
        elif future.status == "error":
            found = future.exception(timeout=patience)
    except (OSError, TimeoutError):
        found = None
    except Exception as error:
        found = error
    if future.status == "cancelled":  # so are all futures of a scheduler that is gone
        raise watch.lost()
    return found


class Watch:
    """An eye on the scheduler and its workers while a client waits."""

    def __init__(self, client: Any, address: str, say: Say) -> None:
        self._client, self._address, self._say = client, address, say
        self._checked: set[str] = set()
        self._alone_since: float | None = None
        self._gone_since: float | None = None
        self._next_note = FIRST_NOTE_SECONDS
        self._next_look = 0.0

    def look(self) -> None:
        """Say what is missing; raise if it cannot be mended by waiting."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + POLL_SECONDS
        if self._client.status != "running" or not self._is_there():
            self._gone_since = self._gone_since or now
            if now - self._gone_since >= LOST_SECONDS:
                raise self.lost()
            return
        self._gone_since = None
        workers = set(self._client.scheduler_info(n_workers=-1)["workers"])
        if workers:
            self._alone_since, self._next_note = None, FIRST_NOTE_SECONDS
            self._check(sorted(workers - self._checked))
            return
        self._alone_since = self._alone_since or now
        if now - self._alone_since >= self._next_note:
            self._next_note += NOTE_EVERY_SECONDS
            self._say(
                f"waiting: the scheduler at {self._address} has no worker; start one where"
                f" hindsched {versions()['hindsched']} is installed: dask worker {self._address}"
            )

    def lost(self) -> SchedulerLost:
        """What to raise when the scheduler is gone."""
        return SchedulerLost(f"the Dask scheduler at {self._address} is lost")

    def _is_there(self) -> bool:
        try:
            self._client.sync(self._client.scheduler.identity, callback_timeout=LOST_SECONDS)
        except (OSError, TimeoutError, RuntimeError):
            return False
        return True

    def _check(self, workers: list[str]) -> None:
        """Refuse workers that do not have this version of the package."""
        if not workers:
            return
        found = self._client.run(_version_question(), workers=workers, on_error="return")
        mine = versions()["hindsched"], ".".join(map(str, sys.version_info[:2]))
        for worker, answer in found.items():
            if isinstance(answer, BaseException):
                continue  # it left while it was asked
            if answer[0] is None:
                rule = f"must have the package: install hindsched {mine[0]} in its environment"
                raise InputError(f"dask worker {worker}", "without hindsched", rule)
            if tuple(answer) != mine:
                found_text = f"hindsched {answer[0]}, Python {answer[1]}"
                rule = f"must run hindsched {mine[0]} and Python {mine[1]} as this process does"
                raise InputError(f"dask worker {worker}", found_text, rule)
            self._checked.add(worker)


def _version_question() -> Callable[[], tuple[str | None, str]]:
    """A function that travels by value, so that a worker without the package can answer it."""

    def version() -> tuple[str | None, str]:
        import importlib.metadata
        import importlib.util
        import sys

        python = ".".join(map(str, sys.version_info[:2]))
        if importlib.util.find_spec("hindsched") is None:
            return None, python
        return importlib.metadata.version("hindsched"), python

    version.__module__ = "__main__"
    return version


def check_address(address: str) -> None:
    """`InputError` for what can be no scheduler's address, or where Dask is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise InputError("dask", address, "needs the extra hindsched[dask]")
    kind, separator, _ = address.partition("://")
    if separator and kind != "tcp":
        raise InputError("dask", address, "must be tcp://HOST:PORT: no other kind is supported")
    from distributed.comm import resolve_address

    with _addressing(address):
        resolve_address(address)  # a client of a malformed one would complain again when it dies


def connect(address: str) -> Any:
    """A client of the scheduler at an address; `InputError` if there is none."""
    check_address(address)
    from distributed import Client

    with _addressing(address):
        return Client(address, timeout=TIMEOUT, set_as_default=False)


@contextmanager
def _addressing(address: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).split("\n", 1)[0] or "no answer"
        raise InputError("dask", address, f"must be a scheduler's address ({reason})") from None


def say_line(line: str) -> None:
    """Say a line on standard error at once."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@contextmanager
def without_tracebacks() -> Iterator[None]:
    """Silence what Dask logs from its threads: what matters is raised or said in one line."""
    if importlib.util.find_spec("distributed") is not None:
        importlib.import_module("distributed")  # which gives levels of their own to what is below
    known = {*LOGGERS, *logging.root.manager.loggerDict}
    names = [name for name in known if name.split(".")[0] in LOGGERS]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)

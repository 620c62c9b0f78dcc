"""Parts of a solve side by side: processes forked from this one, which tell what they find.

The searches hold the interpreter's lock for half of their time, so threads would gain little; a
forked process begins with everything that its parent has built. A member tells of every better
solution and certificate at once, so it may be killed at any moment without loss, and is killed when
the block ends. Where processes cannot be forked safely (other systems than Linux) a solve uses one
core.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Event
from types import TracebackType
from typing import Any, Self

from hindsched.instances.base import Instance
from hindsched.limits import ROOM_FOR_A_THREAD
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.work import is_counted

LISTEN_SECONDS = 0.1
"""How often a member looks for messages."""
WAIT_SECONDS = 0.05
"""How often whoever waits for members looks for an interrupt."""
DIES_WITH_PARENT = 1
"""``PR_SET_PDEATHSIG`` of Linux."""
Part = Callable[["Member"], None]
"""What a member does; it sees what its parent had when it began."""


@dataclass(frozen=True)
class JobUpdates:
    """What a member found.

    Parameters
    ----------
    objective : float, optional
        Objective of the schedules.
    schedules : object, optional
        Of a feasible solution: rows by job, or what the team's `build` makes one of.
    certificate : Certificate, optional
        A bound.
    bound : float, optional
        A better bound by the word of a solver.
    details : mapping, optional
        Facts for the result.
    lessons : sequence
        What it has learned about the instance since it told last.
    error : str, optional
        What ended the member before its time.
    """

    objective: float | None = None
    schedules: Any = None
    certificate: Certificate | None = None
    bound: float | None = None
    details: Mapping[str, object] | None = None
    lessons: Sequence[object] = ()
    error: str | None = None


class Member:
    """A member's end of the line.

    Parameters
    ----------
    number : int
        1, 2, ...; the parent is 0.
    line : Connection
        To the parent.
    """

    def __init__(self, number: int, line: Connection) -> None:
        self.number = number
        self._line = line
        self._told: float | None = None
        self._read = True
        self._waiting: list[tuple[Any, Any]] = []
        self._next = 0.0

    def tell(self, solution: Solution) -> None:
        """Tell of a solution, unless one of its objective was told last."""
        objective = solution.objective()
        if objective != self._told:
            self._told = objective
            self.say(JobUpdates(objective, solution.assignments()))

    def say(self, news: JobUpdates) -> None:
        """Tell the parent."""
        self._line.send(news)

    def heard(self) -> list[tuple[Any, Any]]:
        """What the parent has said since the last call: news and the best schedules.

        Only the next call tells the parent that these were read, and only the first that somebody
        listens, so that its messages never wait for room in the pipe.
        """
        if self._read:
            self._line.send(None)
            self._read = False
        self.take_in()
        messages, self._waiting = self._waiting, []
        return messages

    def take_in(self) -> None:
        """Keep what has come for `heard`: the parent waits as long as nobody reads it."""
        while self._line.poll():
            self._waiting.append(self._line.recv())
            self._read = True

    def time_to_listen(self) -> bool:
        """Whether to look for messages again."""
        now = time.perf_counter()
        if now < self._next:
            return False
        self._next = now + LISTEN_SECONDS
        return True


class Team:
    """The members, and the best of what they found; the best solution and bound are shared.

    Parameters
    ----------
    instance, formulation
        What is solved.
    gap : float
        Relative gap at which it counts as solved.
    parts : sequence of callable
        What each member does.
    closed : Event
        Set once the best solution and the best bound known here meet.
    build : callable, optional
        Makes a solution of what members tell; by default of rows by job.
    lessons : list, optional
        Where what members learn is put.
    """

    def __init__(
        self,
        instance: Instance,
        formulation: str,
        gap: float,
        parts: Sequence[Part],
        closed: Event,
        build: Callable[[Any], Solution] | None = None,
        lessons: list[object] | None = None,
    ) -> None:
        self.instance, self.formulation, self.gap = instance, formulation, gap
        self.closed = closed
        self.objective: float | None = None
        self.bound: float | None = None
        self.certificate: Certificate | None = None
        self.details: dict[str, object] = {}
        self.lessons = [] if lessons is None else lessons
        self.errors: list[str] = []
        self._sign = 1.0 if instance.sense == "max" else -1.0
        self._schedules: Any = None
        self._build = build or self._of_rows
        self._solution: Solution | None = None
        self._lock = threading.Lock()
        self._parts = parts
        self._processes: list[Any] = []
        self._free: list[bool] = []
        self._last: list[tuple[int, float | None]] = []
        self.size = 1
        self._lines: list[Connection] = []
        self._listeners: list[threading.Thread] = []

    def __enter__(self) -> Self:
        try:
            for number, part in enumerate(self._parts, 1):
                self._fork(number, part)
            self.size += len(self._lines)
            for number, line in enumerate(
                self._lines
            ):  # after the last fork: no lock is held in a member for ever
                bytes(ROOM_FOR_A_THREAD)  # without it a thread would be waited for without end
                listener = threading.Thread(
                    target=self._listen, args=(number, line), daemon=True, name="team"
                )
                listener.start()
                self._listeners.append(listener)
        except (OSError, MemoryError, RuntimeError) as error:  # no room for one more: fewer do it
            self.errors.append(f"not begun: {error}")
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def _fork(self, number: int, part: Part) -> None:
        fork = multiprocessing.get_context("fork")
        mine, theirs = fork.Pipe()
        process = fork.Process(
            target=_work,
            args=(part, number, theirs, os.getpid()),
            daemon=True,
            name=f"part {number}",
        )
        process.start()
        theirs.close()
        self._processes.append(process)
        self._lines.append(mine)
        self._free.append(False)
        self._last.append((0, None))

    def end(self) -> None:
        """End all members: what they found was told before."""
        for process in self._processes:
            process.kill()
        for ending in (*self._processes, *self._listeners):
            ending.join()
        for line in self._lines:
            line.close()
        self._processes, self._lines, self._listeners = [], [], []

    def _listen(self, number: int, line: Connection) -> None:
        """Take what a member says until it ends (in a thread of its own)."""
        with suppress(EOFError, OSError):
            while True:
                news = line.recv()
                if news is None:
                    self._free[number] = True
                else:
                    self.take(news)

    def take(self, news: JobUpdates) -> None:
        """Take in what somebody found."""
        with self._lock:
            if news.schedules is not None and self._beats(news.objective):
                self.objective, self._schedules = news.objective, news.schedules
                self._solution = None
            if news.certificate is not None:
                if news.certificate.is_better_than(self.certificate):
                    self.certificate = news.certificate
                self._note(news.certificate.bound)
            if news.bound is not None:
                self._note(news.bound)
            self.details.update(news.details or {})
            self.lessons += news.lessons
            if news.error is not None:
                self.errors.append(news.error)
            self._compare()

    def note_bound(self, bound: float | None) -> None:
        """Take in a bound that has no certificate."""
        with self._lock:
            if bound is not None:
                self._note(bound)
                self._compare()

    def offer(self, solution: Solution | None, schedules: object = None) -> None:
        """Take in a checked solution."""
        if solution is None:
            return
        objective = solution.objective()
        with self._lock:
            if self._beats(objective):
                self.objective = objective
                self._schedules = solution.assignments() if schedules is None else schedules
                self._solution = solution
                self._compare()

    def solution(self) -> Solution | None:
        """The best solution told, checked; None where nobody told one."""
        with self._lock:
            if self._solution is None and self._schedules is not None:
                found = self._build(self._schedules)
                if broken := found.violations():
                    self.errors.append(f"a solution breaks {broken[0]}")
                    self._schedules = self.objective = None
                    return None
                self._solution = found
            return self._solution

    def exchange(self, news: object) -> None:
        """Tell news, as prices, and the best schedules to the members that listen for more."""
        now = (id(news), self.objective)
        for number, line in enumerate(self._lines):
            if self._free[number] and self._last[number] != now:
                self._free[number], self._last[number] = False, now
                with suppress(OSError):  # one that has ended
                    line.send((news, self._schedules))

    def _of_rows(self, rows: Any) -> Solution:
        return build_solution(self.instance, rows, self.formulation)

    def wait(self, seconds_left: Callable[[], float]) -> None:
        """Wait until all have ended, the gap is closed, the time is over or Ctrl-C comes."""
        while self.is_running and not self.closed.is_set() and seconds_left() > 0:
            time.sleep(WAIT_SECONDS)

    @property
    def is_running(self) -> bool:
        """Whether somebody may still find something."""
        return any(listener.is_alive() for listener in self._listeners)

    def _beats(self, objective: float | None) -> bool:
        if objective is None or self.objective is None:
            return objective is not None
        return self._sign * (objective - self.objective) > 0

    def _note(self, bound: float) -> None:
        if self.bound is None or self._sign * (bound - self.bound) < 0:
            self.bound = bound

    def _compare(self) -> None:
        if within_gap(self.objective, self.bound, self.gap):
            self.closed.set()


def threads_of(options: SolveOptions) -> int:
    """Cores that the parts of a solve may use.

    By default all, or as many as ``HINDSCHED_THREADS`` says; one in a worker process, whose
    siblings use the others, where work is counted, and where no process can be forked.
    """
    process = multiprocessing.current_process()
    if is_counted() or sys.platform != "linux" or process.daemon:
        return 1
    if options.threads is not None:
        return options.threads
    if multiprocessing.parent_process() is not None:
        return 1
    asked = os.environ.get("HINDSCHED_THREADS", "")
    return max(1, int(asked)) if asked.isdecimal() else len(os.sched_getaffinity(0))


def _work(part: Part, number: int, line: Connection, parent: int) -> None:
    """Do a part in a process of its own, and say what went wrong."""
    ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    member = Member(number, line)
    try:
        part(member)
    except Exception as error:
        with suppress(OSError):
            member.say(JobUpdates(error=f"{type(error).__name__}: {error}"))

"""A scheduler in another process, in any language: JSON lines on its standard input and output.

It sees the messages of the protocol and nothing else, so nothing of the future.
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from reprlib import repr as shortened
from typing import IO, Any

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import JobRecord
from hindsched.json_types import JsonObject
from hindsched.limits import check_time, time_left
from hindsched.online.process_tree import Mark
from hindsched.online.protocol import (
    Capabilities,
    Decision,
    Environment,
    JobUpdates,
    OnlineAlgorithm,
)

PROTOCOL = 1  # version of the messages; a scheduler answers ``hello`` with the one that it speaks
DEFAULT_SECONDS = 60.0
LONGEST_ANSWER = 64_000_000  # characters of one answer; a longer line is refused
KEPT_LINES = 20
MOST_UNREAD = 4  # lines that nobody asked for; a program that writes more is not read any further
SECONDS_TO_END = 2.0
SECONDS_BETWEEN_LOOKS = 0.5
ANSWER_KEYS = {"type", "slot", "assignments", "admitted", "rejected", "wake"}


class External(OnlineAlgorithm):
    """Asks a program for its decisions.

    Parameters
    ----------
    command : sequence of str or str
        The program and its arguments; a text is split as a shell would, but no shell runs it.
    timeout : float
        Seconds within which each message must be answered.
    randomised : bool
        Whether the seed can change its decisions; comparisons then run it once a seed.
    knows_durations : bool
        Whether it is told how long jobs run, in families whose jobs do not say it by themselves.
    longest_answer : int
        Most characters of one answer.

    Raises
    ------
    InputError
        For an empty command or a timeout that is not positive.
    SolveFailed
        From `start` and `step`: if the program cannot be started, does not answer in time, ends
        early or writes what is no answer. The message names the step and the last line that the
        program wrote on its standard error.

    Examples
    --------
    >>> import hindsched as hs
    >>> mine = hs.External(["python", "my_scheduler.py"], timeout=5)
    >>> mine.command
    ['python', 'my_scheduler.py']
    """

    def __init__(
        self,
        command: Sequence[str] | str,
        timeout: float = DEFAULT_SECONDS,
        randomised: bool = False,
        knows_durations: bool = True,
        longest_answer: int = LONGEST_ANSWER,
    ) -> None:
        self.command = shlex.split(command) if isinstance(command, str) else list(command)
        if not self.command or not all(isinstance(word, str) for word in self.command):
            raise InputError("command", command, "must be a program and its arguments")
        if not timeout > 0:
            raise InputError("set.timeout", timeout, "must be positive")
        self.timeout = timeout
        self.longest_answer = longest_answer
        self.called = f"scheduler {shlex.join(self.command)}"
        self.randomised = randomised  # type: ignore[misc]
        self.card = Capabilities(knows_durations=knows_durations)  # type: ignore[misc]
        self._talk: Conversation | None = None

    def __repr__(self) -> str:
        return f"exec:{shlex.join(self.command)}"

    def start(self, environment: Environment) -> None:
        """Start the program, agree on the protocol and tell it the environment."""
        self.close()
        self._talk = self.launch()
        hello = {"type": "hello", "protocol": PROTOCOL, "family": environment.cluster.family}
        answer = self._talk.ask(hello, "hello", "hello")
        if answer.get("protocol") != PROTOCOL:
            spoken = answer.get("protocol")
            raise self._talk.failed("hello", f"speaks protocol {shortened(spoken)}, not {PROTOCOL}")
        told = {
            "type": "start",
            "cluster": environment.cluster.to_dict(),
            "estimates": environment.estimates,
            "seed": environment.seed,
            "formulation": environment.formulation,
        }
        self._talk.ask(told, "start", "ready")
        self._last: dict[str, int] = {}
        self._completed: tuple[str, ...] = ()
        self._news: JobUpdates = {}
        self._wake: int | None = None

    def launch(self) -> Conversation:
        """Start the program."""
        return Conversation(self.command, self.called, self.timeout, self.longest_answer)

    def completed(self, slot: int, jobs: tuple[str, ...]) -> None:
        """Keep it for the next message."""
        self._completed = jobs

    def told(self, slot: int, news: JobUpdates) -> None:
        """Keep it for the next message."""
        self._news = news

    def wake_up(self) -> int | None:
        """The slot that the last answer asked for."""
        return self._wake

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Send a slot's arrivals and events; read the decision."""
        assert self._talk is not None, "start comes first"
        ended = sorted(job for job, last in self._last.items() if last < slot)
        for job in ended:
            del self._last[job]
        message = {
            "type": "step",
            "slot": slot,
            "arrivals": [job.model_dump(mode="json", exclude_none=True) for job in arrivals],
            "events": [
                *({"type": "job-completed", "job": job} for job in self._completed),
                *({"type": "rows-ended", "job": job} for job in ended),
                *({"type": "job-news", "job": job, **facts} for job, facts in self._news.items()),
            ],
        }
        self._completed, self._news = (), {}
        when = f"slot {slot}"
        answer = self._talk.ask(message, when, "decision")
        if unknown := sorted(set(answer) - ANSWER_KEYS):
            raise self._talk.failed(when, f"answered with the unknown key {unknown[0]!r}")
        if answer.get("slot", slot) != slot:
            raise self._talk.failed(when, f"answered for slot {shortened(answer['slot'])}")
        self._wake = answer.get("wake")
        assignments = answer.get("assignments", {})
        if isinstance(assignments, Mapping):
            self._note_ends(assignments)
        return Decision(assignments, answer.get("admitted", ()), answer.get("rejected", ()))

    def _note_ends(self, assignments: Mapping[str, object]) -> None:
        for job, rows in assignments.items():
            if not isinstance(rows, list):
                continue  # refused as anyone else's
            ends = [row.get("to") for row in rows if isinstance(row, dict)]
            known = [end for end in ends if isinstance(end, int)]
            if known:
                self._last[job] = max(self._last.get(job, 0), *known)

    def close(self) -> None:
        """End the program."""
        if self._talk is not None:
            self._talk.end()
            self._talk = None


class Conversation:
    """A running program, what it answers and the last lines that it complained in."""

    def __init__(self, command: Sequence[str], called: str, timeout: float, longest: int) -> None:
        self.called, self.timeout, self.longest = called, timeout, longest
        self.killed_for = ""  # why a watch has killed it, told in place of what came of that
        self._mark = Mark()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                bufsize=1,
                env=self._mark.environment(),
                start_new_session=True,  # Ctrl-C reaches us alone, and we end its children with it
            )
        except OSError as error:
            raise SolveFailed(f"{called}: cannot be started: {error.strerror}") from None
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._complaints: deque[str] = deque(maxlen=KEPT_LINES)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        out, err = self._process.stdout, self._process.stderr
        self._readers = [
            threading.Thread(target=self._read_answers, args=(out,), daemon=True),
            threading.Thread(target=self._read_complaints, args=(err,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_answers(self, stream: IO[str]) -> None:
        while self._answers.qsize() < MOST_UNREAD and (line := stream.readline(self.longest + 1)):
            self._answers.put(line)
        self._answers.put(None)

    def _read_complaints(self, stream: IO[str]) -> None:
        while line := stream.readline(1000):
            if line.strip():
                self._complaints.append(line.strip())

    def ask(self, message: Mapping[str, object], when: str, kind: str) -> dict[str, Any]:
        """Send a message and return the answer of the kind that must follow."""
        if self._answers.queue and self._answers.queue[0] is not None:
            raise self.failed(when, "wrote a line before it was asked")
        ends = time.monotonic() + time_left(self.timeout)
        self._send(message, when, ends)
        line = self._next_line(when, ends)
        if line is None:
            code = self._wait()
            ended = "closed its output" if code is None else f"ended with exit code {code}"
            raise self.failed(when, f"{ended} before it answered")
        if len(line) > self.longest:
            raise self.failed(when, f"answered with more than {self.longest} characters")
        try:
            answer = json.loads(line, object_pairs_hook=_without_doubles, parse_constant=_no_number)
        except _Twice as key:
            raise self.failed(when, f"answered with the key {shortened(str(key))} twice") from None
        except (ValueError, RecursionError):
            raise self.failed(when, f"answered {line.strip()[:60]!r}, which is no JSON") from None
        if not isinstance(answer, dict) or answer.get("type") != kind:
            found = answer.get("type") if isinstance(answer, dict) else answer
            raise self.failed(when, f"answered with {shortened(found)}, not {kind!r}")
        return answer

    def _next_line(self, when: str, ends: float) -> str | None:
        """The next line; None once the program has ended, though a child may hold its output."""
        while (left := ends - time.monotonic()) > 0:
            with suppress(queue.Empty):
                return self._answers.get(timeout=min(left, SECONDS_BETWEEN_LOOKS))
            if self._process.poll() is not None:
                with suppress(queue.Empty):  # what it wrote last may still be on its way
                    return self._answers.get(timeout=SECONDS_TO_END)
                return None
        check_time()
        raise self.failed(when, f"gave no answer within {self.timeout:g} s")

    def _send(self, message: Mapping[str, object], when: str, ends: float) -> None:
        """Write, under a watch: a program that does not read would block us for ever."""
        assert self._process.stdin is not None
        late = f"did not read the message within {self.timeout:g} s"
        watch = threading.Timer(max(0.0, ends - time.monotonic()), self.kill, (late,))
        watch.start()
        try:
            self._process.stdin.write(json.dumps(message, separators=(",", ":"), allow_nan=False))
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except OSError:
            check_time()
            code = self._wait()
            ended = "closed its input" if code is None else f"ended with exit code {code}"
            raise self.failed(when, ended) from None
        finally:
            watch.cancel()

    def failed(self, when: str, what: str) -> SolveFailed:
        """The error of one line, and the end of the program."""
        self.end()
        said = f"; it wrote: {self._complaints[-1]}" if self._complaints else ""
        return SolveFailed(f"{self.called}: {when}: {self.killed_for or what}{said}")

    @property
    def process_id(self) -> int:
        """Of the program."""
        return self._process.pid

    def kill(self, reason: str = "") -> None:
        """Kill the program's session, as a watch from outside does; whoever asks next is told."""
        self.killed_for = self.killed_for or reason
        self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        self._mark.kill_all()

    def _wait(self) -> int | None:
        try:
            return self._process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Close its input, give it a moment, then end it and what it has started."""
        process = self._process
        try:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(0.2)
        except (OSError, subprocess.TimeoutExpired):
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS_TO_END)
        finally:  # also where a time limit ends the waiting
            self.kill()
        process.wait()
        for reader in self._readers:
            reader.join(SECONDS_TO_END)

    def _signal(self, number: int) -> None:
        """Signal the program's whole session, where the system has such."""
        with suppress(OSError):  # it has ended
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, number)
            else:
                self._process.terminate()


def _no_number(word: str) -> None:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(word)


class _Twice(ValueError):
    """A key that stands twice in an object: which value counts nobody can know."""


def _without_doubles(pairs: list[tuple[str, Any]]) -> JsonObject:
    found: JsonObject = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(key)
        found[key] = value
    return found

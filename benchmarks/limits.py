"""Whether limits of time and memory hold, on valid files that ask for more than anybody has.

    python benchmarks/limits.py [--seconds 2] [--cpu] [COMMAND ...]
    python benchmarks/limits.py --memory 1G [COMMAND ...]

Every command runs as a process of its own on small instances in which one number is enormous;
`verify` and `explain` on a schedule and prices of the instance before it was changed, `audit` on
logs. The page's promise is 1.2 times the limit and 2 s from the start of the process, whatever it
loads; `ratio` has the limit for its solve and for its run. Kernels are compiled before. Run it on a
machine that does nothing else; on another one `--cpu` lets limits and seconds be the processor's.

With `--memory` the limit is that instead, with `MEMORY_SECONDS` so that it ends; late is then who
held more than 1.2 times the limit. Its table is the same on any machine.
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
from hindsched.instances.base import Instance
from hindsched.instances.io import write_json
from hindsched.memory import in_words, parse_bytes

PAGE = Path(__file__).parents[1] / "docs/reference/faults.md"
MARK = "<!-- limits: made by benchmarks/limits.py -->"
MEMORY_MARK = "<!-- memory: made by benchmarks/limits.py --memory -->"
MEMORY_SECONDS = 10.0
"""Time limit of the runs with a limit of memory, long enough to build what it does not hold."""
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
LOGS = {
    "far": "job,submit,start,end,gpus\na,0,0,5,1\nb,1,1000000000,1000000005,1\n",
    "long": "job,submit,start,end,gpus\na,0,0,1000000000000,1\nb,1,1,7,1\n",
    "wide": "job,submit,start,end,gpus\na,0,0,5,1000000\nb,1,6,7,1\n",
    "fine": "job,submit,start,end,gpus\na,0,0.000000001,1000000000,1\nb,1,1,7,1\n",
    "many": "job,submit,start,end,gpus\n" + "".join(
        f"j{i},{i},{i + 7 * (i % 50)},{i + 7 * (i % 50) + 1 + i % 90},{1 + i % 8}\n"
        for i in range(100_000)
    ),
}  # fmt: skip
"""Logs for `audit`."""
METHODS = ("auto", "milp")
OWN = {"gang": "easy"}
"""The algorithm that stands for a family's own where its word names none."""


PARTS = {"ratio": 2}
"""Solves and runs of a command whose limit is that of each."""


class Tried(NamedTuple):
    """One run of a command."""

    command: str
    is_late: bool
    seconds: float
    code: int
    megabytes: float
    says: str


def instances(folder: Path) -> Iterator[tuple[str, Path]]:
    """Family and file of every hostile instance, written and read once."""
    for family, changes in HOSTILE.items():
        for number, change in enumerate(changes):
            before = hs.generate(family, "small", 0)
            data = before.to_dict()
            change(data)
            data["name"] = f"{family}-{number}"
            path = folder / f"{family}-{number}.json"
            write_json(data, path)
            write_beside(before, hs.read(path), path)
            yield family, path


def write_beside(before: Instance, instance: Instance, path: Path) -> None:
    """What `verify` and `explain` read: files of the instance as it was, under the new hash."""
    own = OWN.get(before.family, before.family)
    run = hs.simulate(before, own).solution
    schedule = hs.build_solution(instance, run.assignments(), run.formulation).to_dict()
    proof = hs.solve(before, "bound", time_limit=1).certificate
    assert proof is not None
    renamed = {"instance": instance.name, "instance_sha256": instance.sha256()}
    write_json(schedule, path.with_suffix(".schedule"))
    write_json(proof.to_dict() | renamed, path.with_suffix(".prices"))


def commands(family: str, path: Path) -> Iterator[list[str]]:
    """What is tried on an instance."""
    own = OWN.get(family, family)
    file = str(path)
    for method in METHODS:
        yield ["solve", file, "--method", method]
    yield ["simulate", file, "--algorithm", own]
    yield ["model", file]
    yield ["certify", file, "--vipr", str(path.with_suffix(".vipr"))]
    yield ["ratio", file, "--algorithm", own, "--seeds", "1"]
    schedule, prices = str(path.with_suffix(".schedule")), str(path.with_suffix(".prices"))
    yield ["verify", file, schedule, "--prices", prices]
    yield ["explain", file, schedule, "--prices", prices]
    yield ["worst", family, "--algorithm", own, "--start", file, "--workers", "0"]


def tries(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Every command with the name of what it is tried on."""
    for family, path in instances(folder):
        yield from ((path.stem, command) for command in commands(family, path))
    for name, text in LOGS.items():
        log = folder / f"{name}.csv"
        log.write_text(text)
        yield name, ["audit", str(log), "--gpus", "1000000" if name == "wide" else "64"]


def run(command: list[str], seconds: float, *, cpu: bool, most: int | None) -> Tried:
    """Run a command by itself, with the limits, and watch it."""
    program = [str(Path(__file__).with_name("cpu_clock.py"))] if cpu else ["-m", "hindsched"]
    limit = ["--time-limit", f"{seconds:g}"]
    limit += [] if most is None else ["--memory-limit", str(most)]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *program, *command, *limit], text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    killer = Timer(MOST, os.killpg, (process.pid, 9))
    killer.start()
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    killer.cancel()
    spent = usage.ru_utime + usage.ru_stime if cpu else time.perf_counter() - begin
    lines = [line for line in said.splitlines() if line.strip()]
    code = os.waitstatus_to_exitcode(status)
    says = "a traceback" if "Traceback" in said else lines[-1] if lines else ""
    megabytes = usage.ru_maxrss * 1024 / MEGABYTE
    if most is None:
        is_late = spent > PARTS.get(command[0], 1) * (1.2 * seconds + 2)
    else:
        is_late = megabytes > 1.2 * most / MEGABYTE
    return Tried(command[0], is_late, spent, code, megabytes, says)


def row(command: str, tried: list[Tried]) -> str:
    """A line of the page: how often, how it ended, the slowest and the largest."""
    late = sum(one.is_late for one in tried)
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
    parser.add_argument("--cpu", action="store_true", help="count the processor's seconds")
    parser.add_argument("--memory", help="a limit of memory instead, such as 1G")
    given = parser.parse_args()
    most = parse_bytes(given.memory, "memory")
    seconds = given.seconds if most is None else MEMORY_SECONDS
    subprocess.run([sys.executable, "-m", "hindsched", "compile"], check=True)
    found: dict[str, list[Tried]] = {}
    with tempfile.TemporaryDirectory() as name:
        for what, command in list(tries(Path(name))):
            if given.commands and command[0] not in given.commands:
                continue
            tried = run(command, seconds, cpu=given.cpu, most=most)
            found.setdefault(command[0], []).append(tried)
            late = "LATE" if tried.is_late else ""
            shown = f"{command[0]} {what} {' '.join(command[2:4])}"
            spent = f"{tried.seconds:6.1f} s, {tried.megabytes:5.0f} MB"
            told = f"{spent}, exit {tried.code} {late:4} {shown}: {tried.says}"
            print(told.replace(name, "")[:240], flush=True)
    clock = "of the processor, on one core" if given.cpu else "of the clock on the wall"
    lines = [
        f"With `--time-limit {seconds:g}`; the promise is {1.2 * seconds + 2:g} s, for `ratio`"
        f" twice as much. Seconds are those {clock}."
        if most is None
        else f"With `--memory-limit {given.memory}`, and {seconds:g} s; late is who held more than"
        f" {in_words(1.2 * most)} in one process.",
        "",
        "| command | runs | exit 0 / 1 / 2 | others, tracebacks | slowest, s | late | most MB |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [row(command, tried) for command, tried in found.items()]
    if given.commands:
        print("\n".join(lines))
    else:
        write_between(PAGE, MARK if most is None else MEMORY_MARK, lines)


if __name__ == "__main__":
    main()

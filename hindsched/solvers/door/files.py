"""CBC and GLPK: the program as an LP file, the executable, and its solution file read back.

Both minimise the same arrays as HiGHS does, so that senses and signs have one convention. What the
files say is only an `Answer`; `solve_program` checks the point.
"""

from __future__ import annotations

import math
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hindsched.errors import InputError, SolveFailed
from hindsched.solvers.door.answer import Answer
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.standard_form import LinearProgram
from hindsched.solvers.door.status import Status, StoppedBy

EXECUTABLES = {"cbc": "cbc", "glpk": "glpsol"}
PACKAGES = {"cbc": "coinor-cbc", "glpk": "glpk-utils"}
"""Name of the system package that holds the executable (Debian's)."""
WAIT_SECONDS = 0.02
GRACE_SECONDS = 10.0
"""Overrun of the time limit, or time to write the solution after an interrupt, before a kill."""
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf)"


@dataclass(frozen=True)
class _Run:
    """What an executable left behind."""

    log: str
    solution: str
    interrupted: bool
    killed: bool


def solve_by_file(program: LinearProgram, options: SolveOptions) -> Answer:
    """Solve by the executable of ``options.solver``.

    Raises
    ------
    InputError
        If the executable is not installed or does not know a solver option.
    SolveFailed
        If it breaks down.
    """
    name = EXECUTABLES[options.solver]
    executable = shutil.which(name)
    if executable is None:
        rule = f"is not installed: no executable {name} (system package {PACKAGES[options.solver]})"
        raise InputError("solver", options.solver, rule)
    with tempfile.TemporaryDirectory(prefix="hindsched-") as folder:
        model = Path(folder, "model.lp")
        model.write_text("\n".join(lp_lines(program)) + "\n")
        output = Path(folder, "solution.txt")
        if options.solver == "cbc":
            return _solve_by_cbc(program, options, executable, model, output)
        return _solve_by_glpk(program, options, executable, model, output)


def lp_lines(program: LinearProgram) -> Iterable[str]:
    """Lines of the program in CPLEX LP format, columns x0, x1, ..., rows r0, r1, ...; no offset."""
    yield "Minimize"
    yield "obj:"
    nonzero = np.flatnonzero(program.cost)
    for column in nonzero.tolist():
        yield f" {program.cost[column]:+.17g} x{column}"
    if not nonzero.size:
        yield " +0 x0"
    yield "Subject To"
    by_row = program.matrix.tocsr()
    for row in range(len(program.rows)):
        part = slice(by_row.indptr[row], by_row.indptr[row + 1])
        yield f"r{row}:"
        entries = zip(by_row.indices[part].tolist(), by_row.data[part].tolist(), strict=True)
        empty = True
        for column, value in entries:
            empty = False
            yield f" {value:+.17g} x{column}"
        if empty:
            yield " +0 x0"
        lower, upper = program.row_lower[row], program.row_upper[row]
        if lower == upper:
            yield f" = {upper:.17g}"
        elif math.isfinite(upper):
            yield f" <= {upper:.17g}"
        else:
            yield f" >= {lower:.17g}"
    yield "Bounds"
    for column, (lower, upper) in enumerate(
        zip(program.lower.tolist(), program.upper.tolist(), strict=True)
    ):
        if lower == -math.inf and upper == math.inf:
            yield f" x{column} free"
        elif lower == upper:
            yield f" x{column} = {lower:.17g}"
        else:
            left = "-inf" if lower == -math.inf else f"{lower:.17g}"
            right = "+inf" if upper == math.inf else f"{upper:.17g}"
            yield f" {left} <= x{column} <= {right}"
    whole = np.flatnonzero(program.integer).tolist()
    if whole:
        yield "General"
        yield from (f" x{column}" for column in whole)
    yield "End"


def _solve_by_cbc(
    program: LinearProgram, options: SolveOptions, executable: str, model: Path, output: Path
) -> Answer:
    command = [executable, str(model), "-timeMode", "elapsed"]
    if options.time_limit is not None:
        command += ["-seconds", repr(options.time_limit)]
    if program.is_mixed_integer:
        gap = options.gap / (1.0 + options.gap)
        command += ["-ratioGap", repr(gap), "-allowableGap", "1e-9"]
        command += ["-randomCbcSeed", str(options.seed % 2**31)]
        if options.solver_threads > 1:
            command += ["-threads", str(options.solver_threads)]
    for name, value in options.solver_options.items():
        command += [f"-{name}", str(value)]
    command += ["-solve", "-printingOptions", "all", "-solution", str(output)]
    run = _execute(command, options, output)
    for name, value in options.solver_options.items():
        if re.search(rf"No match for -?{re.escape(name)}\b", run.log):
            raise InputError(f"solver_options.{name}", value, "must be an option that CBC knows")
    version = re.search(r"Version:\s*(\S+)", run.log)
    backend = f"cbc {version.group(1) if version else ''}".strip()
    head, *lines = run.solution.splitlines() or [""]
    status, stopped_by = _cbc_status(head, run)
    point = row_duals = column_duals = bound = None
    if status in (Status.OPTIMAL, Status.FEASIBLE):
        values, duals = _cbc_columns(lines)
        point = np.array([values.get(f"x{i}", 0.0) for i in range(len(program.columns))])
    if program.is_mixed_integer and status in (Status.OPTIMAL, Status.FEASIBLE, Status.NO_SOLUTION):
        # CBC states a lower bound only if it differs from the objective.
        stated = re.findall(rf"Lower bound:\s*({_NUMBER})", run.log)
        if stated:
            bound = _below_infinity(float(stated[-1]) + program.offset)
        elif status is Status.OPTIMAL and point is not None:
            bound = float(program.cost @ point) + program.offset
    elif status is Status.OPTIMAL and point is not None:
        bound = float(program.cost @ point) + program.offset
        row_duals = np.array([duals.get(f"r{i}", 0.0) for i in range(len(program.rows))])
        column_duals = np.array([duals.get(f"x{i}", 0.0) for i in range(len(program.columns))])
    return Answer(
        status, stopped_by, point, bound, row_duals, column_duals, backend, {"claim": head.strip()}
    )


def _cbc_status(head: str, run: _Run) -> tuple[Status, StoppedBy]:
    claim = head.lower()
    if claim.startswith("optimal"):
        return Status.OPTIMAL, StoppedBy.GAP
    if claim.startswith(("infeasible", "integer infeasible")):
        return Status.INFEASIBLE, StoppedBy.INFEASIBLE
    if claim.startswith("unbounded") or "dual infeasible" in claim:
        return Status.UNBOUNDED, StoppedBy.UNBOUNDED
    if claim.startswith("stopped") or run.interrupted or run.killed:
        why = StoppedBy.INTERRUPTED if run.interrupted else StoppedBy.TIME_LIMIT
        # "(no integer solution - continuous used)" comes with values that are no solution.
        is_point = claim.startswith("stopped") and "no integer solution" not in claim
        is_point = is_point and "1e+50" not in claim
        return (Status.FEASIBLE if is_point else Status.NO_SOLUTION), why
    raise SolveFailed(f"CBC ended without an answer: {' '.join(run.log.split())[-200:]}")


def _cbc_columns(lines: list[str]) -> tuple[dict[str, float], dict[str, float]]:
    values, duals = {}, {}
    for line in lines:
        fields = line.replace("**", " ").split()
        if len(fields) == 4:
            values[fields[1]], duals[fields[1]] = float(fields[2]), float(fields[3])
    return values, duals


def _solve_by_glpk(
    program: LinearProgram, options: SolveOptions, executable: str, model: Path, output: Path
) -> Answer:
    command = [executable, "--lp", str(model), "-w", str(output)]
    if options.time_limit is not None:
        command += ["--tmlim", str(max(1, math.ceil(options.time_limit)))]
    if program.is_mixed_integer:
        gap = options.gap / (1.0 + options.gap)
        command += ["--mipgap", repr(gap)]
    command += ["--seed", str(options.seed % 2**31)]
    extra = []
    for name, value in options.solver_options.items():
        extra += [f"--{name}"] if value is True or value is None else [f"--{name}", str(value)]
    run = _execute([*command, *extra], options, output)
    _check_glpk_options(run.log, options)
    undecided = "HAS NO DUAL FEASIBLE SOLUTION" in run.log
    if undecided and "--nopresol" not in extra:
        # The presolver cannot tell unbounded from infeasible; the simplex method can.
        run = _execute([*command, *extra, "--nopresol"], options, output)
    version = re.search(r"LP/MIP Solver,?\s*v?([\d.]+)", run.log)
    backend = f"glpk {version.group(1) if version else ''}".strip()
    status, stopped_by = _glpk_status(run)
    point = bound = row_duals = column_duals = None
    if status in (Status.OPTIMAL, Status.FEASIBLE):
        primal, dual = _glpk_columns(run.solution)
        point = np.array([primal["j", i + 1] for i in range(len(program.columns))])
        if status is Status.OPTIMAL:
            bound = float(program.cost @ point) + program.offset
            if not program.is_mixed_integer:
                row_duals = np.array([dual["i", i + 1] for i in range(len(program.rows))])
                column_duals = np.array([dual["j", i + 1] for i in range(len(program.columns))])
    if program.is_mixed_integer and (status is Status.NO_SOLUTION or status is Status.FEASIBLE):
        stated = re.findall(rf"(?:mip =|>>>>>)\s*(?:not found yet|{_NUMBER})\s*>=\s*(\S+)", run.log)
        numbers = [float(text) for text in stated if re.fullmatch(_NUMBER, text)]
        bound = _below_infinity(numbers[-1] + program.offset) if numbers else None
        if status is Status.FEASIBLE and "MIP GAP TOLERANCE REACHED" in run.log:
            stopped_by = StoppedBy.GAP
    return Answer(status, stopped_by, point, bound, row_duals, column_duals, backend)


def _check_glpk_options(log: str, options: SolveOptions) -> None:
    wrong = re.search(r"Invalid option '--(\S+?)'|Invalid (\S+) parameter", log)
    if wrong:
        name = wrong.group(1) or wrong.group(2) or ""
        value: Any = options.solver_options.get(name)
        raise InputError(f"solver_options.{name}", value, "must be an option that GLPK knows")


def _glpk_status(run: _Run) -> tuple[Status, StoppedBy]:
    log = run.log
    claim = re.search(r"^s (\w+) \d+ \d+ (.*)$", run.solution, re.MULTILINE)
    state = claim.group(2).split() if claim else []
    if re.search(r"HAS NO (PRIMAL|INTEGER) FEASIBLE SOLUTION", log):
        return Status.INFEASIBLE, StoppedBy.INFEASIBLE
    if "UNBOUNDED" in log:
        return Status.UNBOUNDED, StoppedBy.UNBOUNDED
    if claim and claim.group(1) == "mip" and state[0] == "o":
        return Status.OPTIMAL, StoppedBy.GAP
    if claim and claim.group(1) == "bas" and state[:2] == ["f", "f"]:
        return Status.OPTIMAL, StoppedBy.GAP
    limited = "TIME LIMIT EXCEEDED" in log or run.killed
    why = StoppedBy.TIME_LIMIT if limited else StoppedBy.ITERATION_LIMIT
    why = StoppedBy.INTERRUPTED if run.interrupted else why
    if claim and state[0] == "f":
        return Status.FEASIBLE, why
    if limited or run.interrupted:
        return Status.NO_SOLUTION, why
    raise SolveFailed(f"GLPK ended without an answer: {' '.join(log.split())[-200:]}")


def _glpk_columns(
    text: str,
) -> tuple[dict[tuple[str, int], float], dict[tuple[str, int], float]]:
    """Read ``i k [status] primal [dual]`` lines; a mixed-integer solution has only the primal."""
    primal, dual = {}, {}
    for line in text.splitlines():
        fields = line.split()
        if fields and fields[0] in ("i", "j"):
            key = fields[0], int(fields[1])
            if len(fields) == 3:
                primal[key] = float(fields[2])
            else:
                primal[key], dual[key] = float(fields[-2]), float(fields[-1])
    return primal, dual


def _execute(command: list[str], options: SolveOptions, output: Path) -> _Run:
    output.unlink(missing_ok=True)
    log_path = output.with_suffix(".log")
    started = time.perf_counter()
    limit = math.inf if options.time_limit is None else options.time_limit + GRACE_SECONDS
    was_interrupted = killed = False
    with log_path.open("w") as log, catch_interrupt() as interrupted:
        # Its own session: Ctrl-C reaches this process alone, which passes it on once.
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            while process.poll() is None:
                time.sleep(WAIT_SECONDS)
                elapsed = time.perf_counter() - started
                if interrupted.is_set() and not was_interrupted:
                    was_interrupted = True
                    limit = elapsed + GRACE_SECONDS
                    process.send_signal(signal.SIGINT)
                elif elapsed > limit:
                    killed = True
                    process.kill()
                    process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    solution = output.read_text() if output.exists() else ""
    return _Run(log_path.read_text(errors="replace"), solution, was_interrupted, killed)


def _below_infinity(value: float) -> float | None:
    return value if abs(value) < 1e20 else None

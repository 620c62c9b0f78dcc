"""The exact kernel's word on files, from a process of its own.

The kernel is run as anyone else could run it who has nothing but its folder (``python kernel``), by
a Python without its environment or site packages, so that nothing of this process can help it to a
verdict.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.io import write, write_json
from hindsched.json_types import JsonObject
from hindsched.limits import seconds_to_finish
from hindsched.solutions.base import write_solution
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.status import StoppedBy

KERNEL = Path(__file__).parents[1] / "kernel"
"""The kernel's folder."""
ALONE = ("-I", "-S", "-X", "utf8")
"""Options of Python by which it reads neither its environment nor site packages."""
QUICK_SECONDS = 5.0
"""How long `verify` lets the kernel work unless it is told to wait for it."""
INTERRUPTED_SECONDS = 1.0
"""How long it works on a result that Ctrl-C has asked for."""
RAISED = {"steps": 10**18, "items": 2_000_000, "chunks": 10_000_000}
"""The kernel's limits that are raised: certificates of the papers' largest instances have more keys
and entries than it allows strangers, and its steps are counted by the clock here."""
ABOVE_A_LIMIT = re.compile(r"^refused: .*\(--limit \w+=\.\.\. raises it\)$")
VERDICTS = ("infeasible", "contradiction", "refused", "proves optimal", "gap", "bound", "feasible")


Proof = Literal["certificate", "checked fast", "solver", "none"]
"""Who vouches for a bound: the exact kernel on the written certificate, the fast check of the
prices alone, a solver, or nobody."""


@dataclass(frozen=True)
class ExactCheck:
    """What the kernel said.

    Parameters
    ----------
    code : int
        Its exit code: 0 all that the files claim is true, 1 infeasible or contradicting, 2 refused.
    lines : tuple of str
        Its lines.
    """

    code: int
    lines: tuple[str, ...]

    @property
    def is_too_large(self) -> bool:
        """Whether the files ask for more than a limit allows, which says nothing against them."""
        return self.code == 2 and any(ABOVE_A_LIMIT.search(line) for line in self.lines)

    @property
    def verdict(self) -> str:
        """The line that says most."""
        found = (line for word in VERDICTS for line in self.lines if line.startswith(word))
        return next(found, self.lines[-1] if self.lines else "(nothing)")

    def without(self, folder: str) -> ExactCheck:
        """The same, its files named without a folder that nobody knows."""
        lines = (line.replace(f"{folder}{os.sep}", "") for line in self.lines)
        return ExactCheck(self.code, tuple(lines))

    def number(self, word: str) -> float:
        """The first number on the line of a word: ``objective`` or ``bound``."""
        line = next(line for line in self.lines if line.startswith(f"{word} "))
        return float(Fraction(re.findall(r"-?[\d.]+(?:/\d+|[eE][-+]?\d+)?", line)[0]))

    def to_dict(self) -> JsonObject:
        """JSON data: ``verdict, exit_code, lines``."""
        return {"verdict": self.verdict, "exit_code": self.code, "lines": list(self.lines)}


def proof_of(result: Result, seconds: float = QUICK_SECONDS) -> Proof:
    """Who vouches for a result's bound: the exact kernel reads what would be written.

    Parameters
    ----------
    result : Result
        What a solve found.
    seconds : float
        How long the kernel may take, inside a command with a time limit no longer than that
        leaves, and at most `INTERRUPTED_SECONDS` after Ctrl-C; what it has not read by then, or
        what asks for more than its limits allow, is ``checked fast``.

    Raises
    ------
    SolveFailed
        If the kernel refuses the certificate, or finds that the solution beats its bound.
    """
    certificate, solution, family = result.certificate, result.solution, result.instance.family
    if result.proof != "certificate" or certificate is None:
        return result.proof
    if result.stopped_by is StoppedBy.INTERRUPTED:
        seconds = min(seconds, INTERRUPTED_SECONDS)
    seconds = seconds_to_finish(seconds)
    if not has_kernel(family) or not seconds:
        return "checked fast"
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "certificate.json"]
        write_json(certificate.to_dict(), files[0], indent=None)  # nobody reads it but the kernel
        if solution is not None:
            files.append(Path(folder) / "solution.json")
            write_solution(solution, files[1])
        found = exact_check(result.instance, *files, seconds=seconds)
    if found is None:
        return "checked fast"
    found = found.without(folder)
    if found.is_too_large:
        return "checked fast"
    if found.code:
        name = f"{result.instance.name} by {result.method}"
        raise SolveFailed(
            f"{name}: objective {result.objective!r}, certified bound {certificate.bound!r}; the "
            f"exact kernel says {found.verdict}"
        )
    return "certificate"


def has_kernel(family: str) -> bool:
    """Whether the exact kernel knows a family."""
    return importlib.util.find_spec(f"hindsched.kernel.{family}") is not None


def exact_check(
    instance: Instance | str | Path, *files: str | Path, seconds: float | None = None
) -> ExactCheck | None:
    """Let the exact kernel check a solution, a certificate, or both.

    Parameters
    ----------
    instance : Instance, str or Path
        The instance or its file.
    *files : str or Path
        Files of a solution and of a certificate, in any order.
    seconds : float, optional
        How long it may take; the kernel's own limits are those of `RAISED`.

    Returns
    -------
    ExactCheck or None
        None if it was not done in time.

    Raises
    ------
    SolveFailed
        If the kernel could not be run.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.json"
        if isinstance(instance, Instance):
            write(instance, path)
        else:
            path = Path(instance)
        limits = (f"--limit={name}={number}" for name, number in RAISED.items())
        command = [sys.executable, *ALONE, str(KERNEL), *limits, "--", str(path), *map(str, files)]
        try:
            done = subprocess.run(
                command, capture_output=True, encoding="utf-8", errors="replace", timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return None
    if done.returncode not in (0, 1, 2) or not done.stdout:
        said = done.stderr.strip().splitlines()
        raise SolveFailed(f"the exact kernel could not be run: {said[-1] if said else 'no output'}")
    return ExactCheck(done.returncode, tuple(done.stdout.splitlines())).without(folder)

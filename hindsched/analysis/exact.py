"""The exact kernel's word on files and results.

What it says here is what anyone else hears who has nothing but its folder: ``python kernel``.
"""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from hindsched import kernel
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.io import write
from hindsched.json_types import JsonObject
from hindsched.kernel.__main__ import judge
from hindsched.kernel.reading import exact_numbers
from hindsched.solvers.door.result import Result, StoppedBy

QUICK_SECONDS = 5.0
"""How long `verify` lets the kernel work unless it is told to wait for it."""
SHORTEST_SECONDS, SHARE_OF_LIMIT = 1.0, 0.2
"""At most so long, and so much of a solve's time limit."""
INTERRUPTED_SECONDS = 1.0
"""How long it works on a result that Ctrl-C has asked for."""
STEPS_A_SECOND = 5_000_000
"""The kernel's steps that take a second at most."""
RAISED = {"steps": 10**18, "items": 2_000_000, "chunks": 10_000_000}
"""The kernel's limits that are raised: certificates of the papers' largest instances have more keys
and entries than it allows strangers."""
ABOVE_A_LIMIT = re.compile(r"\(--limit \w+=\.\.\. raises it\)$")
VERDICTS = ("infeasible", "contradiction", "refused", "proves optimal", "gap", "bound", "feasible")


Proof = Literal["certificate", "checked fast", "solver", "none"]
"""Who vouches for a bound: the exact kernel on the written certificate, the fast check of the
prices alone, a solver, or nobody."""


@dataclass(frozen=True)
class ExactCheck:
    """What the kernel said: its lines, the objective of the last solution, and its exit code.

    That is 0 where all that the files claim is true, 1 infeasible or contradicting, 2 refused.
    """

    code: int
    lines: tuple[str, ...]
    objective: float | None = None

    @property
    def verdict(self) -> str:
        """The line that says most."""
        found = (line for word in VERDICTS for line in self.lines if line.startswith(word))
        return next(found, self.lines[-1])

    def to_dict(self) -> JsonObject:
        """JSON data: ``verdict, exit_code, lines``."""
        return {"verdict": self.verdict, "exit_code": self.code, "lines": list(self.lines)}


def proof_of(result: Result, seconds: float = QUICK_SECONDS) -> Proof:
    """Who vouches for a result's bound: the exact kernel reads what would be written.

    Raises
    ------
    SolveFailed
        If the certificate states more than it proves, or the solution beats its bound.
    """
    certificate, solution, instance = result.certificate, result.solution, result.instance
    if result.proof != "certificate" or certificate is None:
        return result.proof
    if result.stopped_by is StoppedBy.INTERRUPTED:
        seconds = min(seconds, INTERRUPTED_SECONDS)
    if (limit := result.options.get("time_limit")) is not None:
        seconds = min(seconds, SHORTEST_SECONDS + SHARE_OF_LIMIT * cast(float, limit))
    if not has_kernel(instance.family):
        return "checked fast"
    name = f"{instance.name} by {result.method}"
    stated = f"{name}: objective {result.objective!r}, certified bound {certificate.bound!r}"
    try:
        proven = kernel.bound(instance.exact, certificate.to_dict(), _limits(seconds))
    except kernel.Refused as refused:
        if ABOVE_A_LIMIT.search(str(refused)):
            return "checked fast"
        raise SolveFailed(f"{stated}; the exact kernel refuses it: {refused}") from None
    sign = 1 if instance.sense == "max" else -1
    weakest = proven.low if sign > 0 else proven.high
    if sign * (weakest - exact_numbers(certificate.bound)) > abs(weakest) / 10**15:
        raise SolveFailed(f"{stated}; the exact kernel proves {float(weakest)!r} only")
    objective = None if solution is None else solution.verdict.objective
    if objective is not None:
        gap = proven + -objective if sign > 0 else objective + -proven
        if gap.high < 0:
            raise SolveFailed(f"{stated}; contradiction: the objective beats the bound")
    return "certificate"


def _limits(seconds: float | None) -> Mapping[str, int]:
    steps = RAISED["steps"] if seconds is None else int(seconds * STEPS_A_SECOND)
    return {**kernel.LIMITS, **RAISED, "steps": steps}


def has_kernel(family: str) -> bool:
    """Whether the exact kernel knows a family."""
    return importlib.util.find_spec(f"hindsched.kernel.{family}") is not None


def exact_check(
    instance: Instance | str | Path, *files: str | Path, seconds: float | None = None
) -> ExactCheck | None:
    """Let the exact kernel check a solution, a certificate, or both."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.json"
        if isinstance(instance, Instance):
            write(instance, path)
        else:
            path = Path(instance)
        found = judge(str(path), [str(file) for file in files], _limits(seconds))
    lines = tuple(line.replace(f"{folder}/", "") for line in found.lines)
    objective = float(found.objectives[-1].low) if found.objectives else None
    check = ExactCheck(found.code, lines, objective)
    too_long = seconds is not None and check.code == 2 and "too much work" in check.verdict
    return None if too_long and ABOVE_A_LIMIT.search(check.verdict) else check

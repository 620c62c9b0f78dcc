"""The exact kernel's word on files, from a process of its own.

The kernel is run as anyone else would run it (``python -m hindsched.kernel``), so that nothing of
this process can help it to a verdict.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.io import write

QUICK_SECONDS = 5.0
"""How long `verify` lets the kernel work unless it is told to wait for it."""
VERDICTS = ("infeasible", "contradiction", "refused", "proves optimal", "gap", "bound", "feasible")


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
    def verdict(self) -> str:
        """The line that says most."""
        found = (line for word in VERDICTS for line in self.lines if line.startswith(word))
        return next(found, self.lines[-1] if self.lines else "(nothing)")

    def to_dict(self) -> dict[str, Any]:
        """JSON data: ``verdict, exit_code, lines``."""
        return {"verdict": self.verdict, "exit_code": self.code, "lines": list(self.lines)}


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
        How long it may take.

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
        command = [sys.executable, "-m", "hindsched.kernel", str(path), *map(str, files)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
    if done.returncode not in (0, 1, 2) or not done.stdout:
        said = done.stderr.strip().splitlines()
        raise SolveFailed(f"the exact kernel could not be run: {said[-1] if said else 'no output'}")
    return ExactCheck(done.returncode, tuple(done.stdout.splitlines()))

"""Mathematical programs for online scheduling of distributed machine-learning jobs.

``import hindsched as hs`` gives the public names below; each is imported when it is first used, so
that importing the package loads no solver.
"""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hindsched.analysis import plots as plot
    from hindsched.analysis.audit.gang.audit import audit
    from hindsched.analysis.compare import compare, ratio, sweep
    from hindsched.analysis.foresight.foresight import foresight
    from hindsched.analysis.score.referee import score
    from hindsched.analysis.verify import verify
    from hindsched.analysis.worst import check_witness, worst
    from hindsched.errors import HindschedError, InputError, Refused, SolveFailed
    from hindsched.instances import astraea, batchsched, edgecloud, mlbroker, oasis
    from hindsched.instances.catalogue import named_instance, suite
    from hindsched.instances.from_dataframe import instance
    from hindsched.instances.gang.from_log import gang
    from hindsched.instances.generators.registry import from_trace, generate, tree
    from hindsched.instances.io import families, read, schema, write
    from hindsched.instances.traces.log import read_log
    from hindsched.instances.traces.table import load_trace
    from hindsched.online.external import External
    from hindsched.online.protocol import Capabilities, Decision, OnlineAlgorithm
    from hindsched.online.registry import algorithms
    from hindsched.online.simulator import simulate
    from hindsched.solutions.base import build_solution, read_solution, write_solution
    from hindsched.solvers.certificates.explain import explain
    from hindsched.solvers.certificates.file import read_certificate, write_certificate
    from hindsched.solvers.door.api import solve
    from hindsched.solvers.door.result import versions
    from hindsched.solvers.model import model
    from hindsched.solvers.tree.method import certify_optimum

__all__ = [
    "Capabilities", "Decision", "External", "HindschedError", "InputError", "OnlineAlgorithm",
    "Refused", "SolveFailed", "algorithms", "astraea", "audit", "batchsched", "build_solution",
    "certify_optimum", "check_witness", "compare", "edgecloud", "explain", "families", "foresight",
    "from_trace", "gang", "generate", "instance", "load_trace", "mlbroker", "model",
    "named_instance", "oasis", "plot", "ratio", "read", "read_certificate", "read_log",
    "read_solution", "schema", "score", "simulate", "solve", "suite", "sweep", "tree", "verify",
    "versions", "worst", "write", "write_certificate", "write_solution",
]  # fmt: skip


@cache
def _origins() -> dict[str, tuple[str, str]]:
    """Module and name there of each public name: what type checkers read above, said once."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {
        name.asname or name.name: (str(node.module), name.name)
        for node in imports
        for name in node.names
        if str(node.module).startswith("hindsched.")
    }


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'hindsched' has no attribute {name!r}")
    module, origin = _origins()[name]
    value: Any = getattr(importlib.import_module(module), origin, None)
    if value is None:  # a module
        value = importlib.import_module(f"{module}.{origin}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})

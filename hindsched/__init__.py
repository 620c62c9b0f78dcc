"""Mathematical programs for online scheduling of distributed machine-learning jobs.

``import hindsched as hs`` gives the public names below; each is imported when it is first used, so
that importing the package loads no solver.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hindsched.analysis import plots as plot
    from hindsched.analysis.audit.judge import audit
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
    from hindsched.instances.generators.registry import from_trace, generate
    from hindsched.instances.generators.tree import tree
    from hindsched.instances.io import families, read, schema, write
    from hindsched.instances.traces.logs import read_log
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

_SOURCES = {
    "hindsched.analysis.audit.judge": ("audit",),
    "hindsched.instances.from_dataframe": ("instance",),
    "hindsched.instances.gang.from_log": ("gang",),
    "hindsched.instances.traces.logs": ("read_log",),
    "hindsched.analysis.compare": ("compare", "ratio", "sweep"),
    "hindsched.analysis.foresight.foresight": ("foresight",),
    "hindsched.analysis.score.referee": ("score",),
    "hindsched.analysis.verify": ("verify",),
    "hindsched.analysis.worst": ("check_witness", "worst"),
    "hindsched.errors": ("HindschedError", "InputError", "Refused", "SolveFailed"),
    "hindsched.instances.generators.registry": ("from_trace", "generate"),
    "hindsched.instances.generators.tree": ("tree",),
    "hindsched.instances.io": ("families", "read", "schema", "write"),
    "hindsched.instances.catalogue": ("named_instance", "suite"),
    "hindsched.instances.traces.table": ("load_trace",),
    "hindsched.online.external": ("External",),
    "hindsched.online.protocol": ("Decision", "Capabilities", "OnlineAlgorithm"),
    "hindsched.online.registry": ("algorithms",),
    "hindsched.online.simulator": ("simulate",),
    "hindsched.solutions.base": ("build_solution", "read_solution", "write_solution"),
    "hindsched.solvers.door.api": ("solve",),
    "hindsched.solvers.certificates.file": ("read_certificate", "write_certificate"),
    "hindsched.solvers.certificates.explain": ("explain",),
    "hindsched.solvers.tree.method": ("certify_optimum",),
    "hindsched.solvers.model": ("model",),
    "hindsched.solvers.door.result": ("versions",),
}
_MODULES = {
    "plot": "hindsched.analysis.plots",
    "oasis": "hindsched.instances.oasis",
    "batchsched": "hindsched.instances.batchsched",
    "astraea": "hindsched.instances.astraea",
    "edgecloud": "hindsched.instances.edgecloud",
    "mlbroker": "hindsched.instances.mlbroker",
}
_SOURCE_OF = {name: module for module, names in _SOURCES.items() for name in names}

__all__ = [
    "Capabilities",
    "Decision",
    "External",
    "HindschedError",
    "InputError",
    "OnlineAlgorithm",
    "Refused",
    "SolveFailed",
    "algorithms",
    "astraea",
    "audit",
    "batchsched",
    "build_solution",
    "certify_optimum",
    "check_witness",
    "compare",
    "edgecloud",
    "explain",
    "families",
    "foresight",
    "from_trace",
    "gang",
    "generate",
    "instance",
    "load_trace",
    "mlbroker",
    "model",
    "named_instance",
    "oasis",
    "plot",
    "ratio",
    "read",
    "read_certificate",
    "read_log",
    "read_solution",
    "schema",
    "score",
    "simulate",
    "solve",
    "suite",
    "sweep",
    "tree",
    "verify",
    "versions",
    "worst",
    "write",
    "write_certificate",
    "write_solution",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _SOURCE_OF:
        value = getattr(importlib.import_module(_SOURCE_OF[name]), name)
    else:
        raise AttributeError(f"module 'hindsched' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})

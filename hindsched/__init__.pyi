from .analysis import plot
from .analysis.adversary.adversary import Adversary, adversary
from .analysis.audit.gang.audit import audit
from .analysis.audit.gang.check import check_log
from .analysis.compare import compare, ratio
from .analysis.foresight.foresight import foresight
from .analysis.score.referee import score
from .analysis.verify import verify
from .analysis.worst import check_witness, worst
from .errors import HindschedError, InputError, Refused, SolveFailed
from .instances import astraea, batchsched, edgecloud, mlbroker, oasis
from .instances.catalogue import named_instance, suite
from .instances.from_dataframe import instance
from .instances.gang.from_log import gang
from .instances.generators.registry import from_trace, generate, tree
from .instances.io import families, read, schema, write
from .instances.traces.log import read_log
from .instances.traces.table import load_trace
from .online.external import External
from .online.protocol import Capabilities, Decision, OnlineAlgorithm
from .online.registry import algorithms
from .online.simulator import simulate
from .solutions.base import build_solution, read_solution, write_solution
from .solvers.certificates.explain import explain
from .solvers.certificates.file import read_certificate, write_certificate
from .solvers.door.api import solve
from .solvers.door.result import versions
from .solvers.model import model
from .solvers.tree.method import certify_optimum

__all__ = [
    "Adversary", "Capabilities", "Decision", "External", "HindschedError", "InputError",
    "OnlineAlgorithm", "Refused", "SolveFailed", "adversary", "algorithms", "astraea", "audit",
    "batchsched", "build_solution", "certify_optimum", "check_log", "check_witness", "compare",
    "edgecloud", "explain", "families", "foresight", "from_trace", "gang", "generate", "instance",
    "load_trace", "mlbroker", "model", "named_instance", "oasis", "plot", "ratio", "read",
    "read_certificate", "read_log", "read_solution", "schema", "score", "simulate", "solve",
    "suite", "tree", "verify", "versions", "worst", "write", "write_certificate",
    "write_solution",
]  # fmt: skip

"""Checking solutions and bounds from files and results, without any solver.

The exact kernel judges a solution. `verify` recomputes bounds in floating point that rounds
outward; `exact_check` and `proof_of` ask the kernel for these, too, and what it says is what anyone
hears who has nothing but its folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from hindsched import kernel
from hindsched.errors import InputError, SolveFailed, check_type
from hindsched.instances.base import Instance, check_instance
from hindsched.instances.io import read_json
from hindsched.json_types import JsonObject
from hindsched.kernel.__main__ import Document, judge
from hindsched.kernel.reading import exact_numbers
from hindsched.solutions.base import Solution, parse_solution
from hindsched.solvers.door.options import DEFAULT_GAP
from hindsched.solvers.door.result import Result, relative_gap

if TYPE_CHECKING:
    from hindsched.solvers.certificates.file import VerifiedBound

QUICK_SECONDS = 5.0  # how long the command `verify` lets the kernel work unless told to wait
SHORTEST_SECONDS, SHARE_OF_LIMIT = 1.0, 0.2  # at most so long, and so much of a solve's time limit
STEPS_A_SECOND = 5_000_000  # the kernel's steps that take a second at most
RAISED = {"steps": 10**18, "items": 2_000_000, "chunks": 10_000_000}
"""The kernel's limits that are raised: certificates of the papers' largest instances have more keys
and entries than it allows strangers."""
ABOVE_A_LIMIT = re.compile(r"\(--limit \w+=\.\.\. raises it\)$")
VERDICTS = ("infeasible", "contradiction", "refused", "proves optimal", "gap", "bound", "feasible")
Proof = Literal["certificate", "checked fast", "solver", "none"]
"""Who vouches for a bound: the exact kernel on the written certificate, the fast check of the
prices alone, a solver, or nobody."""


@dataclass(frozen=True)
class Verification:
    """What was recomputed from the definition and the pricing oracle alone."""

    instance: str
    family: str
    formulation: str
    sense: str
    objective: float
    violations: list[kernel.Violation]
    bound: float | None = None  # the tightest of the certificates'
    kind: str | None = None  # of that one
    leaves: int | None = None
    claims_less: tuple[tuple[float, float], ...] = ()  # bounds stated, and proven where better
    verdict: kernel.Verdict | None = field(default=None, repr=False)
    """What the kernel says of the solution."""

    @property
    def is_feasible(self) -> bool:
        """Whether nothing is violated."""
        return not self.violations

    @property
    def gap(self) -> float | None:
        """``|bound - objective| / |bound|`` of a feasible solution, or None."""
        return relative_gap(self.objective, self.bound) if self.is_feasible else None

    @property
    def proves_optimal(self) -> bool | None:
        """Whether solution and bound meet within `DEFAULT_GAP`; None without a certificate."""
        if self.bound is None:
            return None
        return self.gap is not None and self.gap <= DEFAULT_GAP

    @property
    def is_contradiction(self) -> bool:
        """Whether a feasible solution beats the bound by more than the bound's rounding."""
        if self.bound is None or not self.is_feasible:
            return False
        excess = self.objective - self.bound
        excess = excess if self.sense == "max" else -excess
        return excess > 1e-9 * abs(self.bound)

    def to_dict(self) -> JsonObject:
        """The object that ``verify --json`` prints."""
        less = [{"stated": stated, "proven": proven} for stated, proven in self.claims_less]
        return {
            "family": self.family, "instance": self.instance, "formulation": self.formulation,
            "sense": self.sense, "feasible": self.is_feasible, "objective": self.objective,
            "violations": [str(violation) for violation in self.violations],
            "bound": self.bound, "gap": self.gap, "certificate": self.kind, "leaves": self.leaves,
            "proves_optimal": self.proves_optimal, "claims_less": less,
        }  # fmt: skip


def verify(
    instance: Instance, solution: Solution | str | Path | Document, certificate: object = None
) -> Verification:
    """Check a solution and, with certificates, recompute their bounds.

    Parameters
    ----------
    instance : Instance
        The instance.
    solution : Solution or path
        A solution or its file.
    certificate : Certificate, dict or path, or list of these, optional
        A certificate, its JSON data or its file. Of several each is held against the solution, and
        the tightest bound is told.

    Raises
    ------
    InputError
        If a file is malformed, belongs to another instance or formulation, or states an objective
        that it does not have or a better bound than its prices prove.
    SolveFailed
        If a feasible solution beats a bound: one of the two must be wrong.

    Examples
    --------
    >>> import hindsched as hs
    >>> instance = hs.generate("oasis", seed=2)
    >>> proof = hs.solve(instance, "bound", time_limit=1).certificate
    >>> checked = hs.verify(instance, hs.simulate(instance, "oasis").solution, proof)
    >>> checked.bound >= checked.objective
    True
    """
    check_instance(instance)
    kinds = Solution | dict | str | Path | Document
    check_type("solution", solution, kinds, "a Solution or its file")
    claim = document(solution, "solution")
    if isinstance(solution, Solution):
        if solution.instance.sha256() != instance.sha256():
            raise InputError("solution", solution.instance.name, "must be of the same instance")
        verdict = solution.verdict
    else:
        solution = parse_solution(claim.data, instance, claim.path)
        verdict = _judged(instance, claim.data)
    if not isinstance(certificate, list | tuple):
        certificate = [] if certificate is None else [certificate]
    proofs = [_proven(instance, solution, document(each)) for each in certificate]
    tightest = min if instance.sense == "max" else max
    proven = tightest((p.certificate for p in proofs), key=lambda proof: proof.bound, default=None)
    verification = Verification(
        instance.name, instance.family, solution.formulation, instance.sense,
        solution.objective(), list(verdict.violations),
        bound=None if proven is None else proven.bound,
        kind=None if proven is None else proven.kind,
        leaves=None if proven is None else proven.num_leaves,
        claims_less=tuple((proof.claimed, proof.bound) for proof in proofs if proof.claims_less),
        verdict=verdict,
    )  # fmt: skip
    if verification.is_contradiction:
        raise SolveFailed(
            f"the solution's objective {verification.objective!r} is better than the bound "
            f"{verification.bound!r}: one of the two must be wrong"
        )
    return verification


def document(claim: Any, where: str = "certificate") -> Document:
    """What a solution, a certificate or the file of one says: a file is read here, once."""
    if isinstance(claim, Document):
        return claim
    if isinstance(claim, str | Path):
        return Document(str(claim), read_json(claim))
    return Document(where, claim if isinstance(claim, dict) else claim.to_dict())


def _judged(instance: Instance, data: JsonObject) -> kernel.Verdict:
    """What the kernel says of a solution file's data."""
    try:
        return kernel.check(instance.exact, data)
    except kernel.RefusedFile as refused:
        raise InputError("solution", instance.name, str(refused)) from None


def _proven(instance: Instance, solution: Solution, certificate: Document) -> VerifiedBound:
    from hindsched.solvers.certificates.certificate import check_same_problem
    from hindsched.solvers.certificates.file import verify_certificate

    verified = verify_certificate(instance, certificate.data, certificate.path)
    check_same_problem(solution, verified.certificate)
    return verified


@dataclass(frozen=True)
class ExactCheck:
    """What the kernel said."""

    code: int  # 0 where all that the files claim is true, 1 infeasible or contradicting, 2 refused
    lines: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The line that says most."""
        lines = (line for word in VERDICTS for line in self.lines if line.startswith(word))
        return next(lines, self.lines[-1])

    def to_dict(self) -> JsonObject:
        """JSON data: ``verdict, exit_code, lines``."""
        return {"verdict": self.verdict, "exit_code": self.code, "lines": list(self.lines)}


def proof_of(result: Result, seconds: float = QUICK_SECONDS) -> Proof:
    """Who vouches for a result's bound: the exact kernel reads what would be written.

    `SolveFailed` if the certificate states more than it proves, or the solution beats its bound.
    """
    certificate, solution, instance = result.certificate, result.solution, result.instance
    if result.proof != "certificate" or certificate is None:
        return result.proof
    if (limit := result.options.get("time_limit")) is not None:
        seconds = min(seconds, SHORTEST_SECONDS + SHARE_OF_LIMIT * cast(float, limit))
    if not kernel.has_family(instance.family):
        return "checked fast"
    name = f"{instance.name} by {result.method}"
    stated = f"{name}: objective {result.objective!r}, certified bound {certificate.bound!r}"
    try:
        proven = kernel.bound(instance.exact, certificate.to_dict(), _limits(seconds))
    except kernel.RefusedFile as refused:
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


def exact_check(
    instance: Instance, *claims: object, seconds: float | None = None
) -> ExactCheck | None:
    """Let the exact kernel check a solution, a certificate, or both; None where time ended it."""
    return exact_check_of([document_of_instance(instance), *map(document, claims)], seconds)


def document_of_instance(instance: Instance) -> Document:
    """An instance's file, which the kernel has read."""
    return Document(instance.name, instance.exact.data, instance.sha256(), instance.exact)


def exact_check_of(
    documents: Sequence[Document], seconds: float | None = None
) -> ExactCheck | None:
    """`exact_check` of documents, of which the kernel reads an instance's, or futures', first."""
    exact = [each._replace(data=exact_numbers(each.data)) for each in documents]
    judgement = judge(exact, _limits(seconds))
    check = ExactCheck(judgement.code, tuple(judgement.lines))
    too_long = seconds is not None and check.code == 2 and "too much work" in check.verdict
    return None if too_long and ABOVE_A_LIMIT.search(check.verdict) else check

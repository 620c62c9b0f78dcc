"""Checking a solution and a bound from their files, without any solver."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.io import read_json
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Solution, Violation, read_solution
from hindsched.solvers.door.options import DEFAULT_GAP
from hindsched.solvers.door.result import relative_gap

if TYPE_CHECKING:
    from hindsched.solvers.certificates.file import VerifiedBound


@dataclass(frozen=True)
class Verification:
    """What was recomputed from the definition and the pricing oracle alone.

    ``bound`` is the tightest of the certificates', ``kind`` and ``leaves`` are of that one;
    ``claims_less`` has the bounds that certificates state, and what their prices prove, where that
    is better.
    """

    instance: str
    family: str
    formulation: str
    sense: str
    objective: float
    violations: list[Violation]
    bound: float | None = None
    kind: str | None = None
    leaves: int | None = None
    claims_less: tuple[tuple[float, float], ...] = ()

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
    instance: Instance, solution: Solution | str | Path, certificate: object = None
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
    if not isinstance(solution, Solution):
        solution = read_solution(solution, instance)
    elif solution.instance.sha256() != instance.sha256():
        raise InputError("solution", solution.instance.name, "must be of the same instance")
    if not isinstance(certificate, list | tuple):
        certificate = [] if certificate is None else [certificate]
    proofs = [_proven(instance, solution, given) for given in certificate]
    tightest = min if instance.sense == "max" else max
    proven = tightest((p.certificate for p in proofs), key=lambda proof: proof.bound, default=None)
    found = Verification(
        instance=instance.name,
        family=instance.family,
        formulation=solution.formulation,
        sense=instance.sense,
        objective=solution.objective(),
        violations=solution.violations(),
        bound=None if proven is None else proven.bound,
        kind=None if proven is None else proven.kind,
        leaves=None if proven is None else proven.num_leaves,
        claims_less=tuple((proof.claimed, proof.bound) for proof in proofs if proof.claims_less),
    )
    if found.is_contradiction:
        raise SolveFailed(
            f"the solution's objective {found.objective!r} is better than the bound "
            f"{found.bound!r}: one of the two must be wrong"
        )
    return found


def _proven(instance: Instance, solution: Solution, certificate: Any) -> VerifiedBound:
    from hindsched.solvers.certificates.certificate import check_same_problem
    from hindsched.solvers.certificates.file import verify_certificate

    where = "certificate"
    if isinstance(certificate, str | Path):
        where = str(certificate)
        certificate = read_json(certificate)
    elif not isinstance(certificate, dict):
        certificate = certificate.to_dict()
    verified = verify_certificate(instance, certificate, where)
    check_same_problem(solution, verified.certificate)
    return verified

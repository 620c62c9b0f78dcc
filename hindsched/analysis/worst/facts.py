"""What is known of a witness: its schedules, the ratio that they prove, the theorem beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

from hindsched.analysis.ratio import CONTRADICTION, Optimum, Ratio, competitive_ratio
from hindsched.analysis.tasks import theorem_of
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject, Keywords
from hindsched.online.simulator import SimulationResult
from hindsched.online.theorem import Theorem
from hindsched.solutions.base import Solution
from hindsched.solvers.certificates.certificate import Certificate


@dataclass(frozen=True)
class Facts:
    """An instance on which an algorithm is bad, with what proves it: what a `Witness` holds.

    Parameters
    ----------
    instance : Instance
        The instance.
    algorithm : str
        Whose ratio it is.
    settings : mapping
        Its settings.
    against : str, optional
        The algorithm it is compared with in place of the optimum.
    runs : sequence of SimulationResult
        Its runs, one a seed.
    reference : Solution
        The better schedule: the best one known, or the other algorithm's (its median run).
    reference_by : str
        Whose it is.
    certificate : Certificate, optional
        Prices or a tree that bound the optimum.
    optimum : Optimum
        What is known of it.
    search : mapping
        How it was found: seed, evaluations, seconds, the ratio before shrinking, ...
    """

    instance: Instance
    algorithm: str
    settings: Keywords
    against: str | None
    runs: Sequence[SimulationResult]
    reference: Solution
    reference_by: str
    certificate: Certificate | None
    optimum: Optimum
    search: Mapping[str, Any] = field(default_factory=dict)

    @property
    def objective(self) -> float:
        """The algorithm's objective, the mean over its runs."""
        return fmean(run.objective for run in self.runs)

    @cached_property
    def ratio(self) -> Ratio:
        """The ratio on this instance; its lower end is proven by the reference alone."""
        return competitive_ratio(
            self.optimum, self.objective, in_feasible_set=self.runs[0].in_feasible_set
        )

    @property
    def proven(self) -> float:
        """The ratio to the reference: what the two schedules prove."""
        value = self.ratio.interval.lower
        return 1.0 if value is None else value

    @cached_property
    def theorem(self) -> Theorem | None:
        """What the paper promises of this algorithm on this instance, if anything."""
        return None if self.against is not None else theorem_of(self.instance, self.algorithm)

    @property
    def assumptions_hold(self) -> bool:
        """Whether everything that the theorem assumes is true of the witness."""
        return self.theorem is not None and all(
            item["holds"] for item in self.theorem["assumptions"]
        )

    @property
    def exceeds_theorem(self) -> bool:
        """Whether the proven ratio (or difference) is beyond what the theorem allows."""
        if self.theorem is None or self.theorem["value"] is None:
            return False
        found = self.proven
        if self.theorem["kind"] == "additive":
            found = self.ratio.difference.lower or 0.0
        value = float(self.theorem["value"])
        return found > value + CONTRADICTION * max(1.0, abs(value))

    @property
    def verdict(self) -> str:
        """What the witness says of the theorem, in a sentence."""
        if self.theorem is None:
            return f"No theorem of {self.instance.family} speaks of {self.algorithm}."
        value = self.theorem["value"]
        if value is None:
            return "The theorem gives no number on the witness."
        told = f"The theorem promises at most {value:.6g} ({self.theorem['kind']})"
        missing = [item["name"] for item in self.theorem["assumptions"] if not item["holds"]]
        if self.exceeds_theorem and not missing:
            return f"CONTRADICTED: {told[0].lower()}{told[1:]}, and all it assumes holds here."
        if self.exceeds_theorem:
            return f"{told}; the witness exceeds it, where it does not apply: {'; '.join(missing)}."
        if missing:
            return f"{told}, and does not apply here: {'; '.join(missing)}."
        return f"{told}; all it assumes holds here, and the witness keeps it."

    @property
    def contradicts(self) -> bool:
        """Whether a theorem whose assumptions hold is broken."""
        return self.exceeds_theorem and self.assumptions_hold

    def to_dict(self) -> JsonObject:
        """The object that ``worst --json`` prints."""
        return {
            "family": self.instance.family,
            "algorithm": self.algorithm,
            "settings": dict(self.settings),
            "against": self.against,
            "formulation": self.reference.formulation,
            "instance": self.instance.name,
            "sha256": self.instance.sha256(),
            "jobs": len(self.instance.jobs),
            "objective": self.objective,
            "seeds": [run.seed for run in self.runs],
            "reference": {"by": self.reference_by, "objective": self.reference.objective()},
            "optimum": self.optimum.to_dict(),
            **self.ratio.to_dict(),
            "theorem": self.theorem,
            "contradicts_theorem": self.contradicts,
            "verdict": self.verdict,
            "search": dict(self.search),
        }

    def __repr__(self) -> str:
        than = self.against or "the optimum"
        return (
            f"<{self.algorithm} is at least {self.proven:.6g} times worse than {than} on "
            f"{self.instance.name!r}, {len(self.instance.jobs)} jobs>"
        )

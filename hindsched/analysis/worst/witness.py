"""The witness: an instance, what the algorithm does on it, and a checked schedule that is better.

Any feasible schedule proves a ratio, so that the claim needs nobody's word: the instance is parsed,
both schedules are judged by the family's definition, and the ratio is their quotient. As a folder:

====================  ==========================================================================
``instance.json``     the instance
``run.json``          the algorithm's schedule; ``run-sN.json`` for each seed of a randomised one
``reference.json``    the better schedule
``certificate.json``  prices or a tree that bound the optimum, if there are
``witness.json``      the claim: ratio, theorem, how it was found
``witness.txt``       what goes wrong, in words
====================  ==========================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.ratio import (
    CONTRADICTION,
    Optimum,
    Ratio,
    Sense,
    competitive_ratio,
    optimum_of,
)
from hindsched.analysis.tasks import theorem_of
from hindsched.analysis.verify import verify
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.io import read, read_json, write, write_json, write_text
from hindsched.json_types import JsonObject, Keywords
from hindsched.online.protocol import Theorem
from hindsched.online.simulator import SimulationResult
from hindsched.solutions.base import Solution, write_solution
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.certificates.file import write_certificate

MOST_JOBS = 4
"""Jobs that the words tell."""
AGREEMENT = 1e-6


def quotient(sense: Sense, objective: float, reference: float) -> float:
    """The ratio to a schedule of this objective; -inf where the two have none.

    Examples
    --------
    >>> quotient("min", 30.0, 10.0), quotient("max", 0.0, 10.0), quotient("max", 0.0, 0.0)
    (3.0, inf, 1.0)
    """
    optimum = optimum_of(sense, reference, reference, "feasible", proof="solver")
    found = competitive_ratio(optimum, objective).interval.lower
    return -math.inf if found is None else found


@dataclass(frozen=True, repr=False)
class Witness:
    """An instance on which an algorithm is bad, with what proves it.

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

    def explain(self) -> str:
        """What goes wrong, in words: the claim, the jobs that differ most, the theorem."""
        verb = "earns" if self.instance.sense == "max" else "costs"
        than = self.reference_by if self.against else "a schedule"
        number = len(self.instance.jobs)
        size = f"{number} jobs" if number > 1 else "one job"
        ratio = f"a ratio of at least {self.proven:.6g}"
        ratio = "an infinite ratio" if math.isinf(self.proven) else ratio
        if self.against is None and self.optimum.is_proven:
            ratio += ", and no more on this instance: the schedule is optimal"
        lines = [
            f"With {size}, {self.algorithm} {verb} {self.objective:.6g}"
            f"{' on average' if len(self.runs) > 1 else ''} where {than} {verb} "
            f"{self.reference.objective():.6g}: {ratio}."
        ]
        sign = 1 if self.instance.sense == "max" else -1
        better = {row["job"]: row for row in self.reference.job_rows()}
        losses = []
        for row in self._typical().solution.job_rows():
            loss = sign * ((better[row["job"]]["value"] or 0.0) - (row["value"] or 0.0))
            if abs(loss) > 1e-9 * max(1.0, abs(row["value"] or 0.0)):
                losses.append((loss, row))
        for loss, row in sorted(losses, key=lambda item: -item[0])[:MOST_JOBS]:
            change = f"{'loses' if loss > 0 else 'gains'} {abs(loss):.6g}"
            where = f"{_when(row)} instead of {_when(better[row['job']])}"
            lines.append(f"{row['job']} (arrives at {row['arrival']}) {change}: {where}.")
        return "\n".join([*lines, self.verdict])

    def plot(self) -> Any:
        """Gantt charts of both schedules, one above the other; returns the figure."""
        from hindsched.analysis.plots.gantt import plot_gantt
        from hindsched.analysis.plots.style import new_figure

        figure = new_figure(7.2, 6.0)
        upper, lower = figure.subplots(2, 1, sharex=True)
        for axes, solution, name in (
            (upper, self._typical().solution, self.algorithm),
            (lower, self.reference, self.reference_by),
        ):
            plot_gantt(solution, axes)
            axes.set_title(f"{name}: {solution.objective():.6g}")
        return figure

    def write(self, folder: str | Path) -> None:
        """Write the witness as a folder; files of an earlier one in it are replaced."""
        place = Path(folder)
        for old in [*place.glob("run*.json"), *place.glob("certificate.json")]:
            old.unlink()
        write(self.instance, place / "instance.json")
        for run in self.runs:
            name = "run.json" if len(self.runs) == 1 else f"run-s{run.seed}.json"
            by = {"algorithm": run.algorithm, "options": dict(run.settings), "seed": run.seed}
            write_solution(run.solution, place / name, jsonable(by))
        write_solution(self.reference, place / "reference.json", {"by": self.reference_by})
        if self.certificate is not None:
            write_certificate(self.certificate, place / "certificate.json")
        write_json(jsonable(self.to_dict()), place / "witness.json")
        write_text(self.explain() + "\n", place / "witness.txt")

    def _typical(self) -> SimulationResult:
        """The only run, or the one of median objective."""
        ordered = sorted(self.runs, key=lambda run: run.objective)
        return ordered[(len(ordered) - 1) // 2]


def check_witness(folder: str | Path) -> JsonObject:
    """Check a witness from its files alone: no search, no solver, no algorithm.

    Parameters
    ----------
    folder : str or Path
        What `Witness.write` wrote, from whomever.

    Returns
    -------
    dict
        ``ratio`` (recomputed), ``claimed`` and ``files`` (their objectives).

    Raises
    ------
    InputError
        If a file is malformed, the better schedule breaks a constraint, or the ratio is not the one
        that is claimed.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.worst("oasis", "fifo", preset="one-slot", work_limit=60, folder="witness")
    >>> hs.check_witness("witness")["ratio"] == found.proven
    True
    """
    place = Path(folder)
    instance, claimed = read(place / "instance.json"), read_json(place / "witness.json")
    runs = sorted(place.glob("run*.json"))
    if not runs or not isinstance(claimed, dict):
        raise InputError(str(place), "(no run*.json)", "must be the folder of a witness")
    found = {path.name: verify(instance, path) for path in [*runs, place / "reference.json"]}
    reference = found["reference.json"]
    if not reference.is_feasible:
        rule = "must break no constraint"
        raise InputError("reference.json", str(reference.violations[0]), rule)
    objective = fmean(found[path.name].objective for path in runs)
    ratio = quotient(instance.sense, objective, reference.objective)
    told = (claimed.get("ratio") or {}).get("lower")
    said = math.inf if told == "inf" else told
    agrees = isinstance(said, int | float) and (
        said == ratio or abs(said - ratio) <= AGREEMENT * max(1.0, abs(ratio))
    )
    if not agrees:
        rule = f"the schedules have the ratio {ratio!r}"
        raise InputError("witness.json: ratio.lower", told, rule)
    files = {name: item.objective for name, item in found.items()}
    return {"ratio": ratio, "claimed": said, "files": files}


def _when(row: Any) -> str:
    if row["start"] is None:
        return "not served"
    if row["completion"] is None:
        return f"begun at {row['start']}, not completed"
    if row["start"] == row["completion"]:
        return f"in slot {row['start']}"
    return f"in slots {row['start']} to {row['completion']}"

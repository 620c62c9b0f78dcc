"""The contract between an online algorithm and the simulator.

An algorithm is told of the cluster in `start` and of the jobs that arrive, slot by slot, in `step`.
It answers with rows of the family's solution file that begin now or later. What it has returned is
binding: rows are never taken back.

Most families are stepped in every slot. A family whose slots are seconds is stepped at events: when
jobs arrive, when work ends (`completed` tells which) and in the slots that `wake_up` asks for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from hindsched.instances.base import JobRecord
from hindsched.solutions.base import Assignment

if TYPE_CHECKING:
    from hindsched.solvers.door.result import ProgramResult
    from hindsched.solvers.oracles.rows import PriceRow

SEES_ALL, FORECASTS = " (sees all jobs)", " (forecasts)"
"""What stands behind the name of an algorithm that knows more of the future than others."""

Estimates: TypeAlias = Mapping[str, Any]
"""What is declared of the future, as the family's own modules declare and read it: numbers by name,
by row set and resource at most."""
Report: TypeAlias = dict[str, Any]
"""What an algorithm tells of its run beside the schedule, by names of its own."""
JobUpdates: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Facts of a slot by job, of which the family's own modules know the names."""

AtLeastZero = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Natural = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1, lt=2**31)]  # more than solvers count
"""Types of settings; ``registry.build_from`` refuses values outside."""


@dataclass(frozen=True)
class Capabilities:
    """What an algorithm may know, shown wherever its results are.

    Parameters
    ----------
    online : bool
        Whether it decides without knowing jobs that have not arrived.
    knows_durations : bool
        Whether it uses how long a job's work takes, which a job tells when it arrives.
    forecasts : str, optional
        What is forecast to it, in words; None for nothing.
    clairvoyant : bool
        Whether it knows all jobs from the start.
    commits_at_arrival : bool
        Whether it says all of a job's schedule when the job arrives.
    may_give_up : bool
        Whether it may begin a job and then drop it.
    published : str, optional
        Where it was published, shown behind a name that could be taken for another's.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.Capabilities(knows_durations=False).online
    True
    """

    online: bool = True
    knows_durations: bool = True
    forecasts: str | None = None
    clairvoyant: bool = False
    commits_at_arrival: bool = False
    may_give_up: bool = False
    published: str | None = None

    @property
    def commitment(self) -> str:
        """When it is bound by what it decides, which a comparison tells apart."""
        if self.may_give_up:
            return "may give a job up"
        return "commits at arrival" if self.commits_at_arrival else "decides as it runs"

    @property
    def words(self) -> str:
        """What it knows, in a line."""
        if self.clairvoyant:
            return "all jobs from the start"
        known = ["durations"] if self.knows_durations else []
        known += ["the future by its own means"] if not self.online else []
        return ", ".join([*known, *([self.forecasts] if self.forecasts else [])]) or "arrivals only"

    @property
    def mark(self) -> str:
        """What stands behind the name in tables: empty for most plain online algorithms."""
        if self.clairvoyant or not self.online:
            return SEES_ALL
        if self.forecasts is not None:
            return FORECASTS
        return "" if self.published is None else f" ({self.published})"


@dataclass(frozen=True)
class Environment:
    """What an algorithm knows before the first slot: numbers, nothing of a job to come.

    Parameters
    ----------
    cluster : Instance
        The instance without its jobs, name and provenance: servers, horizon, slot length.
    estimates : mapping
        Declared estimates of what only the future tells (price bounds U and L and the like):
        numbers by name, by row set and resource at most, never by job.
    seed : int
        Seed of a randomised algorithm; draws are keyed by (seed, job name), see `draws`.
    formulation : str
        Which of the family's problems is being solved.
    in_feasible_set : bool
        False for a baseline that may do what the offline problem forbids: its run is judged by the
        relaxed problem.
    """

    cluster: Any
    estimates: Estimates
    seed: int
    formulation: str
    in_feasible_set: bool = True


@dataclass(frozen=True)
class Decision:
    """What an algorithm does in one slot.

    Parameters
    ----------
    assignments : mapping
        New rows by job name in the solution file's form; every row begins at the present slot or
        later. Rows add to the earlier ones of the job.
    admitted, rejected : sequence of str
        Jobs accepted or refused for good in this slot; optional information, except that a
        rejected job may get no rows.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.Decision(rejected=["j1"]).assignments
    {}
    """

    assignments: Mapping[str, Sequence[Assignment]] = field(default_factory=dict)
    admitted: Sequence[str] = ()
    rejected: Sequence[str] = ()


NOTHING = Decision()


class OnlineAlgorithm(ABC):
    """An online algorithm.

    Attributes
    ----------
    relaxes_constraints : bool
        True for a baseline that may do what the offline problem forbids (preempt, resize); its
        objective is reported but is no ratio's numerator.
    randomised : bool
        True if the seed can change a decision; comparisons then run it once a seed, others once.
    card : Capabilities
        What it may know.

    Examples
    --------
    >>> import hindsched as hs
    >>> class Idle(hs.OnlineAlgorithm):
    ...     def start(self, environment): ...
    ...     def step(self, slot, arrivals):
    ...         return hs.Decision(rejected=[job.name for job in arrivals])
    >>> hs.simulate(hs.generate("oasis", seed=2), Idle()).objective
    0.0
    """

    relaxes_constraints: ClassVar[bool] = False
    randomised: ClassVar[bool] = False
    card: ClassVar[Capabilities] = Capabilities()

    def relaxes(self, formulation: str) -> bool:
        """Whether it may do what a formulation forbids: `relaxes_constraints`."""
        return self.relaxes_constraints

    def estimate_settings(self) -> Mapping[str, object]:
        """Settings on which the declared estimates depend, for ``declared_estimates``."""
        return {}

    @abstractmethod
    def start(self, environment: Environment) -> None:
        """Begin a run; everything of an earlier run is forgotten."""

    @abstractmethod
    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Decide in `slot`, at whose start `arrivals` (job records) became known."""

    def foresee(self, jobs: tuple[JobRecord, ...]) -> None:  # noqa: B027  (most foresee nothing)
        """Be told all jobs after `start`; only an algorithm is whose card says `clairvoyant`."""

    def completed(self, slot: int, jobs: tuple[str, ...]) -> None:  # noqa: B027  (most ask nothing)
        """Hear before `step` which jobs' work ended before `slot`.

        Only families tell it in which an algorithm may begin a run without knowing its end.
        """

    def told(self, slot: int, news: JobUpdates) -> None:  # noqa: B027  (most have none)
        """Hear before `step` what `slot` brings of the known jobs: facts by job name.

        Only families tell it whose jobs' records change from slot to slot.
        """

    def wake_up(self) -> int | None:
        """Next slot in which to be asked though nothing arrives or ends; None for none.

        Read after every `step`; without effect where every slot is stepped.
        """
        return None

    def report(self) -> Report:
        """Further facts of the run: counters, limits reached, price paths."""
        return {}

    def close(self) -> None:  # noqa: B027  (most have nothing to release)
        """Release what the run held, processes and files; called however the run ends."""

    def prices(self) -> Mapping[str, object] | None:
        """Final prices by row set, each an array of the oracle's shape, where there are any."""
        return None

    def price_path(self) -> Sequence[PriceRow]:
        """Posted prices by slot: rows ``slot, resource, price``; empty where none are posted.

        ``price`` is what a unit of the resource costs in the slot after the last decision about it,
        in the objective's unit, averaged over the servers by their capacity.
        """
        return ()


def draws(seed: int, *keys: str) -> np.random.Generator:
    """Random draws keyed by (seed, job name, purpose), never by a global stream."""
    words = [byte for key in keys for byte in (*key.encode(), 0)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))


Theorem: TypeAlias = dict[str, Any]  # what a theorem states, as `theorem_record` makes it
Assumption: TypeAlias = tuple[str, bool, float | None]


class MeasureAtSpeed(NamedTuple):
    """What a run on faster machines, which is no schedule of the instance, reaches."""

    quantity: str
    value: float
    theorem: Theorem  # what it promises at this speed
    solved: ProgramResult | None = None  # at speed 1 by a program of its own; None: the instance


def theorem_record(
    kind: str, value: float | None, assumed: Iterable[Assumption] = (),
    beside: Iterable[Assumption] = (), **more: object,
) -> Theorem:  # fmt: skip
    """What a theorem states of an instance.

    A value (None where it states nothing) that bounds a ``ratio`` or is ``additive``; what it
    assumes of the instance and, `beside`, of the run or its own proof: name, whether it holds and
    the number that decides it; and ``quantities``, ``note``, ``warning`` or the numbers behind the
    value.
    """
    assumptions = [
        {"name": name, "holds": holds, "worst": worst, "of_instance": of_instance}
        for of_instance, listed in ((True, assumed), (False, beside))
        for name, holds, worst in listed
    ]
    return {"kind": kind, "value": value, "assumptions": assumptions, **more}


def unmet(theorem: Theorem | None, *, of_instance: bool = False) -> list[str]:
    """Names of the assumptions that do not hold; perhaps only of those `of_instance`."""
    failing = [each for each in (theorem or {}).get("assumptions", ()) if not each["holds"]]
    return [each["name"] for each in failing if not of_instance or each["of_instance"]]

"""What a finished task leaves behind, as data of a JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Required, TypedDict

if TYPE_CHECKING:
    from hindsched.analysis.exact import Proof
    from hindsched.analysis.ratio import Sense
    from hindsched.json_types import JsonObject
    from hindsched.online.protocol import Theorem
    from hindsched.solutions.tables import JobRow


class TaskData(TypedDict):
    """A task as its record names it."""

    kind: str
    instance: str
    algorithm: str | None
    seed: int
    settings: Mapping[str, object]


class SlotRow(TypedDict):
    """Use and price of a resource in a slot, over all servers."""

    slot: int
    resource: str
    used: float
    price: float | None
    active_jobs: int


class RivalsBound(TypedDict):
    """Bound of the problem that rivals outside the feasible set solve."""

    bound: float | None
    certificate: JsonObject | None


class Record(TypedDict, total=False):
    """What a finished task leaves behind; a failed one leaves the first few."""

    task: Required[str]
    kind: Required[str]
    instance: Required[str]
    algorithm: Required[str | None]
    seed: Required[int]
    settings: Required[Mapping[str, object]]
    status: Required[str]
    error: Required[str | None]
    traceback: str
    exit_code: int
    family: str
    sha256: str
    # of both kinds
    sense: Sense
    objective: float | None
    seconds: float
    solution: JsonObject | None
    jobs: Sequence[JobRow]
    slots: Sequence[SlotRow]
    # of an offline solve
    method: str
    formulation: str
    backend: str
    solve_status: str
    stopped_by: str
    bound: float | None
    gap: float | None
    proof: Proof
    certified: bool
    certified_bound: float | None
    certificate: JsonObject | None
    rivals: RivalsBound | None
    # of a run
    in_feasible_set: bool
    violations: Sequence[str]
    rival_violations: int
    jobs_completed: int
    jobs_rejected: int
    decision_ms_median: float | None
    decision_ms_max: float | None
    mark: str
    commitment: str
    theorem: Theorem | None

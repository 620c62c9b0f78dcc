"""What a family's module offers the kernel: its `Problem`, a subclass of the one here."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from .exact import Data, Interval
from .verdict import Verdict


class FamilyProblem(ABC):
    """An instance in one formulation: judges its schedules and proves its certificates.

    It is made of the instance's data and the formulation's word; `RefusedFile` if they mean none.
    """

    sense: ClassVar[Literal["max", "min"]]
    formulations: ClassVar[Mapping[str, Any]]
    """A file's word for its formulation -> the problem that it means."""

    def __init__(self, instance: Data, formulation: str) -> None:
        self.instance, self.formulation = instance, formulation

    @abstractmethod
    def check(self, solution: Data) -> Verdict:
        """Every broken rule of a schedule, and what it amounts to."""

    @abstractmethod
    def bound(self, certificate: Data) -> Interval:
        """Enclose what the certificate's prices prove."""

    def worth(self, ends: Mapping[str, int | None]) -> Interval | None:
        """The objective of completions by job; None where it does not follow from them."""
        return None


class ScenarioProblem(FamilyProblem):
    """A problem that has certificates of several futures; see `nonanticipative`."""

    nonanticipative: ClassVar[Sequence[str]]
    """Formulations that have them."""

    @abstractmethod
    def bound_with(self, part: Data, weight: Any, multipliers: Mapping[str, Any]) -> Interval:
        """Bound of a weight times the objective, with own terms by job."""

    @abstractmethod
    def listed(self) -> Sequence[Any]:
        """The jobs in the instance's order."""

    @abstractmethod
    def game(self, policies: str) -> tuple[Any, ...]:
        """Word of the game in `rules`, and what it is told; `RefusedFile` if there is none."""

    @classmethod
    def reveal_slot(cls, instance: Data, job: Data) -> int:
        """Slot from which an online algorithm knows a job."""
        return int(job["arrival"])

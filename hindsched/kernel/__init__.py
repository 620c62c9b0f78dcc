"""The exact kernel: a small judge that shares nothing with the rest of the package.

``python -m hindsched.kernel INSTANCE [SOLUTION] [CERTIFICATE]``, or this folder alone, copied
anywhere: ``python -m kernel ...``; in a program `check` and `bound`. Standard library only. A
number in a file is the decimal that is written, a float in a program the decimal that it prints as;
sums are exact; sigmoids and powers are enclosed outward. A family is one module here with a class
``Problem``, a `FamilyProblem`.
"""

import importlib.util
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from .exact import Data, Interval
from .problem import FamilyProblem
from .reading import LIMITS, RefusedFile, exact_numbers, limited, require
from .verdict import Verdict, Violation

BUILT_IN = ("oasis", "batchsched", "astraea", "edgecloud", "mlbroker", "gang")
PACKAGES = {
    e.name: e.value for e in entry_points(group="hindsched.families") if e.name not in BUILT_IN
}
"""Families that installed packages bring, whose module ``kernel`` is what a module here is."""
FAMILIES = (*BUILT_IN, *PACKAGES)
READ = ("jobs", "given_up", "formulation")
"""What is read of a solution: what it states of its objective is not."""
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What reading data of another shape ends with."""


def family_problem(word: str) -> type[FamilyProblem]:
    """The class ``Problem`` of a family's module; `RefusedFile` if the module has none."""
    name = module_name(word)
    try:
        problem: type[FamilyProblem] = importlib.import_module(name).Problem
    except (ModuleNotFoundError, AttributeError) as error:
        raise RefusedFile(f"{error}: {name} must offer Problem, a FamilyProblem") from None
    return problem


def has_family(word: str) -> bool:
    """Whether there is a kernel module of a family, ours or an installed package's."""
    return importlib.util.find_spec(module_name(word)) is not None


def module_name(word: str) -> str:
    """Where a family's kernel module is."""
    return f"{PACKAGES[word]}.kernel" if word in PACKAGES else f"{__package__}.{word}"


class ExactInstance:
    """An instance that is asked more than once: what is made of its data is kept."""

    def __init__(self, data: Data) -> None:
        self.data = exact_numbers(data)
        require(self.data.get("family") in FAMILIES, f"instance: family must be one of {FAMILIES}")
        self._problems: dict[str, FamilyProblem] = {}

    def __reduce__(self) -> Any:
        """Copies and other processes read it anew."""
        return ExactInstance, (self.data,)

    @property
    def family(self) -> type[FamilyProblem]:
        """What the family's module offers."""
        return family_problem(self.data["family"])

    def problem(self, formulation: Any) -> FamilyProblem:
        """The problem that a file's word for its formulation means."""
        require(formulation in self.family.formulations, f"formulation: {formulation} is unknown")
        if formulation not in self._problems:
            self._problems[formulation] = self.family(self.data, formulation)
        return self._problems[formulation]


def check(
    instance: Data | ExactInstance, solution: Data, limits: Mapping[str, int] | None = None
) -> Verdict:
    """Judge a schedule.

    Parameters
    ----------
    instance, solution : mapping
        The data of their files, or of the instance an `ExactInstance`.
    limits : mapping, optional
        What the data may ask for, by the names in `LIMITS`: no limits by default.

    Raises
    ------
    RefusedFile
        If the data are no instance, or no schedule of it, or beyond a limit.

    Examples
    --------
    >>> import hindsched as hs
    >>> run = hs.simulate(hs.generate("oasis", seed=2), "oasis")
    >>> check(run.instance.to_dict(), run.solution.to_dict()).feasible
    True
    """
    with limited(limits or {}):
        try:
            read = instance if isinstance(instance, ExactInstance) else ExactInstance(instance)
            decided = exact_numbers({key: solution[key] for key in READ if key in solution})
            return read.problem(solution["formulation"]).check(decided)
        except MALFORMED as error:
            raise RefusedFile(f"malformed: {type(error).__name__}: {error}"[:400]) from None


def bound(
    instance: Data | ExactInstance, certificate: Data, limits: Mapping[str, int] | None = None
) -> Interval:
    """Enclose what a certificate's prices prove, whatever it states; arguments as for `check`."""
    with limited(limits or {}):
        try:
            read = instance if isinstance(instance, ExactInstance) else ExactInstance(instance)
            data = exact_numbers(certificate)
            return read.problem(data["formulation"]).bound(data)
        except MALFORMED as error:
            raise RefusedFile(f"malformed: {type(error).__name__}: {error}"[:400]) from None


__all__ = [
    "LIMITS",
    "ExactInstance",
    "Interval",
    "RefusedFile",
    "Verdict",
    "Violation",
    "bound",
    "check",
]

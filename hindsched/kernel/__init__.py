"""The exact kernel: a small judge that shares nothing with the rest of the package.

``python -m hindsched.kernel INSTANCE [SOLUTION] [CERTIFICATE]``, or this folder alone, copied
anywhere: ``python -m kernel ...``; in a program `check` and `bound`. Standard library only. A
number in a file is the decimal that is written, a float in a program the decimal that it prints as;
sums are exact; sigmoids and powers are enclosed outward. A family is one module here with

- ``SENSE``: ``"max"`` or ``"min"``;
- ``FORMULATIONS``: a file's word for its formulation -> the problem that it means;
- ``Problem(instance, formulation)``, whose ``check(solution)`` is a `Verdict` and whose
  ``worth(ends)``, where the objective follows from completions, is an `Interval`;
- ``bound(instance, certificate, progress)``: an `Interval` that encloses what the prices prove.
"""

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from .exact import Data, Interval
from .reading import LIMITS, Progress, Refused, exact_numbers, limited, require, silent
from .verdict import Verdict, Violation

OWN = ("oasis", "batchsched", "astraea", "edgecloud", "mlbroker", "gang")
PACKAGES = {e.name: e.value for e in entry_points(group="hindsched.families") if e.name not in OWN}
"""Families that installed packages bring, whose module ``kernel`` is what a module here is."""
FAMILIES = (*OWN, *PACKAGES)
READ = ("jobs", "given_up", "formulation")
"""What is read of a solution: what it states of its objective is not."""
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What reading data of another shape ends with."""


class Instance:
    """An instance that is asked more than once: what is made of its data is kept."""

    def __init__(self, data: Data) -> None:
        self.data = exact_numbers(data)
        require(self.data.get("family") in FAMILIES, f"instance: family must be one of {FAMILIES}")
        self._problems: dict[str, Any] = {}

    def __reduce__(self) -> Any:
        """Copies and other processes read it anew."""
        return Instance, (self.data,)

    @property
    def family(self) -> Any:
        """The family's module."""
        word = self.data["family"]
        name = f"{PACKAGES[word]}.kernel" if word in PACKAGES else f"{__package__}.{word}"
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            rule = "must offer SENSE, FORMULATIONS, Problem and bound"
            raise Refused(f"{error}: {name} {rule}") from None

    def problem(self, formulation: Any) -> Any:
        """The problem that a file's word for its formulation means."""
        require(formulation in self.family.FORMULATIONS, f"formulation: {formulation} is unknown")
        if formulation not in self._problems:
            self._problems[formulation] = self.family.Problem(self.data, formulation)
        return self._problems[formulation]


def check(
    instance: Data | Instance, solution: Data, limits: Mapping[str, int] | None = None
) -> Verdict:
    """Judge a schedule.

    Parameters
    ----------
    instance, solution : mapping
        The data of their files, or of the instance an `Instance`.
    limits : mapping, optional
        What the data may ask for, by the names in `LIMITS`: no limits by default.

    Raises
    ------
    Refused
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
            read = instance if isinstance(instance, Instance) else Instance(instance)
            decided = exact_numbers({key: solution[key] for key in READ if key in solution})
            verdict: Verdict = read.problem(solution["formulation"]).check(decided)
        except MALFORMED as error:
            raise Refused(f"malformed: {type(error).__name__}: {error}"[:400]) from None
    return verdict


def bound(
    instance: Data | Instance,
    certificate: Data,
    limits: Mapping[str, int] | None = None,
    progress: Progress = silent,
) -> Interval:
    """Enclose what a certificate's prices prove, whatever it states; arguments as for `check`."""
    with limited(limits or {}):
        try:
            read = instance if isinstance(instance, Instance) else Instance(instance)
            data = exact_numbers(certificate)
            require(data["formulation"] in read.family.FORMULATIONS, "formulation: is unknown")
            found: Interval = read.family.bound(read.data, data, progress)
        except MALFORMED as error:
            raise Refused(f"malformed: {type(error).__name__}: {error}"[:400]) from None
    return found


__all__ = ["LIMITS", "Instance", "Interval", "Refused", "Verdict", "Violation", "bound", "check"]

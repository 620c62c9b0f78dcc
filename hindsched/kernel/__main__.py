"""Command line: ``INSTANCE [SOLUTION] [CERTIFICATE] [--progress] [--limit NAME=NUMBER]``.

Exit 0: all that the files claim is true. 1: a schedule is infeasible, or a solution beats a bound.
2: a file is malformed, too large, of another instance, or states more than it proves.
"""

import sys

if not __package__:  # run as a folder: its parent holds the package, and it must hide no module
    import os

    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    __package__ = os.path.basename(os.path.dirname(os.path.abspath(__file__)))
    __import__(__package__)

import importlib
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .exact import Interval, decimal
from .reading import LIMITS, Checked, Progress, Refused, check_stated, load, require

FAMILIES = ("oasis", "batchsched", "astraea", "edgecloud", "mlbroker", "gang")
CERTIFICATE_KEYS = {
    "format", "family", "instance", "instance_sha256", "formulation", "kind", "sense", "bound",
    "prices",
}  # fmt: skip
CLOSE = Fraction(1, 10**6)
"""Relative gap up to which a solution is called optimal; the gap itself is always printed."""


def main(arguments: Sequence[str]) -> int:
    """Check the files named; return the exit code."""
    try:
        return _run(list(arguments))
    except Refused as refused:
        _say(f"refused: {refused}")
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
        _say(f"refused: malformed: {type(error).__name__}: {error}"[:400])
    except (RecursionError, MemoryError) as error:
        _say(f"refused: too large: {type(error).__name__}")
    return 2


def _run(arguments: list[str]) -> int:
    progress = _Progress("--progress" in arguments)
    files = [argument for argument in arguments if argument != "--progress"]
    while "--limit" in files:
        at = files.index("--limit")
        name, _, number = files[at + 1].partition("=")
        require(name in LIMITS and number.isdigit(), f"--limit: one of {', '.join(LIMITS)}=NUMBER")
        LIMITS[name] = int(number)
        del files[at : at + 2]
    require(
        1 <= len(files) <= 3, "usage: INSTANCE [SOLUTION] [CERTIFICATE] [--progress] [--limit N=M]"
    )
    instance, sha256 = load(files[0])
    require(instance.get("format") == "hindsched/1", f"{files[0]}: format must be hindsched/1")
    require(instance.get("family") in FAMILIES, f"{files[0]}: family must be one of {FAMILIES}")
    family = importlib.import_module(f".{instance['family']}", __package__)
    _say(f"{instance['family']} instance {instance['name']!r}, sha256 {sha256}")
    checked: Checked | None = None
    proven: Interval | None = None
    formulations = set()
    for path in files[1:]:
        data, _ = load(path)
        for key, value in (("family", instance["family"]), ("instance_sha256", sha256)):
            require(data.get(key) == value, f"{path}: {key} must be {value}")
        formulation = data["formulation"]
        require(formulation in family.FORMULATIONS, f"{path}: formulation must be known")
        formulations.add(family.FORMULATIONS[formulation])
        require(len(formulations) == 1, f"{path}: the two files are of different formulations")
        if data.get("format") == "hindsched-solution/1":
            checked = _solution(family, instance, data)
        else:
            proven = _certificate(family, instance, data, path, progress)
    if checked is None or proven is None:
        return int(checked is not None and bool(checked.violations))
    return _compare(family.SENSE, checked, proven)


def _solution(family: Any, instance: dict[str, Any], data: dict[str, Any]) -> Checked:
    checked: Checked = family.check(instance, data)
    for broken in checked.violations[:20]:
        _say(f"infeasible: {broken.equation} at {broken.where}: by {_written(broken.amount)}")
    if len(checked.violations) > 20:
        _say(f"infeasible: {len(checked.violations) - 20} more")
    if not checked.violations:
        _say("feasible")
        _say(f"objective {_between(checked.objective)}")
        stated = data["objective"]
        off = max(stated - checked.objective.high, checked.objective.low - stated)
        require(off <= abs(stated) * CLOSE, f"objective: the file states {_written(stated)}")
    return checked


def _certificate(
    family: Any, instance: dict[str, Any], data: dict[str, Any], path: str, progress: Progress
) -> Interval:
    require(data.get("format") == "hindsched-certificate/1", f"{path}: unknown format")
    require(
        set(data) - {"layout"} == CERTIFICATE_KEYS,
        f"{path}: keys must be {sorted(CERTIFICATE_KEYS)}",
    )
    require(data["sense"] == family.SENSE, f"{path}: sense must be {family.SENSE}")
    require(data["kind"] in ("lagrangian", "lp-dual", "tree"), f"{path}: kind is unknown")
    proven: Interval = family.bound(instance, data, progress)
    _say(f"bound {_between(proven)}")
    check_stated(data["bound"], proven, family.SENSE)
    return proven


def _compare(sense: str, checked: Checked, proven: Interval) -> int:
    """Say what a solution and a bound prove together."""
    if checked.violations:
        return 1
    objective = checked.objective
    gap = proven + -objective if sense == "max" else objective + -proven
    if gap.high < 0:
        _say(
            f"contradiction: the objective {_between(objective)} beats the bound {_between(proven)}"
        )
        return 1
    size = max(abs(objective.low), abs(objective.high))
    tail = "" if gap.high == 0 else f" to within {decimal(gap.high, up=True, digits=6)}"
    word = "proves optimal" + tail if gap.high <= CLOSE * size else f"gap {_between(gap)}"
    _say(word)
    return 0


def _written(number: Fraction | int) -> str:
    text = str(number)
    return text if len(text) <= 60 else decimal(Fraction(number), up=True)


def _between(found: Interval) -> str:
    if found.low == found.high:
        exact = str(found.low)
        short = decimal(found.low, up=True)
        return exact if len(exact) <= 60 else f"in [{decimal(found.low, up=False)}, {short}]"
    return f"in [{decimal(found.low, up=False)}, {decimal(found.high, up=True)}]"


class _Progress:
    """Say on the error stream how far a proof is, twice a second at most."""

    def __init__(self, wanted: bool) -> None:
        self.wanted, self.told = wanted, time.monotonic()

    def __call__(self, done: int, of: int, what: str) -> None:
        if self.wanted and time.monotonic() - self.told > 0.5:
            self.told = time.monotonic()
            sys.stderr.write(f"{what} {done} of {of}\n")
            sys.stderr.flush()


def _say(line: str) -> None:
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

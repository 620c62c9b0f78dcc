"""Check an instance's solutions and certificates, and what each two of them prove together.

Exit code 0: all that the files claim is true. 1: a schedule is infeasible, or it beats a bound.
2: a file is malformed, too large, of another instance, or states more than it proves.
"""

import sys

if not __package__:  # run as a folder: its parent holds the package, and the folder is no path
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[0], __package__ = os.path.split(folder)
    __import__(__package__)

import argparse
import importlib
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .exact import Interval, decimal, exactly
from .reading import BUDGET, LIMITS, Checked, Progress, Refused, check_stated, load, require

FAMILIES = ("oasis", "batchsched", "astraea", "edgecloud", "mlbroker", "gang")
SOLUTION, CERTIFICATE = "hindsched-solution/1", "hindsched-certificate/1"
KEYS = {"format", "family", "instance", "instance_sha256", "formulation", "kind", "sense", "bound"}
CLOSE = Fraction(1, 10**6)
"""Relative gap up to which a solution is called optimal; the gap itself is printed with it."""


def main(arguments: Sequence[str]) -> int:
    """Check the files named; return the exit code."""
    parser = argparse.ArgumentParser(prog=__package__, description=__doc__)
    parser.add_argument("instance", metavar="INSTANCE")
    parser.add_argument("others", nargs="*", metavar="FILE", help="SOLUTION or CERTIFICATE")
    parser.add_argument("--progress", action="store_true", help="say how far a proof is")
    change = f"change one of {LIMITS}"
    parser.add_argument("--limit", action="append", default=[], metavar="NAME=NUMBER", help=change)
    try:
        return _run(parser.parse_args(arguments))
    except Refused as refused:
        _say(f"refused: {refused}")
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        _say(f"refused: malformed: {type(error).__name__}: {error}"[:400])
    except (RecursionError, MemoryError) as error:
        _say(f"refused: too large: {type(error).__name__}")
    return 2


def _run(options: argparse.Namespace) -> int:
    for name, _, number in (change.partition("=") for change in options.limit):
        known = name in LIMITS and number.isdigit()
        require(known, f"--limit: NAME=NUMBER, of {', '.join(LIMITS)}")
        LIMITS[name] = int(number)
    BUDGET["steps"] = LIMITS["steps"]
    instance, sha256 = load(options.instance)
    require(instance.get("format") == "hindsched/1", "instance: format must be hindsched/1")
    require(instance.get("family") in FAMILIES, f"instance: family must be one of {FAMILIES}")
    family = importlib.import_module(f".{instance['family']}", __package__)
    _say(f"{instance['family']} instance {instance['name']}, sha256 {sha256}")
    solutions, bounds = list[Checked](), list[Interval]()
    problems = set()
    for path in options.others:
        data, _ = load(path)
        kind = str(data.get("format"))
        require(kind in (SOLUTION, CERTIFICATE), f"{path}: format must be that of another file")
        for key in ("family", "instance"):
            require(data.get(key) == instance[key if key == "family" else "name"], f"{path}: {key}")
        require(data.get("instance_sha256") == sha256, f"{path}: is of another instance")
        problems.add(family.FORMULATIONS[data["formulation"]])
        require(len(problems) == 1, f"{path}: is of another formulation")
        if kind == SOLUTION:
            solutions.append(_solution(family, instance, data))
        else:
            bounds.append(_bound(family, instance, data, options, path))
    if any(checked.violations for checked in solutions):
        return 1
    pairs = ((checked.objective, proven) for checked in solutions for proven in bounds)
    return max((_compare(family.SENSE, *pair) for pair in pairs), default=0)


def _solution(family: Any, instance: Any, data: Any) -> Checked:
    checked: Checked = family.check(instance, data)
    for broken in checked.violations[:20]:
        amount = _text(exactly(broken.amount))
        _say(f"infeasible: {broken.equation} at {broken.where}: by {amount}")
    if len(checked.violations) > 20:
        _say(f"infeasible: {len(checked.violations) - 20} more")
    if not checked.violations:
        _say("feasible")
        _say(f"objective {_text(checked.objective)}")
        for name, found in checked.notes:
            _say(f"{name} {_text(exactly(found))}")
        stated = data["objective"]
        off = max(stated - checked.objective.high, checked.objective.low - stated)
        require(off <= abs(stated) * CLOSE, "objective: is not that of the decisions")
    return checked


def _bound(family: Any, instance: Any, data: Any, options: Any, path: str) -> Interval:
    require(set(data) - {"layout"} == KEYS | {"prices"}, f"keys must be {sorted(KEYS)} and prices")
    require(data["sense"] == family.SENSE, f"sense: must be {family.SENSE}")
    require(data["kind"] in ("lagrangian", "lp-dual", "tree"), "kind: is unknown")
    proven: Interval = family.bound(instance, data, _progress(options.progress))
    stated = data["bound"]
    _say(f"bound {_text(proven)}")
    check_stated(stated, proven, family.SENSE, f"{path}: bound")
    if abs(stated - proven.low) > CLOSE * max(abs(stated), abs(proven.low)):
        _say(f"stated {_text(exactly(stated))}, weaker than the bound that the prices prove")
    return proven


def _compare(sense: str, objective: Interval, proven: Interval) -> int:
    """Say what a feasible solution and a bound prove together."""
    gap = proven + -objective if sense == "max" else objective + -proven
    if gap.high < 0:
        _say(f"contradiction: objective {_text(objective)} beats the bound {_text(proven)}")
        return 1
    optimal = gap.high <= CLOSE * max(abs(objective.low), abs(objective.high))
    room = f" to within {decimal(gap.high, up=True, digits=6)}" if gap.high else ""
    _say(f"proves optimal{room}" if optimal else f"gap {_text(gap)}")
    return 0


def _text(found: Interval) -> str:
    """Write an exact number, or 30 digits of its two ends rounded outward."""
    exact = decimal(found.low, up=False, digits=60)
    if found.low == found.high and Fraction(exact) == found.low:
        return exact
    if found.low == found.high and len(str(found.low)) <= 60:
        return str(found.low)
    return f"in [{decimal(found.low, up=False)}, {decimal(found.high, up=True)}]"


def _progress(wanted: bool) -> Progress:
    """Say on the error stream how far a proof is, twice a second at most."""
    told = [time.monotonic()]

    def tell(done: int, of: int, what: str) -> None:
        if wanted and time.monotonic() - told[-1] > 0.5:
            told[:] = [time.monotonic()]
            sys.stderr.write(f"{what} {done} of {of}\n")

    return tell


def _say(line: str) -> None:
    sys.stdout.write(" ".join(line.split("\n")) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

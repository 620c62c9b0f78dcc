"""Check an instance's solutions and certificates, and what each two of them prove together.

A certificate of several futures comes first, and then their instances.

Exit code 0: all that the files claim is true. 1: a schedule is infeasible, or it beats a bound.
2: a file is malformed, too large, of another instance, or states more than it proves.
"""

import sys

if not __package__:  # run as a folder: its parent holds the package, and the folder is no path
    import os
    import runpy

    sys.path[0], package = os.path.split(os.path.dirname(os.path.abspath(__file__)))
    runpy.run_module(package, run_name="__main__", alter_sys=True)

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

from . import FAMILIES, MALFORMED, ExactInstance, Verdict, nonanticipative
from .exact import Interval, decimal, point
from .reading import LIMITS, RefusedFile, check_stated, limited, load, require

SOLUTION, CERTIFICATE = "hindsched-solution/1", "hindsched-certificate/1"
KEYS = {"format", "family", "instance", "instance_sha256", "formulation", "kind", "sense", "bound"}
CLOSE = Fraction(1, 10**6)
"""Relative gap up to which a solution is called optimal; the gap itself is printed with it."""


class Document(NamedTuple):
    """A file that has been read, or data that is judged as a file would be."""

    path: str
    data: Any  # its JSON, numbers exact
    sha256: str = ""  # of an instance
    known: Any = None  # what the kernel made of it before: an `ExactInstance`, or a `Verdict`


@dataclass
class Judgement:
    """What is said of files."""

    code: int = 0  # the exit code
    lines: list[str] = field(default_factory=list)
    objectives: list[Interval] = field(default_factory=list)  # of the feasible solutions
    bounds: list[Interval] = field(default_factory=list)  # of the certificates


def check_command(arguments: Sequence[str]) -> int:
    """Check the files named; return the exit code."""
    parser = argparse.ArgumentParser(prog=__package__, description=__doc__)
    parser.add_argument("instance", metavar="INSTANCE")
    parser.add_argument("others", nargs="*", metavar="FILE", help="SOLUTION or CERTIFICATE")
    change = f"change one of {LIMITS}"
    parser.add_argument("--limit", action="append", default=[], metavar="NAME=NUMBER", help=change)
    options, limits = parser.parse_args(arguments), dict(LIMITS)
    for name, _, number in (change.partition("=") for change in options.limit):
        if name not in LIMITS or not number.isdigit():
            _say(f"refused: --limit: NAME=NUMBER, of {', '.join(LIMITS)}")
            return 2
        limits[name] = int(number)
    files = (Document(path, *load(path)) for path in (options.instance, *options.others))
    return judge(files, limits, _say).code


def judge(
    documents: Iterable[Document], limits: Mapping[str, int] = LIMITS,
    say: Callable[[str], None] = lambda line: None,
) -> Judgement:  # fmt: skip
    """Judge an instance, which comes first, its solutions and certificates."""
    judgement = Judgement()

    def tell_line(line: str) -> None:
        judgement.lines.append(" ".join(line.split("\n")))
        say(judgement.lines[-1])

    try:
        with limited(limits):
            judgement.code = _judge_in_order(judgement, iter(documents), tell_line)
            return judgement
    except RefusedFile as refused:
        tell_line(f"refused: {refused}")
    except MALFORMED as error:
        tell_line(f"refused: malformed: {type(error).__name__}: {error}"[:400])
    except (RecursionError, MemoryError) as error:
        tell_line(f"refused: too large: {type(error).__name__}")
    judgement.code = 2
    return judgement


def _judge_in_order(judgement: Judgement, documents: Iterator[Document], say: Any) -> int:
    _, instance, sha256, known = next(documents)
    if instance.get("kind") in nonanticipative.KINDS:
        return _futures(judgement, instance, documents, say)
    require(instance.get("format") == "hindsched/1", "instance: format must be hindsched/1")
    require(instance.get("family") in FAMILIES, f"instance: family must be one of {FAMILIES}")
    read, problems, broken = known or ExactInstance(instance), set(), False
    say(f"{instance['family']} instance {instance['name']}, sha256 {sha256}")
    for other, data, _, verdict in documents:
        kind = str(data.get("format"))
        require(kind in (SOLUTION, CERTIFICATE), f"{other}: format must be that of another file")
        for key in ("family", "instance"):
            named = instance[key if key == "family" else "name"]
            require(data.get(key) == named, f"{other}: {key}")
        require(data.get("instance_sha256") == sha256, f"{other}: is of another instance")
        problems.add(read.family.formulations[data["formulation"]])
        require(len(problems) == 1, f"{other}: is of another formulation")
        if kind == SOLUTION:
            verdict = verdict or read.problem(data["formulation"]).check(data)
            _solution(verdict, data, say)
            broken = broken or not verdict.feasible
            judgement.objectives.append(verdict.value)
        else:
            judgement.bounds.append(_bound(read, data, say, other))
    if broken:
        return 1
    pairs = product(judgement.objectives, judgement.bounds)
    return max((_compare(read.family.sense, *pair, say) for pair in pairs), default=0)


def _futures(judgement: Judgement, data: Any, others: Iterable[Document], say: Any) -> int:
    """Check a certificate of several futures, whose instances are the other files."""
    require(data.get("format") == CERTIFICATE, "format: must be that of a certificate")
    futures = nonanticipative.futures_in_order(data, [other[1:3] for other in others])
    proven = nonanticipative.prove([ExactInstance(instance) for instance in futures], data)
    judgement.bounds.append(proven)
    who = "no online policy's expected value, by the file's weights, is better than"
    if data["claim"] == "guarantee":
        who = "the best that any online algorithm can promise of hindsight is bounded by"
    if data["claim"] == "deterministic":
        who = "the best that one which does not randomise can promise of hindsight is bounded by"
    say(f"{len(futures)} futures, policies that {data['policies']}: {who} {_text_of(proven)}")
    return 0


def _solution(verdict: Verdict, data: Any, say: Any) -> None:
    for broken in verdict.violations[:20]:
        say(f"infeasible: {broken}")
    if len(verdict.violations) > 20:
        say(f"infeasible: {len(verdict.violations) - 20} more")
    if verdict.feasible:
        say("feasible")
        say(f"objective {_text_of(verdict.value)}")
        for name, amount in verdict.notes:
            say(f"{name} {_text_of(point(amount))}")
        stated = data["objective"]
        off = max(stated - verdict.value.high, verdict.value.low - stated)
        require(off <= abs(stated) * CLOSE, "objective: is not that of the decisions")


def _bound(read: ExactInstance, data: Any, say: Any, path: str) -> Interval:
    require(set(data) - {"layout"} == KEYS | {"prices"}, f"keys must be {sorted(KEYS)} and prices")
    require(data["sense"] == read.family.sense, f"sense: must be {read.family.sense}")
    kinds = ("lagrangian", "lp-dual", "tree", "sequences")
    require(data["kind"] in kinds, "kind: is unknown")
    proven = read.problem(data["formulation"]).bound(data)
    stated = data["bound"]
    say(f"bound {_text_of(proven)}")
    check_stated(stated, proven, read.family.sense, f"{path}: bound")
    if abs(stated - proven.low) > CLOSE * max(abs(stated), abs(proven.low)):
        say(f"stated {_text_of(point(stated))}, weaker than the bound that the prices prove")
    return proven


def _compare(sense: str, objective: Interval, proven: Interval, say: Any) -> int:
    """Say what a feasible solution and a bound prove together."""
    gap = proven + -objective if sense == "max" else objective + -proven
    if gap.high < 0:
        say(f"contradiction: objective {_text_of(objective)} beats the bound {_text_of(proven)}")
        return 1
    optimal = gap.high <= CLOSE * max(abs(objective.low), abs(objective.high))
    room = f" to within {decimal(gap.high, up=True, digits=6)}" if gap.high else ""
    say(f"proves optimal{room}" if optimal else f"gap {_text_of(gap)}")
    return 0


def _text_of(number: Interval) -> str:
    """Write an exact number, or 30 digits of its two ends rounded outward."""
    exact = decimal(number.low, up=False, digits=60)
    if number.low == number.high and Fraction(exact) == number.low:
        return exact
    if number.low == number.high and len(str(number.low)) <= 60:
        return str(number.low)
    return f"in [{decimal(number.low, up=False)}, {decimal(number.high, up=True)}]"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(check_command(sys.argv[1:]))

"""Reading files that are not trusted: limits, exact decimals, and one line for what is wrong."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from .exact import Interval

LIMITS = {
    "bytes": 64_000_000,  # of a file, unpacked
    "items": 400_000,  # commas in a file: its keys and list entries
    "depth": 64,  # nesting
    "digits": 400,  # of a number, written out without an exponent
    "cells": 2_000_000,  # slots x servers (x resources)
    "chunks": 100_000,  # of edgecloud's jobs; the most workers of a job elsewhere
    "leaves": 50_000,  # of a tree
    "steps": 25_000_000,  # of all reading and searches together: below 5 seconds
}
"""What files may ask for; ``--limit NAME=NUMBER`` changes one."""
BUDGET = {"steps": 10**30}
"""Steps that are left; a run from the command line begins with its limit."""
Progress = Callable[[int, int, str], None]
"""``progress(done, all, what)``."""


class Refused(Exception):
    """A file that is malformed, too large, foreign, or states what it does not prove."""


@dataclass(frozen=True)
class Violation:
    """A broken constraint: the paper's equation, job, server and slot, and by how much."""

    equation: str
    where: str
    amount: Fraction | int


@dataclass(frozen=True)
class Checked:
    """What a solution's decisions amount to, and what else is to be said of them."""

    objective: Interval
    violations: list[Violation]
    notes: Sequence[tuple[str, Fraction]] = ()


def note(broken: list[Violation], equation: str, where: str, excess: Any) -> None:
    """Add a violation where the excess is above 0: there is no tolerance."""
    if excess > 0:
        broken.append(Violation(equation, where, excess))


def require(condition: object, text: str) -> None:
    """Refuse a file unless a condition holds."""
    if not condition:
        raise Refused(text)


def within(name: str, number: int, where: str) -> None:
    """Refuse what is larger than a limit."""
    if number > LIMITS[name]:
        rule = f"{name} must be at most {LIMITS[name]} (--limit {name}=... raises it)"
        raise Refused(f"{where}: {number}: {rule}")


def spend(steps: int) -> None:
    """Count the steps of a search before it is made, and end it where none are left."""
    BUDGET["steps"] -= steps
    if BUDGET["steps"] < 0:
        rule = f"needs more than {LIMITS['steps']} steps"
        raise Refused(f"too much work: {rule} (--limit steps=... raises it)")


def load(path: str) -> tuple[dict[str, Any], str]:
    """Read a JSON object, plain or .gz: its numbers exactly, and its hash.

    The hash is SHA-256 of the canonical JSON (sorted keys, no spaces, shortest doubles).
    """
    try:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as stream:
            raw = stream.read(LIMITS["bytes"] + 1)
        within("bytes", len(raw), path)
        within("items", raw.count(b","), path)
        spend(15 * raw.count(b","))
        text = raw.decode("utf-8-sig")
        data = json.loads(
            text, parse_float=_number, parse_int=_number, parse_constant=_constant,
            object_pairs_hook=_unique,
        )  # fmt: skip
        require(isinstance(data, dict), f"{path}: must be a JSON object")
        layer = [data]
        for depth in range(1, LIMITS["depth"] + 2):
            within("depth", depth if layer else 0, path)
            inner = (v.values() if isinstance(v, dict) else v for v in layer)
            layer = [item for part in inner for item in part if isinstance(item, dict | list)]
        plain = json.dumps(
            json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        return data, hashlib.sha256(plain.encode()).hexdigest()
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise Refused(f"{path}: {error or 'unreadable'}"[:300]) from None


def _number(text: str) -> Fraction | int:
    """The decimal that is written; one that a double does not keep would have two meanings."""
    mantissa, _, exponent = text.lower().partition("e")
    within("digits", len(mantissa) + abs(int(exponent[:9] or 0)), text[:40])
    whole, _, part = mantissa.partition(".")
    if not part and not exponent:
        return int(text)
    spend(50)
    power = int(exponent or 0) - len(part)
    found = Fraction(int(whole + part) * 10 ** max(power, 0), 10 ** max(-power, 0))
    kept = repr(float(text))
    same = kept == text or (kept != "inf" and Fraction(kept) == found)
    require(same, f"{text[:40]} has more digits than a double keeps, which is {kept}")
    return found


def _constant(text: str) -> None:
    raise Refused(f"{text} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        for key, _ in pairs:  # what stands twice is no longer there the second time
            if data.pop(key, data) is data:
                raise Refused(f"the key {key[:80]!r} stands twice in an object")
    return data


def names(records: Iterable[Mapping[str, Any]], where: str) -> list[str]:
    """Names of records, which must be unique words."""
    found = [record["name"] for record in records]
    require(all(isinstance(name, str) for name in found), f"{where}: names must be words")
    require(len(set(found)) == len(found), f"{where}: names must be unique")
    return found


def whole(value: Any, least: int, where: str) -> int:
    """Return a whole number, not below a least one."""
    require(type(value) is int and value >= least, f"{where}: must be a whole number from {least}")
    return int(value)


def number(value: Any, where: str, least: int = 0) -> Fraction | int:
    """Return a number, not below a least one."""
    proper = type(value) is int or isinstance(value, Fraction)
    require(proper and value >= least, f"{where}: must be a number from {least}")
    return value  # type: ignore[no-any-return]


def natural(data: Any, signed: frozenset[Any], where: str) -> None:
    """Refuse a negative number anywhere but below the keys that may have a sign."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            if key not in signed:
                natural(value, signed, f"{where}.{key}")
    elif not isinstance(data, str | None):
        require(data >= 0, f"{where}: must not be negative")


def span(row: Mapping[str, Any], last: int, where: str) -> range:
    """Slots of a row: ``from`` to ``to``, both inclusive, within 1..last."""
    first, end = whole(row["from"], 1, where), whole(row["to"], 1, where)
    require(first <= end <= last, f"{where}: slots must be in 1..{last} and in order")
    return range(first, end + 1)


def counts(value: Any, known: Iterable[str], where: str) -> dict[str, int]:
    """Read ``{server: n}``: n may be negative, which is a violation, not an error."""
    require(set(value) <= set(known), f"{where}: unknown server")
    require(all(type(n) is int for n in value.values()), f"{where}: counts must be whole")
    return {name: n for name, n in value.items() if n}


def jobs_of(solution: Mapping[str, Any], known: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Jobs of a solution file by name, in the instance's order; one without rows is idle."""
    listed = dict(zip(names(solution["jobs"], "jobs"), solution["jobs"], strict=True))
    found = {name: {"assignments": [], **listed.pop(name, {})} for name in known}
    require(not listed, f"jobs: {list(listed)[:3]} are not jobs of the instance")
    return found


def price_rows(
    prices: dict[str, Any], name: str, axes: Sequence[tuple[str, Iterable[Any]]], last: int | None
) -> dict[tuple[Any, ...], Any]:
    """Take a row set out of the prices, by labels: a number, or with slots a list by slot 0..last.

    Refused are unknown labels, a row priced twice and negative prices; absent rows are not listed.
    """
    found: dict[tuple[Any, ...], Any] = {}
    labels = [(axis, set(known)) for axis, known in axes]
    keys = {axis for axis, _ in axes} | ({"price"} if last is None else {"price", "from", "to"})
    for position, row in enumerate(prices.pop(name, [])):
        here = f"prices.{name}[{position}]"
        require(set(row) == keys, f"{here}: keys must be {sorted(keys)}")
        require(all(row[axis] in known for axis, known in labels), f"{here}: unknown label")
        price, label = number(row["price"], f"{here}.price"), tuple(row[axis] for axis, _ in axes)
        series = found.setdefault(label, [None] * ((last or 0) + 1))
        slots = range(1) if last is None else span(row, last, here)
        spend(10 + len(series))
        part = slice(slots.start, slots.stop)
        require(not any(old is not None for old in series[part]), f"{here}: priced twice")
        series[part] = [price] * len(slots)
    if last is None:
        return {label: price for label, (price,) in found.items()}
    return {label: [price or 0 for price in series] for label, series in found.items()}


def check_stated(stated: Any, proven: Interval, sense: str, where: str) -> None:
    """Refuse a stated bound that is better than the proven one beyond the digits of a double."""
    off = proven.low - stated if sense == "max" else stated - proven.high
    require(off <= abs(stated) / Fraction(10**15), f"{where}: states more than what is proven")

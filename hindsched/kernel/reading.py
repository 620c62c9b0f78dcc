"""Reading files that are not trusted: limits, exact decimals, and one line for what is wrong."""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from math import isfinite, lcm
from pathlib import Path
from typing import Any

from .exact import Data, Interval

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
"""What strangers' files may ask for; ``--limit NAME=NUMBER`` changes one."""
_NONE = dict.fromkeys(LIMITS, 10**30)
_LIMITS: ContextVar[dict[str, int]] = ContextVar("limits")
"""What holds inside of `limited`; outside there are none."""


@contextmanager
def limited(limits: Mapping[str, int]) -> Iterator[None]:
    """Hold the kernel to limits, given by name; the steps are counted down."""
    token = _LIMITS.set({**_LIMITS.get(_NONE), **limits})
    try:
        yield
    finally:
        _LIMITS.reset(token)


class RefusedFile(Exception):
    """A file that is malformed, too large, foreign, or states what it does not prove."""


def require(condition: object, text: str) -> None:
    """Refuse a file unless a condition holds."""
    if not condition:
        raise RefusedFile(text)


def check_limit(name: str, number: int, where: str) -> None:
    """Refuse what is larger than a limit."""
    most = _LIMITS.get(_NONE)[name]
    if number > most:
        rule = f"{name} must be at most {most} (--limit {name}=... raises it)"
        raise RefusedFile(f"{where}: {number}: {rule}")


def spend(steps: int) -> None:
    """Count the steps of a search before it is made, and end it where none are left."""
    limits = _LIMITS.get(_NONE)
    limits["steps"] -= steps
    if limits["steps"] < 0:
        raise RefusedFile("too much work: needs more steps (--limit steps=... raises it)")


def exact_numbers(data: Any) -> Any:
    """Data of a program as a file would hold it: a float is the decimal that it prints as."""
    if isinstance(data, float):
        require(isfinite(data), f"{data} is no JSON number")
        return Fraction(Decimal(repr(data)))
    if isinstance(data, dict):
        return {key: exact_numbers(value) for key, value in data.items()}
    return [exact_numbers(value) for value in data] if isinstance(data, list | tuple) else data


def load(path: str) -> tuple[dict[str, Any], str]:
    """Read a JSON object, plain or .gz: its numbers exactly, and its hash.

    The hash is SHA-256 of the canonical JSON (sorted keys, no spaces, shortest doubles).
    """
    try:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as stream:
            most = _LIMITS.get(_NONE)["bytes"]
            raw = stream.read(most + 1 if most < _NONE["bytes"] else -1)
        check_limit("bytes", len(raw), path)
        check_limit("items", raw.count(b","), path)
        spend(15 * raw.count(b","))
        text = raw.decode("utf-8-sig")
        data = json.loads(
            text, parse_float=_number, parse_int=_number, parse_constant=refuse_constant,
            object_pairs_hook=unique_keys,
        )  # fmt: skip
        require(isinstance(data, dict), f"{path}: must be a JSON object")
        check_limit("depth", depth_of(data), path)
        plain = json.dumps(
            json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        return data, hashlib.sha256(plain.encode()).hexdigest()
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise RefusedFile(f"{path}: {error or 'unreadable'}"[:300]) from None


def _number(text: str) -> Fraction | int:
    """The decimal that is written; one that a double does not keep would have two meanings."""
    mantissa, _, exponent = text.lower().partition("e")
    check_limit("digits", len(mantissa) + abs(int(exponent[:9] or 0)), text[:40])
    if mantissa == text and "." not in text:
        return int(text)
    spend(50)
    exact, double = Fraction(Decimal(text)), repr(float(text))
    same = double == text or (double != "inf" and Fraction(double) == exact)
    require(same, f"{text[:40]} has more digits than a double keeps, which is {double}")
    return exact


def refuse_constant(text: str) -> None:
    """Refuse NaN and infinities, which are no JSON."""
    raise RefusedFile(f"{text} is no JSON number")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; refuse one in which a key stands twice."""
    data = dict(pairs)
    if len(data) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise RefusedFile(f"the key {key[:80]!r} stands twice in an object")
    return data


def depth_of(data: dict[str, Any] | list[Any]) -> int:
    """Levels of nesting of an object or a list, 1 if it holds neither."""
    layer, depth = list[Any]([data]), 0
    while layer:
        inner = (v.values() if isinstance(v, dict) else v for v in layer)
        layer = [item for part in inner for item in part if isinstance(item, dict | list)]
        depth += 1
    return depth


def names(records: Iterable[Data], where: str) -> list[str]:
    """Names of records, which must be unique words."""
    listed = [record["name"] for record in records]
    require(all(isinstance(name, str) for name in listed), f"{where}: names must be words")
    require(len(set(listed)) == len(listed), f"{where}: names must be unique")
    return listed


def integer(value: Any, least: int, where: str) -> int:
    """Return a whole number, not below a least one."""
    require(type(value) is int and value >= least, f"{where}: must be a whole number from {least}")
    return int(value)


def number(value: Any, where: str) -> Fraction | int:
    """Return a number, not below 0."""
    require(type(value) in (int, Fraction) and value >= 0, f"{where}: must be a number from 0")
    return value  # type: ignore[no-any-return]


def natural(data: Any, signed: frozenset[Any], where: str) -> None:
    """Refuse a negative number anywhere but below the keys that may have a sign."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            if key not in signed:
                natural(value, signed, f"{where}.{key}")
    elif not isinstance(data, str | None):
        require(data >= 0, f"{where}: must not be negative")


def span(row: Data, where: str) -> tuple[int, int]:
    """First and last slot of a row, ``from`` and ``to``."""
    first, last = integer(row["from"], 1, where), integer(row["to"], 1, where)
    require(first <= last, f"{where}: slots must be in order")
    return first, last


def counts(value: Any, known: Iterable[str], where: str) -> dict[str, int]:
    """Read ``{server: n}``, what is not 0: counts are whole and not negative."""
    require(isinstance(value, dict) and set(value) <= set(known), f"{where}: unknown server")
    return {name: n for name, n in value.items() if integer(n, 0, where)}


def price_rows(
    prices: Data, sets: Mapping[str, Sequence[tuple[str, Iterable[Any]]]], last: int
) -> dict[str, dict[tuple[Any, ...], list[Any]]]:
    """Prices of row sets by labels, each a list by slot 0..last; absent rows are not listed.

    A set has axes and their labels. RefusedFile are unknown sets and labels, a row priced twice and
    negative prices.
    """
    tables: dict[str, dict[tuple[Any, ...], list[Any]]] = {name: {} for name in sets}
    for name, rows in prices.items():
        require(name in sets, f"prices: unknown row set {name}")
        axes = [(axis, set(known)) for axis, known in sets[name]]
        keys = {axis for axis, _ in axes} | {"price", "from", "to"}
        for position, row in enumerate(rows):
            here = f"prices.{name}[{position}]"
            require(set(row) == keys, f"{here}: keys must be {sorted(keys)}")
            require(all(row[axis] in known for axis, known in axes), f"{here}: unknown label")
            price, (first, end) = number(row["price"], f"{here}.price"), span(row, here)
            require(end <= last, f"{here}: slots must be in 1..{last}")
            label = tuple(row[axis] for axis, _ in axes)
            spend(11 + last)
            series = tables[name].setdefault(label, [None] * (last + 1))
            part = slice(first, end + 1)
            require(not any(old is not None for old in series[part]), f"{here}: priced twice")
            series[part] = [price] * (end + 1 - first)
    for series in chain.from_iterable(table.values() for table in tables.values()):
        series[:] = [price or 0 for price in series]
    return tables


def to_integers(every: Iterable[list[Any]], times: int = 1) -> int:
    """Multiply series of prices by a scale, a multiple of `times`, that makes them whole."""
    listed = list(every)
    scale = times * lcm(*(price.denominator for series in listed for price in series))
    for series in listed:
        series[:] = [int(price * scale) for price in series]
    return scale


def check_stated(stated: Any, proven: Interval, sense: str, where: str) -> None:
    """Refuse a stated bound that is better than the proven one beyond the digits of a double."""
    off = proven.low - stated if sense == "max" else stated - proven.high
    require(off <= abs(stated) / Fraction(10**15), f"{where}: states more than what is proven")

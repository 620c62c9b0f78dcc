"""Changes files at random: values, keys, rows, structure and the text itself."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

VALUES = [
    0, 1, -1, 2, 0.5, -0.0, 1e-9, 1e-300, 1e15, 2**31 - 1, 10**19, 1e300, None, True, False, "",
    "x", "s1", "j0", "tree", "\u202e", [], {}, [1], [[]], {"price": 1},
]  # fmt: skip
NUMBERS = [
    "1e400", "-0", "0.30000000000000001", "12345678901234567890.5", "1E+2", "1e-400", "NaN", "007",
    "9007199254740993", "0.1e1", "1.0", "-1e-30", "9" * 500, "1e15", "10000000", "1000000",
]  # fmt: skip
"""Ways to write a number that a parser of floats may read as another."""
BYTES = [b"", b"}", b"]", b",", b'"', b"\x00", b"\xff", b"[" * 200, b" ", b"\xef\xbb\xbf", b"-"]


def places(data: Any, path: tuple[Any, ...] = ()) -> Any:
    """Every place in JSON data."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def mutate(data: Any, draw: random.Random) -> Any:
    """Change, delete, double, move or swap values at one to three places."""
    data = copy.deepcopy(data)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        every = list(places(data))
        inner = [place for place in every if len(place) > 2]
        *parents, key = draw.choice(inner if inner and draw.random() < 0.9 else every)
        inside = data
        for parent in parents:
            inside = inside[parent]
        value, kind = inside[key], draw.random()
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and kind < 0.8:
            near = [value * (1 + 1e-9), value * (1 - 1e-7), value * 1.01, value * 0.99]
            inside[key] = draw.choice([value + 1, value - 1, value * 2, value / 3, -value, *near])
        elif kind < 0.55:
            inside[key] = draw.choice(VALUES)
        elif kind < 0.7:
            del inside[key]
        elif isinstance(inside, list):
            inside.insert(draw.randrange(len(inside) + 1), copy.deepcopy(value))
        else:
            inside[draw.choice([*inside, "more"])] = copy.deepcopy(value)
        if not data:
            break
    return data


def write(data: Any, draw: random.Random) -> bytes:
    """Text of JSON data; a few are changed as text, too."""
    text = json.dumps(data).encode()
    if draw.random() < 0.06:
        at = draw.randrange(len(text))
        text = text[:at] + draw.choice(BYTES) + text[at + draw.randrange(3) :]
    elif draw.random() < 0.06:
        numbers = [
            i for i, c in enumerate(text) if chr(c).isdigit() and not text[i - 1 : i].isalnum()
        ]
        if numbers:
            at = draw.choice(numbers)
            end = at
            while chr(text[end]) in "0123456789.eE+-":
                end += 1
            text = text[:at] + draw.choice(NUMBERS).encode() + text[end:]
    return text

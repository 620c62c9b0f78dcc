"""A search's state as a file, from which it goes on as if it had never stopped."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hindsched.analysis.worst.search import Member, Search
from hindsched.errors import InputError
from hindsched.instances.io import read_json, write_json
from hindsched.instances.search.space import SearchSpace
from hindsched.json_types import JsonObject

STATE = "search.json"
FORMAT = "hindsched-search/1"


def write_state(search: Search, question: JsonObject, folder: Path) -> None:
    """Write what going on needs, and what was asked."""
    write_json(
        {
            "format": FORMAT,
            "question": question,
            "generation": search.generation,
            "seconds": search.seconds,
            "polished": _word(search.polished),
            "counts": dict(search.counts),
            "trace": search.trace,
            "failure": search.failure,
            "best": None if search.best is None else _written(search.best),
            "best_from": search.best_from,
            "members": [_written(member) for member in search.members],
            "known": {key: [stage, _word(score)] for key, (stage, score) in search.known.items()},
        },
        folder / STATE,
    )


def read_state(search: Search, question: JsonObject, folder: Path) -> None:
    """Bring a search to where its file left off.

    Raises
    ------
    InputError
        If there is no such file, it is damaged, or it was asked something else.
    """
    path = folder / STATE
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(str(path), "(no search)", f"must be a {FORMAT} file")
    asked = data.get("question")
    for key, value in question.items():
        if not isinstance(asked, dict) or asked.get(key) != value:
            told = asked.get(key) if isinstance(asked, dict) else asked
            raise InputError(f"resume.{key}", value, f"must be as before: {told}")
    try:
        search.generation = int(data["generation"])
        search.seconds = float(data["seconds"])
        search.polished = _number(data["polished"])
        search.counts = Counter(data["counts"])
        search.trace = list(data["trace"])
        search.failure = data["failure"]
        search.best_from = data["best_from"]
        search.best = None if data["best"] is None else _read(search.space, data["best"])
        search.members = [_read(search.space, item) for item in data["members"]]
        search.known = {
            key: (stage, _number(score)) for key, (stage, score) in data["known"].items()
        }
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(str(path), f"{type(error).__name__}: {error}", "is damaged") from None


def _written(member: Member) -> JsonObject:
    return {"data": member.data, "score": _word(member.score), "age": member.age}


def _read(space: SearchSpace, item: Mapping[str, Any]) -> Member:
    space.instance(item["data"])  # a candidate that breaks a rule is no member
    return Member(item["data"], _number(item["score"]), int(item["age"]))


def _word(number: float) -> float | str:
    """A number for JSON, which has no infinities."""
    return number if math.isfinite(number) else str(number)


def _number(word: Any) -> float:
    return float(word)

"""A score's page, a board of many, and a scored folder judged again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from hindsched.analysis.score.judge import INSTANCE, OWN, judged, paired, standings
from hindsched.errors import HindschedError, InputError
from hindsched.instances.generators.registry import generate
from hindsched.instances.io import read, read_json, write_text

FORMAT, RESULT, PAGE = "hindsched-score/1", "score.json", "score.html"
JUDGED = ("score", "at_most", "objective", "bound")
FOLLOWS = ("combined_score", "at_most", "interval", "public_score", "ladder")
SHOWN = ("instance", *JUDGED, "status", "reason", "seconds_a_decision", "seconds_longest")
NOTE = (
    "A score is the mean over instances of ALG/OPT when maximising, OPT/ALG when minimising, at "
    "least: the exact kernel judged every schedule and every denominator. Intervals are of the "
    "mean over resampled instances, 95 %."
)


def read_score(folder: str | Path) -> dict[str, Any]:
    """What a scored folder says; `InputError` for another one."""
    data = read_json(Path(folder) / RESULT)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{folder}/{RESULT}", "format", f"must be {FORMAT}")
    return data


def verify_score(folder: str | Path) -> list[str]:
    """Judge a folder again without running the candidate: what does not follow, a line each."""
    place, data, wrong = Path(folder), read_score(folder), list[str]()
    for kind, key in (("hidden", "instances"), ("public", "public")):
        named = [row["instance"] for row in data[key]]
        if named != [f"i{number:02d}" for number in range(1, len(named) + 1)]:
            wrong.append(f"{kind}: the rows must be i01, i02, ..., each once")
    if data["seeds"] is not None and len(data["seeds"]) != len(data["instances"]):
        wrong.append("there must be as many seeds as hidden instances")
    if wrong:
        return wrong
    for kind, key in (("hidden", "instances"), ("public", "public")):
        for row in data[key]:
            here = f"{kind} {row['instance']}"
            try:
                found = judged(place / kind / row["instance"])[OWN]
            except HindschedError as error:
                wrong.append(f"{here}: {error}")
                continue
            wrong += [f"{here}: {name} is {found[name]!r}, not {row[name]!r}"
                      for name in JUDGED if found[name] != row[name]]  # fmt: skip
    if not wrong:
        again = standings(place, data["instances"], data["public"])
        wrong = [f"{name} is {again[name]!r}, not {data[name]!r}"
                 for name in FOLLOWS if again[name] != data[name]]  # fmt: skip
    for number, seed in enumerate(data["seeds"] or (), 1):
        made, drawn = f"i{number:02d}", generate(data["family"], data["preset"], seed)
        if drawn.sha256() != read(place / "hidden" / made / INSTANCE).sha256():
            wrong.append(f"hidden {made}: is not what its seed makes")
    return wrong


def write_page(data: Mapping[str, Any], folder: Path) -> None:
    """Write the page of a score, which tells of the hidden instances: not for the author."""
    sums = {name: data[name] for name in ("combined_score", "at_most", "interval", "sandbox",
                                          "family", "suite", "preset", "made")}  # fmt: skip
    tables = {
        "In short": [sums],
        "Hidden instances": [{name: row.get(name) for name in SHOWN} for row in data["instances"]],
        "Public instances": [{name: row.get(name) for name in SHOWN} for row in data["public"]],
        "The ladder on the hidden instances, and the candidate beside it": data["ladder"],
    }
    write_text(_page(f"The score of {data['candidate']}", tables), folder / PAGE)


def board(folders: Sequence[str | Path]) -> list[dict[str, Any]]:
    """Candidates, best first; equal scores share a rank; who may be the best is a ``tie``.

    `InputError` for a folder of other instances than the first.
    """
    found = [(str(folder), read_score(folder)) for folder in folders]
    hashes = [
        [read(Path(folder, "hidden", row["instance"], INSTANCE)).sha256()
         for row in data["instances"]] for folder, data in found
    ]  # fmt: skip
    for (folder, _), own in zip(found, hashes, strict=True):
        if own != hashes[0]:
            raise InputError("board", folder, f"must be of the instances of {found[0][0]}")
    found.sort(key=lambda item: (-item[1]["combined_score"], item[1]["made"]))
    scores = [data["combined_score"] for _, data in found]
    rows: list[dict[str, Any]] = []
    for folder, data in found:
        mine, best = ([row["score"] for row in each["instances"]] for each in (data, found[0][1]))
        rows.append({
            "rank": 1 + scores.index(data["combined_score"]),
            "candidate": data["candidate"],
            "score": data["combined_score"],
            "at_most": data["at_most"],
            "interval": data["interval"],
            "tie": "tie" if paired(mine, best)["difference_in"][1] >= 0 else "",
            "failed": sum(row["status"] != "ok" for row in data["instances"]),
            "sandbox": data["sandbox"],
            "made": data["made"],
            "folder": folder,
        })  # fmt: skip
    return rows


def write_board(rows: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Write a board as a page."""
    write_text(_page("Candidates, best first", {"Board": rows}), path)


def _page(title: str, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """A page of tables; every text in it is text."""
    import pandas as pd

    style = (files("hindsched.analysis.report") / "page.css").read_text(encoding="utf-8")
    parts = [f"<h2>{escape(head)}</h2>\n<div class='scroll'>"
             f"{pd.DataFrame(rows).to_html(index=False, na_rep='')}</div>"
             for head, rows in tables.items() if rows]  # fmt: skip
    policy = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; " \
             "style-src 'unsafe-inline'\">"  # fmt: skip
    head = f"<meta charset='utf-8'>{policy}<title>{escape(title)}</title><style>{style}</style>"
    body = "\n".join([f"<h1>{escape(title)}</h1>", f"<p class='note'>{NOTE}</p>", *parts])
    return f"<!DOCTYPE html>\n<html lang='en'><head>{head}</head>\n<body>{body}</body></html>\n"

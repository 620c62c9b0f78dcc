"""The suite ``worst``: the worst instances that ``hindsched worst`` found for every algorithm.

They are small files in ``instances/<family>/worst``; ``docs/guides/worst.md`` tells what goes
wrong on each.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from hindsched.instances.base import Instance
from hindsched.instances.io import parse_instance, read_json

WORST = "worst"


def witness_files(family: str) -> list[Path]:
    """Files of a family's witnesses, by name; none where it has none."""
    folder = Path(str(files("hindsched.instances") / family / WORST))
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def witnesses(paths: list[Path]) -> list[Instance]:
    """The instances of some files."""
    return [parse_instance(read_json(path), str(path)) for path in paths]

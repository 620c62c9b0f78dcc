"""The check of a folder that ``adversary`` wrote: that of ``foresight``, and what follows."""

from __future__ import annotations

from pathlib import Path

from hindsched.analysis.adversary.adversary import FORMAT, RESULT, Adversary
from hindsched.analysis.foresight.folder import differences, read_foresight
from hindsched.errors import InputError
from hindsched.instances.io import read_json


def verify_adversary(folder: str | Path) -> list[str]:
    """What does not follow from the files of a folder, a line each."""
    stated = read_json(Path(folder) / RESULT)
    if not isinstance(stated, dict) or stated.get("format") != FORMAT:
        raise InputError(f"{folder}/{RESULT}", "format", f"must be {FORMAT}")
    wrong, found = read_foresight(folder)
    return wrong + ([] if found is None else differences(stated, Adversary(found).result()))

"""Taking a record into the library: only if the exact kernel accepts it and it is better."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hindsched.analysis.exact import exact_check
from hindsched.analysis.library.records import (
    FORMATS,
    Part,
    Records,
    is_better,
    stated,
)
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.generators.registry import make
from hindsched.instances.io import read_json
from hindsched.instances.recipes import Recipe, find_recipe
from hindsched.json_types import JsonObject
from hindsched.solutions.base import JOB_KEYS, SOLUTION_KEYS
from hindsched.solvers.certificates.certificate import KEYS

ROUNDING = 1e-11
"""What a sum of floating point may be off by, relatively; no more is forgiven."""


@dataclass(frozen=True)
class Submission:
    """What became of a file that was offered.

    Parameters
    ----------
    recipe : Recipe
        The instance that it belongs to.
    part : {"solution", "certificate"}
        What it is.
    value : float
        Its objective or bound, which the kernel has recomputed.
    before : float, optional
        The record that stood before.
    kept : bool
        Whether it took that place; False if it is true but no better.

    Examples
    --------
    >>> from hindsched.instances.recipes import find_recipe
    >>> Submission(find_recipe("oasis/library-small/h3-s2"), "solution", 2.0, 1.0, True).kept
    True
    """

    recipe: Recipe
    part: Part
    value: float
    before: float | None
    kept: bool

    def __str__(self) -> str:
        stood = "nothing" if self.before is None else f"{self.before:.10g}"
        end = f"is kept, {stood} stood" if self.kept else f"is no better than {stood}"
        return f"{self.recipe.name}: {self.part} of {self.value:.10g} {end}"


def submit(path: str | Path, records: Records) -> Submission:
    """Offer a solution or certificate file of an instance of the library.

    Parameters
    ----------
    path : str or Path
        The file.
    records : Records
        Where it goes if it is better; a file that is not better changes nothing.

    Raises
    ------
    InputError
        If it is no such file, belongs to no instance of the library, is of another formulation
        than the instance's default, or the kernel refuses it.
    SolveFailed
        If the kernel finds that its claim is false, or that it contradicts the other record.
    """
    data = read_json(path)
    part = FORMATS.get(str(data.get("format"))) if isinstance(data, dict) else None
    if part is None:
        raise InputError(str(path), _format(data), f"must have the format {' or '.join(FORMATS)}")
    if not isinstance(data.get("instance"), str):
        raise InputError(f"{path} instance", data.get("instance"), "must name an instance")
    _check_keys(data, part)
    recipe = find_recipe(data["instance"])
    content = json.dumps(data, separators=(",", ":")).encode() + b"\n"  # it may be compressed
    return offer(recipe, make(recipe), part, content, records)


def offer(
    recipe: Recipe, instance: Instance, part: Part, content: bytes, records: Records
) -> Submission:
    """Keep a record's bytes if they are true, as the kernel says, and better; see `submit`.

    What is false is refused whether or not it would have been better.
    """
    where = f"{recipe.name} {part}"
    data = json.loads(content)
    if data.get("formulation") != instance.formulations[0]:
        rule = f"must be {instance.formulations[0]}, the library's"
        raise InputError(f"{where} formulation", data.get("formulation"), rule)
    value = stated(data, part, where)
    before = records.claim(recipe, part)
    other = [path for path in records.files(recipe) if path != records.path(recipe, part)]
    with tempfile.TemporaryDirectory() as folder:
        offered = Path(folder) / f"{part}.json"
        offered.write_bytes(content)
        found = exact_check(instance, offered, *other)
    assert found is not None, "no time was set"
    if found.code == 2:
        raise InputError(where, value, found.verdict)
    if found.code:
        raise SolveFailed(f"{where} of {value!r}: {found.verdict}")
    if part == "solution":
        objective = found.objective
        assert objective is not None
        if abs(value - objective) > ROUNDING * abs(value):
            rule = f"must be its decisions' objective, {objective!r}, to 11 digits"
            raise InputError(f"{where} objective", value, rule)
    better = is_better(recipe, part, value, before)
    if better:
        records.keep(recipe, part, content)
    return Submission(recipe, part, value, before, kept=better)


def _check_keys(data: JsonObject, part: Part) -> None:
    """Refuse fields that nobody reads: a record is published as it is."""
    known = KEYS if part == "certificate" else SOLUTION_KEYS
    jobs = data.get("jobs") if part == "solution" else None
    fields = {f"{part} {key}": value for key, value in data.items() if key not in known}
    for index, job in enumerate(jobs if isinstance(jobs, list) else ()):
        named = job if isinstance(job, dict) else {}
        fields |= {f"jobs[{index}].{key}": named[key] for key in named if key not in JOB_KEYS}
    for where, value in fields.items():
        raise InputError(where, value, "unknown field")


def _format(data: object) -> object:
    return data.get("format", "(absent)") if isinstance(data, dict) else type(data).__name__

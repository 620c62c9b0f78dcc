"""Whether a folder of results is what was written: by hash at once, by recomputing on demand.

A record carries the hashes of the files that belong to it and a seal, the hash of its own content.
That finds what is damaged, lost or edited by hand. Who makes a new seal as well is found by the
check itself, which trusts no record: the objective is recomputed from the schedule, the bound from
the certificate's prices.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hindsched.analysis.records import Record
from hindsched.analysis.tasks import OFFLINE, Task
from hindsched.errors import HindschedError
from hindsched.instances.base import Instance, canonical_json

SAMPLE = 3
"""Records whose schedules and certificates a report recomputes unless it is asked for all."""
SAME_OBJECTIVE = 1e-9
"""Relative difference up to which a recomputed number is the recorded one: the last digits."""


@dataclass(frozen=True)
class Damage:
    """Something in a folder of results that is not what was written.

    Parameters
    ----------
    task : str
        Key of the task that makes it again.
    what : str
        What is wrong, with the file's name.
    """

    task: str
    what: str

    def __str__(self) -> str:
        return f"{self.task}: {self.what}"


def sealed(record: Record) -> Record:
    """The record with the hash of its content."""
    content = record.copy()
    content.pop("seal", None)
    content["seal"] = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    return content


def is_sealed(record: Record) -> bool:
    """Whether a record's content is what its seal says."""
    try:
        return record.get("seal") == sealed(record)["seal"]
    except (ValueError, TypeError):  # lone surrogates have no hash
        return False


def file_hash(path: Path) -> str | None:
    """Hash of a file; None if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def damaged_files(record: Record, files: Mapping[str, Path]) -> list[str]:
    """What is wrong with the files that belong to a record, by their hashes.

    Parameters
    ----------
    record : Record
        A record whose seal holds; its ``files`` says which files it has, and their hashes.
    files : mapping
        Path of each kind of file.
    """
    found: list[str] = []
    for kind, expected in record.get("files", {}).items():
        path = files[kind]
        if not path.is_file():
            found.append(f"{path.parent.name}/{path.name} is missing")
        elif file_hash(path) != expected:
            found.append(f"{path.parent.name}/{path.name} is not what was written")
    return found


def recomputed(
    record: Record, task: Task, instance: Instance, files: Mapping[str, Path]
) -> str | None:
    """Recompute what a record says from its schedule and its certificate.

    Returns
    -------
    str or None
        What does not agree; None if everything does.
    """
    from hindsched.analysis.verify import verify
    from hindsched.instances.io import read_json
    from hindsched.solvers.certificates.file import verify_certificate

    try:
        if "solution" in record["files"]:
            checked = verify(instance, files["solution"])
            if not _same(checked.objective, record["objective"]):
                found, said = checked.objective, record["objective"]
                return f"the objective is {found:.10g} by its schedule, not {said}"
            if len(checked.violations) != len(record.get("violations", ())):
                return f"its schedule breaks {len(checked.violations)} constraints"
        elif record.get("objective") is not None:
            return f"the objective {record['objective']} has no schedule"
        if "certificate" in record["files"]:
            where = str(files["certificate"])
            proven = verify_certificate(instance, read_json(where), where).certificate.bound
            said = record["bound"] if record["certified"] else record["certified_bound"]
            if not _same(proven, said, 1e-6):
                return f"the bound is {proven:.10g} by its certificate, not {said}"
        elif task.kind == OFFLINE and record.get("certified"):
            return "the bound is said to be certified but has no certificate"
    except HindschedError as error:
        return str(error)
    return None


def sample(records: Sequence[Record], most: int = SAMPLE) -> list[Record]:
    """Some of the records, offline solves first, another choice for other records."""

    def rank(record: Record) -> tuple[bool, str]:
        return record["kind"] != OFFLINE, str(record.get("seal"))

    by_rank = sorted((record for record in records if record["status"] == "ok"), key=rank)
    offline = [record for record in by_rank if record["kind"] == OFFLINE][: most // 2 + 1]
    online = [record for record in by_rank if record["kind"] != OFFLINE]
    return [*offline, *online[: most - len(offline)]]


def _same(one: object, other: object, tolerance: float = SAME_OBJECTIVE) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return False
    return one == other or math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-9)

"""A folder of results, from which every table and the report can be made again.

::

    manifest.json          what was compared, with which settings and versions, the task list, and
                           once the tables are written the hash of every file
    instances/NAME.json    the instances themselves
    tasks/TASK.json        one file a finished task; it is written last, so it marks the task done
    solutions/TASK.json    the schedule that a task found
    certificates/NAME.json prices that prove the bound of an instance
    runs.csv, optima.csv, jobs.csv, slots.csv (and .parquet where pyarrow is installed)
    report.html
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import math
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from hindsched.analysis.comparison import Comparison
from hindsched.analysis.tables import jsonable, to_csv
from hindsched.analysis.tasks import OFFLINE, Record, Task, check_record, file_name
from hindsched.errors import HindschedError, InputError
from hindsched.instances.base import Instance
from hindsched.instances.io import read, read_json, write, write_bytes, write_json, write_text
from hindsched.json_types import Keywords
from hindsched.solvers.door.result import versions

RESULTS_FORMAT = "hindsched-results/1"
MANIFEST, REPORT = "manifest.json", "report.html"
MANIFEST_KEYS = {
    "created": str, "settings": dict, "versions": dict, "instances": dict, "tasks": list,
    "files": dict,
}  # fmt: skip
SAME_OBJECTIVE, SAME_BOUND = 1e-9, 1e-6  # recomputed and recorded agree up to this share


class ResultStore:
    """A comparison's folder, with its ``tasks`` and the ``run_limit`` of each run in seconds."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self.folder, self.manifest = folder, dict(manifest)
        self.tasks = [Task.of(data) for data in manifest["tasks"]]
        self.run_limit: float | None = manifest["settings"].get("run_limit")

    @classmethod
    def create(
        cls,
        folder: str | Path,
        instances: Sequence[Instance],
        tasks: Sequence[Task],
        settings: Keywords | None = None,
    ) -> Self:
        """Make a new store; `InputError` if the folder is not empty or cannot be written."""
        path = Path(folder)
        if (path / MANIFEST).exists():
            raise InputError("out", str(path), "holds results already: resume them or go elsewhere")
        check_folder(path)
        if any(item.name != "instances" for item in path.iterdir()):
            raise InputError("out", str(path), "must be a new or an empty folder")
        for instance in instances:
            write(instance, path / "instances" / f"{file_name(instance.name)}.json")
        manifest = {
            "format": RESULTS_FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "settings": jsonable(dict(settings or {})),
            "versions": versions(),
            "instances": {instance.name: instance.sha256() for instance in instances},
            "tasks": [task.to_dict() for task in tasks],
            "files": {},
        }
        write_json(manifest, path / MANIFEST)
        return cls(path, manifest)

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open a store; `InputError` if the folder holds none."""
        path = Path(folder)
        where = str(path / MANIFEST)
        if not (path / MANIFEST).is_file():
            raise InputError("results", str(path), f"must be a folder of results with {MANIFEST}")
        manifest = read_json(where)
        if not isinstance(manifest, dict) or manifest.get("format") != RESULTS_FORMAT:
            raise InputError(where, manifest, f"must have format {RESULTS_FORMAT}")
        manifest.setdefault("files", {})
        for name, kind in MANIFEST_KEYS.items():
            if not isinstance(manifest.get(name), kind):
                value = manifest.get(name, "(absent)")
                raise InputError(f"{where}: {name}", value, "must be as it was written")
        limit = manifest["settings"].get("run_limit")
        if limit is not None and type(limit) not in (int, float):
            raise InputError(f"{where}: settings.run_limit", limit, "must be a number of seconds")
        return cls(path, manifest)

    @cached_property
    def instances(self) -> list[Instance]:
        """The instances, read once, checked against the hashes of the manifest."""
        instances = []
        for name, sha256 in self.manifest["instances"].items():
            path = self.folder / "instances" / f"{file_name(name)}.json"
            instances.append(read(path))
            if (instance_hash := instances[-1].sha256()) != sha256:
                raise InputError(str(path), instance_hash, f"must have the hash {sha256}")
        return instances

    def add(self, record: Record) -> None:
        """Keep a task's record; its file appears in one step, after all that belongs to it."""
        content, paths = dict(record), self._paths(record)
        stale = {self._name(path) for path in paths.values()} & set(self.manifest["files"])
        if stale:  # it is made again, and its hashes with the tables
            for name in stale:
                del self.manifest["files"][name]
            write_json(self.manifest, self.folder / MANIFEST)
        parts = {kind: content.pop(kind, None) for kind in ("solution", "certificate")}
        for kind, data in {**parts, "task": content}.items():
            if data is not None:
                path = paths[kind]
                if path.exists() and not path.is_file() and not path.is_dir():
                    path.unlink()  # a link to a device, or a pipe, would swallow what is written
                write_json(data, path)

    def records(self) -> list[Record]:
        """Records of the tasks, failed ones included, in their order, without damaged ones."""
        return self._read_tasks()[0]

    def damages(self) -> dict[str, str]:
        """What of records, schedules and certificates is not as it was written, by the task."""
        return self._read_tasks()[1]

    def _read_tasks(self) -> tuple[list[Record], dict[str, str]]:
        records, damages = list[Record](), dict[str, str]()
        for task in self.tasks:
            record, wrong = None, list[str]()
            for kind, path in self._paths_of(task).items():
                name = self._name(path)
                expected = self.manifest["files"].get(name)
                if expected is not None and not path.is_file():
                    wrong.append(f"{name} is missing")
                elif expected is not None and _file_hash(path) != expected:
                    wrong.append(f"{name} is not what was written")
                elif kind == "task" and path.is_file():
                    try:
                        record = check_record(read_json(path), task, name)
                    except InputError as error:
                        wrong.append(str(error))
            if wrong:
                damages[task.key] = "; ".join(wrong)
            elif record is not None:
                records.append(record)
        return records, damages

    def recompute(self) -> dict[str, str]:
        """What schedules and certificates say otherwise than the records, by the task."""
        instances = {instance.name: instance for instance in self.instances}
        damages = {}
        for record in self.records():
            if record["status"] == "ok":
                paths = self._paths(record)
                what = _contradiction(record, instances[record["instance"]], paths)
                if what is not None:
                    damages[record["task"]] = what
        return damages

    def missing(self, records: Sequence[Record] | None = None) -> list[Task]:
        """Tasks to run: not yet successful, or with something damaged."""
        known = self.records() if records is None else records
        done = {record["task"] for record in known if record["status"] == "ok"}
        return [task for task in self.tasks if task.key not in done]

    def remove_leftovers(self) -> None:
        """Remove what a killed process left half written."""
        for path in self.folder.rglob(".*.part"):
            path.unlink(missing_ok=True)

    def _paths_of(self, task: Task) -> dict[str, Path]:
        return self._paths({"task": task.key, "instance": task.instance, "kind": task.kind})

    def _paths(self, record: Record) -> dict[str, Path]:
        """Files of a task: its record, its schedule, and of an offline one its certificate."""
        key = record["task"]
        paths = {name: self.folder / f"{name}s" / f"{key}.json" for name in ("task", "solution")}
        if record["kind"] == OFFLINE:
            name = f"{file_name(record['instance'])}.json"
            paths["certificate"] = self.folder / "certificates" / name
        return paths

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def solution_file(self, record: Record) -> Path | None:
        """Path of the schedule that a task found, or None if it found none."""
        path = self._paths(record)["solution"]
        return path if path.is_file() else None

    def write_tables(self, comparison: Comparison | None = None) -> None:
        """Write the tidy tables of the records (parquet too with pyarrow), and all hashes."""
        comparison = comparison or Comparison(self.records())
        tables = {
            "runs": comparison.to_frame(),
            "optima": comparison.optima_frame(),
            "jobs": comparison.job_frame(),
            "slots": comparison.slot_frame(),
        }
        for name, frame in tables.items():
            write_text(to_csv(frame), self.folder / f"{name}.csv")
            if importlib.util.find_spec("pyarrow") is not None:
                buffer = io.BytesIO()
                frame.to_parquet(buffer, index=False)
                write_bytes(buffer.getvalue(), self.folder / f"{name}.parquet")
        bad = self.damages()
        for task in self.tasks:
            for path in self._paths_of(task).values():
                if task.key not in bad and path.is_file():
                    self.manifest["files"][self._name(path)] = _file_hash(path)
        write_json(self.manifest, self.folder / MANIFEST)


def _file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _contradiction(record: Record, instance: Instance, paths: Mapping[str, Path]) -> str | None:
    """What a schedule or a certificate says otherwise than its record does; None if nothing."""
    from hindsched.analysis.verify import verify
    from hindsched.solvers.certificates.file import verify_certificate

    try:
        if paths["solution"].is_file():
            checked = verify(instance, paths["solution"])
            recorded = record["objective"]
            if not _same(checked.objective, recorded, SAME_OBJECTIVE):
                return f"the objective is {checked.objective:.10g} by its schedule, not {recorded}"
            if len(checked.violations) != len(record.get("violations", ())):
                return f"its schedule breaks {len(checked.violations)} constraints"
        elif record.get("objective") is not None:
            return f"the objective {record['objective']} has no schedule"
        if "certificate" in paths and paths["certificate"].is_file():
            where = str(paths["certificate"])
            proven = verify_certificate(instance, read_json(where), where).certificate.bound
            recorded = record["bound"] if record["certified"] else record["certified_bound"]
            if not _same(proven, recorded, SAME_BOUND):
                return f"the bound is {proven:.10g} by its certificate, not {recorded}"
        elif record.get("certified"):
            return "the bound is said to be certified but has no certificate"
    except HindschedError as error:
        return str(error)
    return None


def _same(value: float, other: object, tolerance: float) -> bool:
    return isinstance(other, int | float) and (
        value == other or math.isclose(value, other, rel_tol=tolerance, abs_tol=1e-9)
    )


def check_folder(folder: str | Path) -> Path:
    """Make sure that a folder exists and can be written; `InputError` if not."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        rule = f"must be a folder that can be written ({error.strerror or error})"
        raise InputError("out", str(path), rule) from None
    return path

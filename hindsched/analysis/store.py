"""The result store: a folder from which every table and the report can be made again.

::

    manifest.json          what was compared, with which settings and versions, and the task list
    instances/NAME.json    the instances themselves
    tasks/TASK.json        one file a finished task; it is written last, so it marks the task done
    solutions/TASK.json    the schedule that a task found
    certificates/NAME.json prices that prove the bound of an instance
    runs.csv, optima.csv, jobs.csv, slots.csv (and .parquet where pyarrow is installed)
    report.html
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hindsched.analysis.comparison import Comparison
from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.tasks import Record, Task, check_record, file_name
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.io import read, read_json, write, write_json, write_text
from hindsched.solvers.versions import versions

if TYPE_CHECKING:
    import pandas as pd

RESULTS_FORMAT = "hindsched-results/1"
MANIFEST = "manifest.json"
MANIFEST_KEYS = {
    "created": str, "settings": dict, "versions": dict, "instances": dict, "tasks": list,
}  # fmt: skip
REPORT = "report.html"


class ResultStore:
    """A comparison's folder.

    Use `create` for a new one and `open` for one that exists.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self.folder = folder
        self.manifest = dict(manifest)

    @classmethod
    def create(
        cls,
        folder: str | Path,
        instances: Sequence[Instance],
        tasks: Sequence[Task],
        settings: Mapping[str, Any] | None = None,
    ) -> Self:
        """Make a new store.

        Parameters
        ----------
        folder : str or Path
            A folder that does not exist yet or is empty.
        instances : sequence of Instance
            What is compared on.
        tasks : sequence of Task
            What there is to do.
        settings : mapping, optional
            Settings of the comparison as the user gave them.

        Raises
        ------
        InputError
            If the folder cannot be written or holds something already.
        """
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
        }
        write_json(manifest, path / MANIFEST)
        return cls(path, manifest)

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open a store; `InputError` if the folder holds none."""
        path = Path(folder)
        if not (path / MANIFEST).is_file():
            raise InputError("results", str(path), f"must be a folder of results with {MANIFEST}")
        manifest = read_json(path / MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("format") != RESULTS_FORMAT:
            raise InputError(str(path / MANIFEST), manifest, f"must have format {RESULTS_FORMAT}")
        for name, kind in MANIFEST_KEYS.items():
            if not isinstance(manifest.get(name), kind):
                where = f"{path / MANIFEST}: {name}"
                raise InputError(where, manifest.get(name, "(absent)"), "must be as it was written")
        for data in manifest["tasks"]:
            Task.of(data)
        return cls(path, manifest)

    @property
    def tasks(self) -> list[Task]:
        """Everything there is to do."""
        return [Task.of(data) for data in self.manifest["tasks"]]

    def instances(self) -> list[Instance]:
        """The instances, checked against the hashes of the manifest."""
        found: list[Instance] = []
        for name, sha256 in self.manifest["instances"].items():
            path = self.folder / "instances" / f"{file_name(name)}.json"
            instance = read(path)
            if instance.sha256() != sha256:
                raise InputError(str(path), instance.sha256(), f"must have the hash {sha256}")
            found.append(instance)
        return found

    def add(self, record: Record) -> None:
        """Keep a task's record; its file appears in one step, after all that belongs to it."""
        record = dict(record)
        solution = record.pop("solution", None)
        certificate = record.pop("certificate", None)
        if solution is not None:
            write_json(solution, self.folder / "solutions" / f"{record['task']}.json")
        if certificate is not None:
            name = file_name(record["instance"])
            write_json(certificate, self.folder / "certificates" / f"{name}.json")
        write_json(record, self._task_file(record["task"]))

    def records(self) -> list[Record]:
        """Records of the tasks that have one, failed ones included, in the order of the tasks.

        Raises
        ------
        InputError
            If a record is damaged.
        """
        return [self._record(task) for task in self.tasks if self._task_file(task.key).is_file()]

    def missing(self) -> list[Task]:
        """Tasks that have not succeeded yet, or whose record is damaged."""
        return [task for task in self.tasks if not self._is_done(task)]

    def _record(self, task: Task) -> Record:
        path = self._task_file(task.key)
        return check_record(read_json(path), task, str(path))

    def _is_done(self, task: Task) -> bool:
        if not self._task_file(task.key).is_file():
            return False
        try:
            return bool(self._record(task)["status"] == "ok")
        except InputError:
            return False

    def solution_file(self, record: Record) -> Path | None:
        """Path of the schedule that a task found, or None if it found none."""
        path = self.folder / "solutions" / f"{record['task']}.json"
        return path if path.is_file() else None

    def write_tables(self) -> list[Path]:
        """Write the tidy tables from the records; parquet too where pyarrow is installed."""
        comparison = Comparison(self.records())
        tables = {
            "runs": comparison.to_frame(),
            "optima": comparison.optima_frame(),
            "jobs": comparison.job_frame(),
            "slots": comparison.slot_frame(),
        }
        paths: list[Path] = []
        for name, frame in tables.items():
            path = self.folder / f"{name}.csv"
            write_text(frame.to_csv(index=False), path)
            paths.append(path)
            parquet = _write_parquet(frame, path.with_suffix(".parquet"))
            paths += [parquet] if parquet is not None else []
        return paths

    def _task_file(self, key: str) -> Path:
        return self.folder / "tasks" / f"{key}.json"


def check_folder(folder: str | Path) -> Path:
    """Make sure that a folder exists and can be written; `InputError` if not."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            "out", str(path), f"must be a folder that can be written ({reason})"
        ) from None
    return path


def _write_parquet(frame: pd.DataFrame, path: Path) -> Path | None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return None
    frame.to_parquet(path, index=False)
    return path

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

import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from hindsched.analysis.comparison import Comparison
from hindsched.analysis.integrity import (
    Damage,
    damaged_files,
    file_hash,
    is_sealed,
    recomputed,
    sample,
    sealed,
)
from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.records import Record
from hindsched.analysis.spreadsheets import for_spreadsheets
from hindsched.analysis.tasks import Task, check_record, file_name
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.io import read, read_json, write, write_bytes, write_json, write_text
from hindsched.json_types import JsonObject, Keywords
from hindsched.solvers.door.versions import versions

if TYPE_CHECKING:
    import pandas as pd

RESULTS_FORMAT = "hindsched-results/1"
MANIFEST = "manifest.json"
MANIFEST_KEYS = {
    "created": str, "settings": dict, "versions": dict, "instances": dict, "tasks": list,
}  # fmt: skip
REPORT = "report.html"
FILES: tuple[Literal["solution", "certificate"], ...] = ("solution", "certificate")
"""What a record keeps in files of their own."""


class ResultStore:
    """A comparison's folder.

    Use `create` for a new one and `open` for one that exists.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self.folder = folder
        self.manifest = dict(manifest)
        self._left_out: set[str] = set()
        self._added: dict[str, Record] = {}
        self._instances: list[Instance] | None = None

    @classmethod
    def create(
        cls,
        folder: str | Path,
        instances: Sequence[Instance],
        tasks: Sequence[Task],
        settings: Keywords | None = None,
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

    @property
    def run_limit(self) -> float | None:
        """Seconds of each run of an algorithm, where the comparison was given a limit."""
        limit = self.manifest["settings"].get("run_limit")
        if limit is not None and type(limit) not in (int, float):
            where = f"{self.folder / MANIFEST}: settings.run_limit"
            raise InputError(where, limit, "must be a number of seconds")
        return limit

    def instances(self) -> list[Instance]:
        """The instances, read once, checked against the hashes of the manifest."""
        if self._instances is not None:
            return self._instances.copy()
        found: list[Instance] = []
        for name, sha256 in self.manifest["instances"].items():
            path = self.folder / "instances" / f"{file_name(name)}.json"
            instance = read(path)
            if instance.sha256() != sha256:
                raise InputError(str(path), instance.sha256(), f"must have the hash {sha256}")
            found.append(instance)
        self._instances = found
        return found.copy()

    def add(self, record: Record) -> None:
        """Keep a task's record; its file appears in one step, after all that belongs to it."""
        content: JsonObject = {**record}
        found = {kind: content.pop(kind, None) for kind in FILES}
        record = json.loads(json.dumps(content))  # as it will be read
        paths, hashes = self._files(record["task"], record["instance"]), dict[str, str | None]()
        for kind, data in found.items():
            if data is not None:
                _make_room(paths[kind])
                write_json(data, paths[kind])
                hashes[kind] = file_hash(paths[kind])
        record["files"] = hashes
        task_file = self._task_file(record["task"])
        _make_room(task_file)
        record = sealed(record)
        write_json(record, task_file)
        self._left_out.discard(record["task"])
        self._added[record["task"]] = record

    def records(self, *, read_back: bool = True) -> list[Record]:
        """Records of the tasks that have one, failed ones included, in the order of the tasks.

        A record that is damaged, or whose schedule or certificate is, is not among them: `damages`
        names it.

        Parameters
        ----------
        read_back : bool
            Whether those that this object added are read from their files too.
        """
        return [record for _, record in self._intact(read_back=read_back)]

    def damages(self) -> list[Damage]:
        """Records, schedules and certificates that are not what was written, by their hashes."""
        found: list[Damage] = []
        for task in self.tasks:
            if os.path.lexists(self._task_file(task.key)):
                found += [Damage(task.key, what) for what in self._read(task)[1]]
        return found

    def recompute(self, *, everything: bool = False) -> tuple[int, list[Damage]]:
        """Recompute objectives and bounds from schedules and certificates, trusting no record.

        Parameters
        ----------
        everything : bool
            All of them, in place of a sample.

        Returns
        -------
        int
            How many records were recomputed.
        list of Damage
            What does not agree.
        """
        instances = {instance.name: instance for instance in self.instances()}
        intact = {record["task"]: (task, record) for task, record in self._intact()}
        records = [record for _, record in intact.values() if record["status"] == "ok"]
        chosen = records if everything else sample(records)
        found: list[Damage] = []
        for record in chosen:
            task = intact[record["task"]][0]
            files = self._files(task.key, task.instance)
            what = recomputed(record, task, instances[task.instance], files)
            if what is not None:
                found.append(Damage(task.key, what))
        return len(chosen), found

    def missing(self, records: Sequence[Record] | None = None) -> list[Task]:
        """Tasks to run: not yet successful, or with something damaged.

        Parameters
        ----------
        records : sequence of dict, optional
            `records` as they are now, where they have been read already.
        """
        known = self.records() if records is None else records
        done = {record["task"] for record in known if record["status"] == "ok"}
        return [task for task in self.tasks if task.key not in done]

    def remove_leftovers(self) -> None:
        """Remove what a killed process left half written."""
        for path in self.folder.rglob(".*.part"):
            path.unlink(missing_ok=True)

    def leave_out(self, damages: Sequence[Damage]) -> None:
        """Leave tasks out of `records` in which recomputing found something wrong."""
        self._left_out |= {damage.task for damage in damages}

    def _intact(self, *, read_back: bool = True) -> list[tuple[Task, Record]]:
        found: list[tuple[Task, Record]] = []
        for task in self.tasks:
            if task.key in self._left_out:
                continue
            if not read_back and task.key in self._added:
                found.append((task, self._added[task.key]))
            elif os.path.lexists(self._task_file(task.key)):
                record, damages = self._read(task)
                if record is not None and not damages:
                    found.append((task, record))
        return found

    def _read(self, task: Task) -> tuple[Record | None, list[str]]:
        """A task's record, None if it cannot be used, and what is damaged."""
        path = self._task_file(task.key)
        try:
            record = check_record(read_json(path), task, f"tasks/{path.name}")
        except InputError as error:
            return None, [str(error)]
        if not is_sealed(record):
            return None, [f"tasks/{path.name} is not what was written"]
        return record, damaged_files(record, self._files(task.key, task.instance))

    def _files(self, key: str, instance: str) -> dict[str, Path]:
        """Files beside a task's record, by the record's entry that they hold."""
        return {
            "solution": self.folder / "solutions" / f"{key}.json",
            "certificate": self.folder / "certificates" / f"{file_name(instance)}.json",
        }

    def solution_file(self, record: Record) -> Path | None:
        """Path of the schedule that a task found, or None if it found none."""
        path = self.folder / "solutions" / f"{record['task']}.json"
        return path if path.is_file() else None

    def write_tables(self, comparison: Comparison | None = None) -> list[Path]:
        """Write the tidy tables from the records; parquet too where pyarrow is installed.

        Parameters
        ----------
        comparison : Comparison, optional
            Of the records as they are now, where they have been read already.
        """
        comparison = comparison or Comparison(self.records())
        tables = {
            "runs": comparison.to_frame(),
            "optima": comparison.optima_frame(),
            "jobs": comparison.job_frame(),
            "slots": comparison.slot_frame(),
        }
        paths: list[Path] = []
        for name, frame in tables.items():
            path = self.folder / f"{name}.csv"
            write_text(for_spreadsheets(frame).to_csv(index=False), path)
            paths.append(path)
            parquet = _write_parquet(frame, path.with_suffix(".parquet"))
            paths += [parquet] if parquet is not None else []
        return paths

    def _task_file(self, key: str) -> Path:
        return self.folder / "tasks" / f"{key}.json"


def _make_room(path: Path) -> None:
    """Remove a link to a device, or a pipe: it would swallow what is written to this folder."""
    if path.exists() and not path.is_file() and not path.is_dir():
        path.unlink()


@contextmanager
def folder_to_fill(folder: str | Path) -> Iterator[Path]:
    """A folder that can be written; gone again if it was made here and nothing came of it."""
    path = Path(folder)
    missing = [each for each in (path, *path.parents) if not each.exists()]
    try:
        yield check_folder(path)
    except BaseException:
        for each in missing:
            with suppress(OSError):  # not empty: something came of it
                each.rmdir()
        raise


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
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    write_bytes(buffer.getvalue(), path)
    return path

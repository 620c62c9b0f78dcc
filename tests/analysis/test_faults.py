"""Whatever happens to a folder of results, its tables are right or the damage is named.

Hypothesis draws sequences of runs that are killed, full disks, edits, reports and resumes; the
variable ``FAULTS`` says how many sequences (``make nightly`` runs many).
"""

import contextlib
import errno
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hindsched.analysis.compare import plan_tasks
from hindsched.analysis.store import ResultStore
from hindsched.analysis.sweep import run_tasks
from hindsched.analysis.tasks import failed_record
from hindsched.errors import InputError
from hindsched.instances import io
from hindsched.instances.generators.registry import generate

pytestmark = pytest.mark.nightly

SEQUENCES = int(os.environ.get("FAULTS", "10"))
KINDS = ("tasks", "solutions", "certificates")
COLUMNS = ["instance", "algorithm", "seed", "objective"]
OPTIMA = ["instance", "objective", "bound"]


def make(folder):
    instance = generate("oasis", jobs=2, horizon=5, servers=2, seed=1)
    offline = {"method": "tree", "time_limit": 10.0}
    tasks = plan_tasks([instance], ["oasis", "fifo"], seeds=2, offline=offline)
    return ResultStore.create(folder, [instance], tasks)


def tables(store):
    """The numbers of the tables that do not depend on the clock."""
    import pandas as pd

    store.write_tables()
    found = []
    for name, columns in (("runs", COLUMNS), ("optima", OPTIMA)):
        with contextlib.suppress(pd.errors.EmptyDataError):  # nothing is left to be shown
            table = pd.read_csv(store.folder / f"{name}.csv")
            if set(columns) <= set(table.columns):
                found += table[columns].itertuples(index=False)
    return [
        tuple(round(value, 6) if isinstance(value, float) else value for value in row)
        for row in found
    ]


def belongings(folder, key):
    """What a folder holds of a task: its record, and its schedule and proof byte by byte."""
    instance = key.partition("--")[0]
    certificates = [instance] if key.endswith("--offline") else []
    paths = {"solution": folder / "solutions" / f"{key}.json"}
    paths |= {name: folder / "certificates" / f"{name}.json" for name in certificates}
    found = {name: path.read_bytes() for name, path in paths.items() if path.is_file()}
    return {**found, "record": json.loads((folder / "tasks" / f"{key}.json").read_text())}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A finished folder that nothing happened to, its tables, and its tasks' records."""
    store = make(tmp_path_factory.mktemp("undisturbed") / "out")
    records = {}

    def keep(record):
        records[record["task"]] = json.loads(json.dumps(record))
        store.add(record)

    run_tasks(store.tasks, store.instances(), workers=0, on_record=keep)
    assert (store.folder / "certificates").is_dir()
    return store.folder, tables(store), records


def machine(whole, expected, known):
    """The state machine over one undisturbed folder.

    Tasks are pure, so their records come from the undisturbed run instead of being run again.
    """

    wanted = {key: belongings(whole, key) for key in known}
    assert all(one["record"] and one["solution"] for one in wanted.values())

    class Faults(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.home = Path(tempfile.mkdtemp())
            self.folder = self.home / "out"

        @initialize(finished=st.sampled_from([True, True, False]))
        def begin(self, finished):
            if finished:
                shutil.copytree(whole, self.folder)
            else:
                make(self.folder)

        @rule(count=st.integers(0, 3))
        def killed_after(self, count):
            """A run dies after so many records, in the middle of writing the next one."""
            store = ResultStore.open(self.folder)
            for task in store.missing()[:count]:
                store.add(known[task.key])
            (self.folder / "tasks").mkdir(exist_ok=True)
            (self.folder / "tasks" / ".0123456789abcdef.part").write_text('{"task": ')

        @rule(write=st.integers(0, 4), data=st.data())
        def full_disk(self, write, data):
            """From some write on, no file can be replaced."""
            store = ResultStore.open(self.folder)
            real, count = os.replace, 0

            def replace(source, target):
                nonlocal count
                count += 1
                if count > write:
                    raise OSError(errno.ENOSPC, "No space left on device")
                real(source, target)

            before = {path for path in self.folder.rglob("*") if path.suffix == ".part"}
            io.os.replace = replace
            try:
                with contextlib.suppress(InputError):
                    for task in store.missing():
                        store.add(known[task.key])
                    store.write_tables()
            finally:
                io.os.replace = real
            after = {path for path in self.folder.rglob("*") if path.suffix == ".part"}
            assert after == before

        @precondition(lambda self: any(self.files()))
        @rule(data=st.data())
        def edit(self, data):
            """A file is cut, deleted, or one of its bytes is another one."""
            path = data.draw(st.sampled_from(self.files()))
            content = path.read_bytes()
            if (
                ResultStore.open(self.folder)
                .manifest["files"]
                .get(path.relative_to(self.folder).as_posix())
                is None
            ):
                return  # hashes are written with the tables
            place = data.draw(st.integers(0, max(0, len(content) - 1)))
            match data.draw(st.sampled_from(["cut", "delete", "byte"])):
                case "cut":
                    path.write_bytes(content[:place])
                case "delete":
                    path.unlink()
                case "byte":
                    other = data.draw(st.integers(0, 255))
                    path.write_bytes(content[:place] + bytes([other]) + content[place + 1 :])

        @rule()
        def a_task_fails(self):
            store = ResultStore.open(self.folder)
            for task in store.missing()[:1]:
                store.add(failed_record(task, store.instances()[0], "the worker process died"))

        @rule()
        def report(self):
            """What a report shows stands in the undisturbed tables; the rest is named."""
            store = ResultStore.open(self.folder)
            shown = tables(store) if store.records() else []
            failed = [record for record in store.records() if record["status"] == "failed"]
            if not failed:
                assert set(shown) <= set(expected)
            for record in store.records():
                if record["status"] == "ok":
                    assert self.left_of(record["task"]) == wanted[record["task"]]
            named = {damage.task for damage in store.damages()}
            missing = {task.key for task in store.missing()}
            assert named <= missing
            assert missing | {record["task"] for record in store.records()} == set(known)

        @rule()
        def resume(self):
            store = ResultStore.open(self.folder)
            store.remove_leftovers()
            for task in store.missing():
                store.add(known[task.key])
            assert store.damages() == []
            assert store.missing() == []
            assert tables(store) == expected
            assert {key: self.left_of(key) for key in known} == wanted
            assert not list(self.folder.rglob(".*"))

        def left_of(self, key):
            return belongings(self.folder, key)

        def files(self):
            return [
                path for kind in KINDS for path in sorted((self.folder / kind).glob("[!.]*.json"))
            ]

        def teardown(self):
            self.resume()
            shutil.rmtree(self.home)

    return Faults


def test_any_sequence_of_faults_ends_in_the_same_tables(undisturbed):
    case = machine(*undisturbed).TestCase
    case.settings = settings(
        max_examples=SEQUENCES,
        stateful_step_count=12,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    case().runTest()

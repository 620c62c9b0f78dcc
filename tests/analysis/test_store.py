"""The result store: what is kept, what is missing, what is refused."""

import json
import shutil

import pytest

from hindsched.analysis.compare import plan_tasks
from hindsched.analysis.report.html import render_report, write_report
from hindsched.analysis.store import ResultStore, check_folder
from hindsched.analysis.sweep import run_tasks
from hindsched.errors import InputError

OFFLINE = {"method": "bound", "time_limit": 1.0}


@pytest.fixture(scope="module")
def tasks(instance):
    return plan_tasks([instance], ["oasis", "fifo"], seeds=2, offline=OFFLINE)


@pytest.fixture(scope="module")
def full(instance, tasks, tmp_path_factory):
    store = ResultStore.create(tmp_path_factory.mktemp("s") / "out", [instance], tasks, {"a": 1})
    run_tasks(tasks, [instance], workers=0, on_record=store.add)
    return store


def test_everything_is_kept(full, instance, tasks):
    again = ResultStore.open(full.folder)
    assert again.tasks == tasks
    assert again.missing() == []
    assert again.instances == [instance]
    assert [record["task"] for record in again.records()] == [task.key for task in tasks]
    assert again.manifest["settings"] == {"a": 1}
    assert "highspy" in again.manifest["versions"]


def test_tables(full):
    import pandas as pd

    full.write_tables()
    paths = {path.name for path in full.folder.iterdir()}
    assert {"runs.csv", "optima.csv", "jobs.csv", "slots.csv"} <= paths
    runs = pd.read_csv(full.folder / "runs.csv")
    assert list(runs["algorithm"]) == ["oasis", "fifo", "fifo"]
    assert len(pd.read_csv(full.folder / "jobs.csv")) == 3 * 10
    pytest.importorskip("pyarrow", reason="hindsched[arrow] is not installed")
    assert len(pd.read_parquet(full.folder / "runs.parquet")) == 3


def test_the_report_is_one_self_contained_page(full, instance):
    path = write_report(full)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    for outside in ("http://", "https://", "src=", "<link", "@import"):
        assert outside not in text
    assert "default-src 'none'" in text  # a browser loads nothing from anywhere
    sha256 = full.manifest["instances"][instance.name]
    for word in (instance.name, "oasis", "fifo", "highspy", sha256):
        assert word in text
    assert "Not everything succeeded" not in text


def test_names_cannot_break_the_page(full):
    full.manifest["settings"] = {"suite": "</script><script>alert(1)</script>"}
    page = render_report(full)
    assert "<script>alert" not in page
    assert "</script>" not in page


def test_folders_that_are_refused(full, instance, tasks, tmp_path):
    with pytest.raises(InputError, match="holds results already"):
        ResultStore.create(full.folder, [instance], tasks)
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="must be a new or an empty folder"):
        ResultStore.create(tmp_path, [instance], tasks)
    with pytest.raises(InputError, match="must be a folder that can be written"):
        check_folder(tmp_path / "mine.txt" / "below")
    with pytest.raises(InputError, match="must be a folder of results"):
        ResultStore.open(tmp_path)


def test_a_changed_instance_is_found(instance, tasks, tmp_path):
    store = ResultStore.create(tmp_path / "out", [instance], tasks)
    path = store.folder / "instances" / f"{instance.name}.json"
    data = json.loads(path.read_text())
    data["slot_seconds"] = 1800
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="must have the hash"):
        store.instances


@pytest.mark.parametrize("folder", ["tasks", "solutions", "certificates"])
@pytest.mark.parametrize("change", ["another byte", "absent"])
def test_a_changed_file_is_named_and_made_again(full, instance, tmp_path, folder, change):
    shutil.copytree(full.folder, tmp_path / "out")
    store = ResultStore.open(tmp_path / "out")
    store.write_tables()  # from now on every file has its hash
    assert ResultStore.open(store.folder).damages() == {}
    path = sorted((store.folder / folder).iterdir())[0]
    if change == "absent":
        path.unlink()
    else:
        path.write_text(path.read_text() + " ")
    again = ResultStore.open(store.folder)
    (task,) = again.missing()
    assert f"{folder}/{path.name}" in again.damages()[task.key]
    run_tasks([task], [instance], workers=0, on_record=again.add)
    assert ResultStore.open(store.folder).missing() == []


def test_recomputing_trusts_no_record(full, tmp_path):
    assert full.recompute() == {}
    shutil.copytree(full.folder, tmp_path / "out")
    store = ResultStore.open(tmp_path / "out")
    store.manifest["files"] = {}
    for record, name in ((store.records()[0], "bound"), (store.records()[1], "objective")):
        path = store.folder / "tasks" / f"{record['task']}.json"
        path.write_text(json.dumps({**record, name: 1e6}))
    said = list(store.recompute().values())
    assert ["by its certificate, not" in said[0], "by its schedule, not" in said[1]] == [True, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": [{"kind": 1}]}, "tasks: "),
        ({"tasks": None}, "tasks: "),
        ({"settings": []}, "settings: "),
        ({"format": "other"}, "must have format"),
    ],
)
def test_a_damaged_manifest_is_one_line(full, tmp_path, change, message):
    (tmp_path / "manifest.json").write_text(json.dumps({**full.manifest, **change}))
    with pytest.raises(InputError, match=message):
        ResultStore.open(tmp_path)

"""Folders of results are not believed: what was changed is named, and made again."""

import json
import os
import shutil

import pytest

from hindsched.analysis.integrity import sample, sealed
from hindsched.analysis.plan import plan_tasks
from hindsched.analysis.store import ResultStore
from hindsched.analysis.sweep import run_tasks
from hindsched.cli.app import run
from hindsched.instances.generators.registry import generate

TASKS = 3
NUMBERS = ("instance", "algorithm", "objective", "violations")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished folder: an offline solve with a certificate, and two runs."""
    instance = generate("oasis", jobs=4, horizon=6, servers=4, seed=3)
    tasks = plan_tasks([instance], ["oasis", "drf"], offline={"method": "auto", "time_limit": 60.0})
    store = ResultStore.create(tmp_path_factory.mktemp("made") / "out", [instance], tasks)
    run_tasks(tasks, [instance], workers=0, on_record=store.add)
    store.write_tables()
    assert len(store.records()) == TASKS
    assert len(list((store.folder / "certificates").iterdir())) == 1
    return store


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made.folder, tmp_path / "out")


def file_of(folder, kind, part):
    return next(path for path in sorted((folder / kind).iterdir()) if part in path.name)


def rewrite(path, *, new_seal=False, **changes):
    data = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps(sealed(data) if new_seal else data))


def edit_objective(folder):
    rewrite(file_of(folder, "tasks", "--oasis"), objective=1e6)


def edit_bound(folder):
    rewrite(file_of(folder, "tasks", "--offline"), bound=1.0)


def delete_certificate(folder):
    file_of(folder, "certificates", "").unlink()


def delete_solution(folder):
    file_of(folder, "solutions", "--drf").unlink()


def cut_solution(folder):
    path = file_of(folder, "solutions", "--oasis")
    path.write_text(path.read_text()[:100])


def edit_certificate(folder):
    path = file_of(folder, "certificates", "")
    path.write_text(path.read_text().replace("1", "2", 1))


def wrong_types(folder):
    rewrite(file_of(folder, "tasks", "--drf"), jobs="x", files=[])


def wrong_rows(folder):
    rewrite(file_of(folder, "tasks", "--drf"), new_seal=True, jobs=[1])


def wrong_files(folder):
    rewrite(file_of(folder, "tasks", "--drf"), new_seal=True, files=["solution"])


def deep(folder):
    file_of(folder, "tasks", "--drf").write_text("[" * 100_000)


def pipe_for_solution(folder):
    path = file_of(folder, "solutions", "--drf")
    path.unlink()
    os.mkfifo(path)


def device_for_solution(folder):
    path = file_of(folder, "solutions", "--drf")
    path.unlink()
    path.symlink_to("/dev/zero")


def circle_for_record(folder):
    path = file_of(folder, "tasks", "--drf")
    path.unlink()
    path.symlink_to(path.name)


DAMAGES = [
    edit_objective, edit_bound, delete_certificate, delete_solution, cut_solution,
    edit_certificate, wrong_types, wrong_rows, wrong_files, deep,
    pipe_for_solution, device_for_solution, circle_for_record,
]  # fmt: skip


def test_records_that_are_not_there_are_said(folder, capsys):
    file_of(folder, "tasks", "--drf").unlink()
    assert run(["report", str(folder)]) == 0
    told = "1 of 3 tasks have no record: hindsched bench --resume --out "
    assert told in capsys.readouterr().err


def test_an_untouched_folder_is_whole(folder, capsys):
    assert run(["report", str(folder)]) == 0
    assert "3 records compared with their hashes, 3 recomputed\n" in capsys.readouterr().err
    assert ResultStore.open(folder).missing() == []


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_is_damaged_is_named_left_out_and_made_again(folder, damage, capsys, made):
    damage(folder)
    store = ResultStore.open(folder)
    (found,) = store.damages()
    assert [task.key for task in store.missing()] == [found.task]
    assert run(["report", str(folder)]) == 1
    said = capsys.readouterr().err
    assert f"damaged: {found}" in said
    assert "hindsched bench --resume --verify --out" in said
    assert run(["bench", "--resume", "--workers", "0", "--out", str(folder)]) == 0
    assert f"damaged, made again: {found.task}" in capsys.readouterr().err
    again = ResultStore.open(folder)
    assert again.damages() == []
    one, other = (
        [[record.get(name) for name in NUMBERS] for record in each.records()]
        for each in (again, made)
    )
    assert one == other


@pytest.mark.parametrize(
    ("part", "changes", "words"),
    [
        ("--oasis", {"objective": 1e6}, "by its schedule, not 1000000.0"),
        ("--offline", {"bound": 1e6, "certified": True}, "by its certificate, not 1000000.0"),
    ],
)
def test_a_new_seal_does_not_make_it_true(folder, part, changes, words, capsys):
    rewrite(file_of(folder, "tasks", part), new_seal=True, **changes)
    store = ResultStore.open(folder)
    assert store.damages() == []
    checked, (found,) = store.recompute(everything=True)
    assert checked == TASKS
    assert words in found.what
    assert run(["report", "--verify", str(folder)]) == 1
    assert f"damaged: {found}" in capsys.readouterr().err
    assert run(["bench", "--resume", "--verify", "--workers", "0", "--out", str(folder)]) == 0
    assert ResultStore.open(folder).recompute(everything=True) == (TASKS, [])


def test_a_sample_is_said_to_be_one(made):
    records = [{**record, "task": f"{number}"} for number in range(3) for record in made.records()]
    chosen = sample(records)
    assert len(chosen) == 3
    assert chosen[0]["kind"] == "offline"
    assert any(record["kind"] == "online" for record in chosen)

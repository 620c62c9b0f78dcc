"""The benchmark library: its recipes, its records, and what it refuses to take."""

import gzip
import json
import os
import shutil
import tempfile
from copy import deepcopy

import pytest

import hindsched as hs
from hindsched.analysis.library.keep import submit
from hindsched.analysis.library.records import (
    CLAIMS,
    MOST_PLAIN,
    PACKAGED,
    Records,
    choose,
    is_better,
)
from hindsched.analysis.library.work import check_records, improve
from hindsched.cli.app import run
from hindsched.errors import HindschedError, InputError, SolveFailed
from hindsched.instances.base import families_on
from hindsched.instances.generators.registry import make
from hindsched.instances.recipes import Recipe, all_recipes, find_recipe
from tests.scripts import script

FAMILIES = families_on("instances", "generator")
NAME = "oasis/library-small/h3-s2"


@pytest.fixture
def records(tmp_path):
    """A folder with the two records of one instance."""
    found, recipe = Records(tmp_path / "records"), find_recipe(NAME)
    for path in Records().files(recipe):
        target = found.folder / path.relative_to(PACKAGED)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return found


def data_of(records, part):
    return json.loads(records.path(find_recipe(NAME), part).read_text())


def test_there_are_200_instances_of_all_families_in_three_sizes():
    recipes = all_recipes()
    assert len(recipes) >= 200
    assert len({recipe.name for recipe in recipes}) == len(recipes)
    assert len({recipe.sha256 for recipe in recipes}) == len(recipes)
    sizes = {(recipe.family, recipe.suite) for recipe in recipes}
    assert sizes == {(f, f"library-{s}") for f in FAMILIES for s in ("small", "medium", "large")}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_recipe_makes_the_instance_that_it_says(family):
    for recipe in (choose(family=family, suite="small")[0], choose(family=family)[-1]):
        instance = make(recipe)
        assert instance.sha256() == recipe.sha256
        assert (len(instance.jobs), instance.horizon) == (recipe.jobs, recipe.horizon)
        assert hs.named_instance(recipe.name) == hs.named_instance(recipe.instance_name) == instance


def test_every_instance_has_a_solution_and_a_bound_on_file_and_they_leave_room():
    senses = {family: make(choose(family=family)[0]).sense for family in FAMILIES}
    for recipe in all_recipes():
        standing = Records().standing(recipe)
        assert standing.objective is not None, recipe.name
        assert standing.bound is not None, recipe.name
        room = standing.bound - standing.objective
        sign = 1 if senses[recipe.family] == "max" else -1
        assert sign * room >= -1e-9 * abs(standing.bound), recipe.name


@pytest.mark.parametrize("family", FAMILIES)
def test_the_kernel_accepts_the_records_of_an_instance(family):
    def size(recipe):
        return sum(path.stat().st_size for path in Records().files(recipe))

    smallest = min(choose(family=family, suite="small"), key=size)
    (row,) = check_records([smallest], Records())
    assert row["accepted"], row["verdict"]
    assert row["verdict"] != "no records"


def test_the_page_shows_what_is_on_file():
    page = script("library_page")
    assert page.PAGE.read_text().endswith(page.MARK + "\n" + page.board())


def test_long_records_are_compressed_and_short_ones_are_not(records):
    recipe = find_recipe(NAME)
    short = json.dumps(data_of(records, "solution")).encode()
    long = short + b" " * MOST_PLAIN
    packed = records.path(recipe, "solution").with_suffix(".json.gz")
    records.keep(recipe, "solution", long)
    assert records.path(recipe, "solution") == packed
    assert gzip.decompress(packed.read_bytes()) == long
    (row,) = check_records([recipe], records)
    assert row["accepted"]
    assert row["proven"]
    records.keep(recipe, "solution", short)
    assert not packed.exists()
    assert len(records.files(recipe)) == len(CLAIMS)


def test_a_generator_that_changed_is_noticed():
    old = find_recipe(NAME)
    changed = Recipe(**{**vars(old), "seed": old.seed + 1})
    with pytest.raises(SolveFailed, match="another instance"):
        make(changed)


def _better(data):
    data["objective"] += 1


def _tighter(data):
    data["bound"] -= 1


def _set(key, value):
    return lambda data: data.__setitem__(key, value)


def _drop(key):
    return lambda data: data.pop(key)


def _more_workers(data):
    for job in data["jobs"]:
        for row in job["assignments"]:
            row["workers"] = {server: n + 5 for server, n in row["workers"].items()}
    data["objective"] += 1


def _first_row(data):
    return next(row for job in data["jobs"] for row in job["assignments"])


def _early(data):
    _first_row(data)["from"] = 0
    data["objective"] += 1


def _unknown_server(data):
    _first_row(data)["workers"] = {"nowhere": 1}
    data["objective"] += 1


def _no_prices(data):
    data["prices"] = [] if isinstance(data["prices"], list) else {}
    data["kind"] = "lagrangian"
    data["bound"] -= 1


FALSE = {
    "objective": ("solution", _better),
    "infinite": ("solution", _set("objective", float("inf"))),
    "not a number": ("solution", _set("objective", "300")),
    "true": ("solution", _set("objective", True)),
    "overbooked": ("solution", _more_workers),
    "before slot 1": ("solution", _early),
    "unknown server": ("solution", _unknown_server),
    "unknown instance": ("solution", _set("instance", "oasis-nowhere")),
    "another instance": ("solution", _set("instance", "oasis-library-small-h3-s3")),
    "wrong hash": ("solution", lambda d: (_better(d), d.update(instance_sha256="0" * 64))),
    "wrong family": ("solution", lambda d: (_better(d), d.update(family="astraea"))),
    "unknown formulation": ("solution", _set("formulation", "easy")),
    "no decisions": ("solution", lambda d: (_better(d), d.pop("jobs"))),
    "no format": ("solution", _drop("format")),
    "bound": ("certificate", _tighter),
    "no bound": ("certificate", _drop("bound")),
    "no prices": ("certificate", _no_prices),
    "other sense": ("certificate", lambda d: (_tighter(d), d.update(sense="min"))),
    "unknown kind": ("certificate", lambda d: (_tighter(d), d.update(kind="trust me"))),
    "unknown layout": ("certificate", lambda d: (_tighter(d), d.update(layout="mine"))),
    "bound of another hash": (
        "certificate", lambda d: (_tighter(d), d.update(instance_sha256="0" * 64)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FALSE)
def test_a_false_record_is_refused_and_changes_nothing(case, records, tmp_path):
    part, change = FALSE[case]
    before = {path: path.read_bytes() for path in records.files(find_recipe(NAME))}
    data = deepcopy(data_of(records, part))
    change(data)
    path = tmp_path / "offered.json"
    path.write_text(json.dumps(data))
    with pytest.raises(HindschedError):
        submit(path, records)
    assert {path: path.read_bytes() for path in records.files(find_recipe(NAME))} == before


def test_a_false_record_is_refused_though_it_is_no_better(records, tmp_path):
    data = deepcopy(data_of(records, "solution"))
    data["objective"] /= 2  # not what its schedule earns
    path = tmp_path / "offered.json"
    path.write_text(json.dumps(data))
    with pytest.raises(HindschedError, match="objective"):
        submit(path, records)


def test_a_record_states_the_objective_of_its_decisions_and_no_more(records, tmp_path):
    data = deepcopy(data_of(records, "solution"))
    data["objective"] *= 1 + 1e-9
    path = tmp_path / "offered.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="must be its decisions' objective"):
        submit(path, records)


@pytest.mark.parametrize(("part", "where"), [
    ("solution", "solution note"), ("certificate", "certificate note"),
    ("solution", r"jobs\[1\]\.note"),
])  # fmt: skip
def test_a_field_that_nobody_reads_is_refused(part, where, records, tmp_path):
    data = deepcopy(data_of(records, part))
    (data["jobs"][1] if "jobs" in where else data)["note"] = "buy here"
    path = tmp_path / "offered.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=f"^{where}: buy here: unknown field$"):
        submit(path, records)


def test_a_refusal_names_the_file_that_was_offered_and_no_other(records, tmp_path, capsys):
    data = deepcopy(data_of(records, "solution"))
    data["instance_sha256"] = "0" * 64
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(data))
    folder = tempfile.gettempdir()
    assert run(["library", "submit", str(bad), "--folder", str(records.folder)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {bad}: {NAME} solution: ")
    assert "solution.json" in said
    assert folder not in said.replace(str(tmp_path), "")


def test_the_command_deals_with_every_file_that_is_offered(records, tmp_path, capsys):
    good = records.path(find_recipe(NAME), "solution")
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    folder = ["--folder", str(records.folder)]
    assert run(["library", "submit", str(bad), str(good), *folder, "--json"]) == 2
    printed = json.loads(capsys.readouterr().out)
    assert [row["kept"] for row in printed["submitted"]] == [False]
    assert len(printed["refused"]) == 1


def test_only_better_records_are_kept(records, tmp_path):
    recipe = find_recipe(NAME)
    best = tmp_path / "best.json"
    shutil.move(records.path(recipe, "solution"), best)
    packed = tmp_path / "best.json.gz"
    packed.write_bytes(gzip.compress(best.read_bytes()))
    first = submit(packed, records)
    assert first.kept
    assert first.before is None
    again = submit(best, records)
    assert not again.kept
    assert again.before == again.value == first.value
    assert str(again).endswith(f"is no better than {first.value:.10g}")


@pytest.mark.parametrize(("family", "part"), [("oasis", "solution"), ("gang", "certificate")])
def test_better_means_larger(family, part):
    recipe = choose(family=family)[0]
    assert is_better(recipe, part, 2.0, 1.0)
    assert not is_better(recipe, part, 1.0, 1.0)
    assert is_better(recipe, part, 0.0, None)
    other = "certificate" if part == "solution" else "solution"
    assert is_better(recipe, other, 1.0, 2.0)
    assert not is_better(recipe, other, 2.0, 1.0)


def test_improve_fills_an_empty_folder_and_leaves_what_is_proven(tmp_path):
    recipe = find_recipe("astraea/library-small/linear-j6-s0")
    records = Records(tmp_path)
    assert all(one.kept for one in improve(recipe, records, time_limit=20.0))
    assert records.standing(recipe).is_proven
    assert improve(recipe, records, time_limit=20.0) == []


def test_a_damaged_record_is_named(records, capsys):
    path = records.path(find_recipe(NAME), "solution")
    data = json.loads(path.read_text())
    data["objective"] += 1
    path.write_text(json.dumps(data))
    assert run(["library", "check", NAME, "--folder", str(records.folder), "--workers", "1"]) == 1
    assert NAME in capsys.readouterr().out


def test_the_board_and_export(records, tmp_path, capsys):
    assert run(["library", "list", NAME, "--folder", str(records.folder), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["instances"]
    assert row["proven"]
    assert row["name"] == NAME
    assert run(["library", "export", NAME, "-o", str(tmp_path / "out"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["files"]) == 3
    solution = hs.read_solution(
        tmp_path / "out/solution.json", hs.read(tmp_path / "out/instance.json")
    )
    assert solution.objective() == pytest.approx(row["objective"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "oasis/library-small/none"], "must be an instance of the library"),
        (["list", "--family", "none"], "must be one of"),
        (["list", "--size", "tiny"], "must be one of"),
        (["submit", "/nowhere/x.json"], "/nowhere/x.json"),
        (["check", "--folder", __file__], "must be a folder"),
    ],
)
def test_bad_input_is_one_line(arguments, said, capsys):
    assert run(["library", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert "\n" not in error


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_refused_before_work(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert run(["library", "improve", NAME, "--folder", str(tmp_path)]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match="library"):
        find_recipe("oasis/library-small/none")

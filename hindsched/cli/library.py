"""``hindsched library``: the benchmark library's board; checking it, improving it, adding to it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindsched.cli.limits import limited
from hindsched.cli.output import Json, digits, emit_json, errors, out, percent, say, table
from hindsched.cli.settings import OneFamily
from hindsched.errors import HindschedError, InputError

if TYPE_CHECKING:
    from hindsched.analysis.library.records import Records

library = typer.Typer(
    name="library",
    help="The benchmark library: best known objectives and bounds, as files that prove them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
CORES = os.cpu_count() or 1
BOARD = ("instance", "jobs", "objective", "bound", "gap", "proven")
Names = Annotated[list[str] | None, typer.Argument(help="Instances; all by default.")]
Size = Annotated[str | None, typer.Option(help="Only `small`, `medium` or `large`.")]
Folder = Annotated[
    str | None, typer.Option(help="Folder of the records; by default those of the package.")
]
Workers = Annotated[int, typer.Option(min=1, help="Kernels that run at once.")]


@library.command("list")
@limited
def list_(
    names: Names = None,
    family: OneFamily = None,
    size: Size = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Show the board: the best objective and bound on file of every instance."""
    from hindsched.analysis.library.records import choose

    records = _records(folder)
    standings = [records.standing(recipe) for recipe in choose(names or (), family, size)]
    rows = [standing.to_dict() for standing in standings]
    if as_json:
        emit_json({"instances": rows})
        return
    cells = [
        [
            one.recipe.name, one.recipe.jobs, digits(one.objective, 8), digits(one.bound, 8),
            percent(one.gap), "yes" if one.is_proven else "no",
        ]
        for one in standings
    ]  # fmt: skip
    out.print(table("benchmark library", BOARD, cells))
    proven = sum(standing.is_proven for standing in standings)
    say(f"{proven} of {len(rows)} instances are proven")


@library.command()
@limited
def check(
    names: Names = None,
    family: OneFamily = None,
    size: Size = None,
    folder: Folder = None,
    workers: Workers = CORES,
    as_json: Json = False,
) -> None:
    """Make every instance anew and let the exact kernel check its records."""
    from hindsched.analysis.library.records import choose
    from hindsched.analysis.library.work import check_records
    from hindsched.analysis.progress import progress_bar

    recipes = choose(names or (), family, size)
    with progress_bar(len(recipes), "records", console=errors.console) as advance:
        rows = check_records(recipes, _records(folder), workers=workers, advance=advance)
    refused = [row for row in rows if not row["accepted"]]
    if as_json:
        emit_json({"instances": rows, "refused": len(refused)})
    else:
        for row in refused:
            out.print(f"{row['name']}: {row['verdict']}", markup=False, soft_wrap=True)
        seconds = sum(row["seconds"] for row in rows)
        proven = sum(row.get("proven", False) for row in rows)
        say(
            f"the kernel accepts the records of {len(rows) - len(refused)} of {len(rows)} "
            f"instances, {proven} of them proven optimal ({seconds:.0f} s of work)"
        )
    if refused:
        raise typer.Exit(1)


@library.command()
@partial(limited, of_each=True)
def improve(
    names: Names = None,
    family: OneFamily = None,
    size: Size = None,
    folder: Folder = None,
    time_limit: Annotated[float, typer.Option(min=0.0, help="Seconds an instance.")] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 0,
    as_json: Json = False,
) -> None:
    """Solve what is not proven yet; what is better, and accepted by the kernel, is kept."""
    from hindsched.analysis.library.records import choose
    from hindsched.analysis.library.work import improve as improve_one
    from hindsched.analysis.progress import progress_bar

    records = _records(folder)
    _check_writable(records.folder)
    recipes = [
        recipe
        for recipe in choose(names or (), family, size)
        if not records.standing(recipe).is_proven
    ]
    lines: list[str] = []
    failed: list[str] = []
    with progress_bar(len(recipes), "open instances", console=errors.console) as advance:
        for recipe in recipes:
            try:
                found = improve_one(recipe, records, time_limit=time_limit, seed=seed)
                lines += [str(submission) for submission in found if submission.kept]
            except HindschedError as error:
                failed.append(f"{recipe.name}: {error}")
            advance(recipe.name)
    if as_json:
        emit_json({"open": len(recipes), "kept": lines, "failed": failed})
    else:
        for line in [*lines, *failed]:
            out.print(line, markup=False, soft_wrap=True)
        say(f"{len(lines)} records kept on {len(recipes)} open instances")
    if failed:
        raise typer.Exit(1)


@library.command()
@limited
def submit(
    files: Annotated[list[str], typer.Argument(help="Solution and certificate files.")],
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Offer records: each is kept if the exact kernel accepts it and it is better.

    Ends with 1 or 2 if one is refused; the others are dealt with all the same.
    """
    from hindsched.analysis.library.keep import submit as submit_one

    records = _records(folder)
    _check_writable(records.folder)
    rows, refused = [], []
    for file in files:
        try:
            one = submit_one(file, records)
        except HindschedError as error:
            refused.append(error)
            where = "" if file in str(error) else f"{file}: "
            errors.print(f"error: {where}{error}", markup=False, soft_wrap=True)
            continue
        rows.append({"name": one.recipe.name, "part": one.part, "value": one.value,
                     "before": one.before, "kept": one.kept})  # fmt: skip
        if not as_json:
            out.print(str(one), markup=False, soft_wrap=True)
    if as_json:
        emit_json({"submitted": rows, "refused": [str(error) for error in refused]})
    if refused:
        raise typer.Exit(max(error.exit_code for error in refused))


@library.command()
@limited
def export(
    name: Annotated[str, typer.Argument(help="An instance of the library.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Folder to write.")],
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Write an instance and its records, for the kernel or another program to read."""
    from hindsched.instances.generators.registry import make
    from hindsched.instances.io import write, write_bytes
    from hindsched.instances.recipes import find_recipe

    records, recipe = _records(folder), find_recipe(name)
    instance, target = make(recipe), Path(output)
    if target.exists() and not target.is_dir():
        raise InputError("output", output, "must be a folder")
    written = [target / "instance.json"]
    write(instance, written[0])
    for path in records.files(recipe):
        written.append(target / path.name.removeprefix(f"{recipe.member}."))
        write_bytes(path.read_bytes(), written[-1])
    if as_json:
        emit_json({"name": recipe.name, "files": [str(path) for path in written]})
    else:
        say(f"python -m hindsched.kernel {' '.join(str(path) for path in written)}")


def _records(folder: str | None) -> Records:
    from hindsched.analysis.library.records import Records

    if folder is None:
        return Records()
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError("folder", folder, "must be a folder")
    return Records(Path(folder))


def _check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written before any work is done."""
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("folder", str(folder), "cannot be written: give another by --folder")

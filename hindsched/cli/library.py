"""``hindsched library``: the benchmark library's board; checking it, improving it, adding to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindsched.cli.limits import limited
from hindsched.cli.output import Json, digits, emit_json, errors, out, percent, say, table
from hindsched.cli.settings import OneFamily
from hindsched.errors import InputError

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
    str | None, typer.Option(help="Folder of the records, such as benchmarks/library.")
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
@limited
def export(
    name: Annotated[str, typer.Argument(help="An instance of the library.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Folder to write.")],
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Write an instance and its records, for the kernel or another program to read."""
    from hindsched.instances.catalogue import find_recipe
    from hindsched.instances.io import write, write_bytes

    records, recipe = _records(folder), find_recipe(name)
    instance, target = recipe.make(), Path(output)
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

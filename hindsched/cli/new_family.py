"""``hindsched new-family``: the skeleton of a family of one's own."""

from __future__ import annotations

import re
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

import typer

from hindsched.cli.output import out
from hindsched.errors import InputError

SKELETON = Path(__file__).parent / "skeleton"
"""A small family that works: cars at the booths of a toll road."""


def new_family(
    name: Annotated[str, typer.Argument(help="The family's word: small letters, digits and _.")],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="Folder to write; hindsched-NAME by default."),
    ] = None,
) -> None:
    """Write the skeleton of a family of your own: a package that works, to be changed."""
    from hindsched.instances.base import FAMILIES

    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name) or iskeyword(name):
        raise InputError("name", name, "must be small letters, digits and _, a letter first")
    if name in FAMILIES:
        raise InputError("name", name, "is a family already")
    folder = Path(output or f"hindsched-{name}")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError("output", str(folder), "must be a folder that is empty or not there yet")
    for source in sorted(SKELETON.rglob("*.*")):
        if source.suffix in (".py", ".toml"):
            target = folder / _renamed(str(source.relative_to(SKELETON)), name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_renamed(source.read_text("utf-8"), name), "utf-8")
            out.print(str(target), markup=False, soft_wrap=True)
    out.print(f"next: pip install -e {folder} && pytest {folder}", markup=False, soft_wrap=True)


def _renamed(text: str, name: str) -> str:
    """A text of the skeleton with the family's word instead of the skeleton's."""
    capitals = "".join(part.capitalize() for part in name.split("_"))
    return text.replace("tollbooth", name).replace("Tollbooth", capitals)

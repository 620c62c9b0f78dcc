"""``hindsched new-family``: the skeleton of a family of one's own."""

from __future__ import annotations

import re
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

from hindsched.cli import settings as opt
from hindsched.cli.output import tell
from hindsched.errors import InputError

SKELETON = Path(__file__).parent / "skeleton"
"""A small family that works: cars at the booths of a toll road."""


def new_family(
    name: Annotated[str, opt.argument("The family's name: small letters, digits and _.")],
    output: opt.Folder = None,
) -> None:
    """Write the skeleton of a family of your own to hindsched-NAME: a package to be changed."""
    from hindsched.instances.base import FAMILIES

    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name) or iskeyword(name):
        raise InputError("name", name, "must be small letters, digits and _, a letter first")
    if name in FAMILIES:
        raise InputError("name", name, "is a family already")
    folder = Path(output or f"hindsched-{name}")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError("output", str(folder), "must be a folder that is empty or not there yet")
    words = {"tollbooth": name, "Tollbooth": "".join(map(str.capitalize, name.split("_")))}

    def renamed(text: str) -> str:
        return re.sub("[tT]ollbooth", lambda files: words[files[0]], text)

    for source in sorted(SKELETON.rglob("*.*")):
        if source.suffix in (".py", ".toml"):
            target = folder / renamed(str(source.relative_to(SKELETON)))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(renamed(source.read_text("utf-8")), "utf-8")
            tell(str(target))
    tell(f"next: pip install -e {folder} && pytest {folder}")

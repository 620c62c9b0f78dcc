"""Build the documentation site: gather the pages, make those that the program itself gives, build.

Usage: python docs/site.py [--pages-only]
"""

import argparse
import base64
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "docs"
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages that stand at the repository's root, and where they stand in the site."""
INLINE_MATH = re.compile(r"\$`(.+?)`\$")
MATH = re.compile(r"^```math\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
TAG = re.compile(r"\s*\\tag\{(.*?)\}")
LINK = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--pages-only", action="store_true", help="gather pages, do not build")
    arguments = parser.parse_args()
    os.environ |= {
        "NO_COLOR": "1",
        "NO_MKDOCS_2_WARNING": "1",
        "TERMINAL_WIDTH": "100",
        "COLUMNS": "100",
    }
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    gather()
    write("reference/commands.md", commands())
    write("reference/api.md", api())
    write("gallery.md", gallery())
    if arguments.pages_only:
        return 0
    built = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=ROOT)
    return built.returncode


def on_config(config):
    """Put pages that the navigation leaves out at its end (MkDocs calls this)."""
    listed = set(re.findall(r"[\w/]+\.(?:md|ipynb)", str(config["nav"])))
    pages = [*PAGES.glob("**/*.md"), *PAGES.glob("notebooks/*.ipynb")]
    left = sorted({path.relative_to(PAGES).as_posix() for path in pages} - listed)
    if left:
        config["nav"].append({"More": left})
    return config


def write(name: str, text: str) -> None:
    (PAGES / name).parent.mkdir(exist_ok=True)
    (PAGES / name).write_text(text, encoding="utf-8")


def gather() -> None:
    """Copy the hand-written pages, their pictures and the notebooks; links follow."""
    docs = ROOT / "docs"
    places = {page: page.relative_to(docs).as_posix() for page in sorted(docs.glob("**/*.md"))}
    places |= {ROOT / name: place for name, place in OUTSIDE.items()}
    for page, place in places.items():
        write(place, as_mathml(relinked(page.read_text(encoding="utf-8"), page, place)))
    for folder in ("pictures", "reference/schemas", "scripts"):
        shutil.copytree(docs / folder, PAGES / folder)
    shutil.copy(ROOT / "CITATION.cff", PAGES)
    (PAGES / "notebooks").mkdir()
    for notebook in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        shutil.copy(notebook, PAGES / "notebooks")


def as_mathml(text: str) -> str:
    """A page whose formulas browsers show by themselves, without a script."""
    from latex2mathml.converter import convert

    def formula(match: re.Match[str]) -> str:
        number = TAG.search(match[1])
        shown = TAG.sub(r" \\qquad \\text{(\1)}" if number else "", match[1])
        return f'<p class="formula">{convert(shown, display="block")}</p>'

    text = INLINE_MATH.sub(lambda match: convert(match[1]), text)
    return MATH.sub(formula, text)


def relinked(text: str, page: Path, place: str) -> str:
    """A page's links as they are in the site, where it stands at `place`."""

    def follow(match: re.Match[str]) -> str:
        name, hash_, anchor = match[1].partition("#")
        target = Path(os.path.normpath(page.parent / name)).relative_to(ROOT).as_posix()
        target = OUTSIDE.get(target, target.removeprefix("docs/"))
        there = os.path.relpath(target, Path(place).parent)
        return f"]({there}{hash_}{anchor})"

    return LINK.sub(follow, text)


def commands() -> str:
    """Every command's help, from the program itself."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from hindsched.cli.app import app

    parts = ["# Command line\n\nMade from the program: what `--help` prints.\n"]
    for name in ("", *get_command(app).commands):
        words = [*name.split(), "--help"]
        shown = CliRunner().invoke(app, words, prog_name="hindsched").output.rstrip()
        title = f"hindsched {name}".rstrip()
        parts.append(f"## {title}\n\n```text\n{shown}\n```\n")
    return "\n".join(parts)


def api() -> str:
    """The public names, each by its docstring."""
    import hindsched as hs

    parts = ["# API\n\n`import hindsched as hs`; every name is imported when it is first used.\n"]
    for name in hs.__all__:
        if name == "plot":
            continue
        parts.append(f"## hs.{name} {{ #hs.{name} }}\n\n::: {home_of(getattr(hs, name))}\n")
    for name in hs.plot.__all__:
        home = home_of(getattr(hs.plot, name))
        parts.append(f"## hs.plot.{name} {{ #hs.plot.{name} }}\n\n::: {home}\n")
    return "\n".join(parts)


def home_of(value: object) -> str:
    if inspect.ismodule(value):
        return value.__name__
    documented = value if hasattr(value, "__qualname__") else type(value)
    return f"{value.__module__}.{documented.__qualname__}"


def gallery() -> str:
    """Every picture of the executed notebooks, with the line that draws it."""
    (PAGES / "gallery").mkdir()
    parts = ["# Gallery\n\nEvery picture of the notebooks, and the line that draws it.\n"]
    for source in sorted((PAGES / "notebooks").glob("*.ipynb")):
        cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
        parts.append(f"## {source.stem}\n\n[The notebook](notebooks/{source.name})\n")
        for number, cell in enumerate(cells):
            for place, output in enumerate(cell.get("outputs", [])):
                picture = output.get("data", {}).get("image/png")
                if picture is None:
                    continue
                name = f"gallery/{source.stem}-{number}-{place}.png"
                (PAGES / name).write_bytes(base64.b64decode("".join(picture)))
                line = drawing_line("".join(cell["source"]))
                parts.append(f"![{line}]({name})\n\n`{line}`\n")
    return "\n".join(parts)


def drawing_line(source: str) -> str:
    """The first line of a cell that draws, else its first line."""
    lines = source.splitlines()
    line = next((line for line in lines if "plot." in line or "experiment(" in line), lines[0])
    return line.rstrip(";")


if __name__ == "__main__":
    sys.exit(main())

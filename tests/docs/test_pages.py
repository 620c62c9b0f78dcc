"""The documentation is true: links lead somewhere, commands and Python on its pages run."""

import importlib
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hindsched.cli.app import app
from hindsched.instances.base import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/(?:[\w-]+\.(?:py|md|json|csv|jinja|ipynb|toml))?)`")
"""A folder, or a file of a kind that the repository has, in a page's words."""
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
MADE = re.compile(r"<!-- (?!end).*?<!-- end.*?-->", re.DOTALL)
"""What a script writes between two comments of a page."""
MADE_PAGES = {"formats.md", "audits.md"}
MOST_BYTES = 180_000
"""Of all pages that people write."""


def blocks(page, language):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [code for kind, code in BLOCK.findall(text) if kind == language]


def anchors(page):
    """What headings of a page are called in links, as GitHub and MkDocs do for plain ones."""
    titles = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        place = page.parent / name if name else page
        assert place.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(place), f"{page.name}: {target}"


def test_paths_that_pages_name_exist():
    """Below the repository, the package or its examples; `build` and `results` are the users'."""
    roots = [ROOT, ROOT / "hindsched", ROOT / "hindsched/instances/traces", ROOT / "docs"]
    known = {part.name for root in roots for part in root.iterdir() if part.is_dir()}
    missing = [
        f"{page.name}: {name}"
        for page in PAGES
        for name in NAMED.findall(page.read_text(encoding="utf-8"))
        if name.partition("/")[0] in known - {"build", "results"}
        and not any((root / name).exists() for root in roots)
    ]
    assert missing == []


def test_the_page_on_formats_and_the_schemas_are_the_programs(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    made = importlib.import_module("formats").files()
    assert {path.name for path in made} == {"formats.md", *(f"{word}.json" for word in FAMILIES)}
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: python docs/formats.py"


def test_the_programs_on_a_problems_page_are_those_of_the_code(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    for path, text in importlib.import_module("formulations").files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: python docs/formulations.py"


def test_the_site_lists_only_pages_that_exist():
    listed = re.findall(
        r"([\w/]+)\.(md|ipynb)\n", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    )
    made = {"index", "contributing", "changelog", "reference/api", "reference/commands", "gallery"}
    for name, kind in listed:
        source = ROOT / ("docs" if kind == "md" else "") / f"{name}.{kind}"
        assert name in made or source.exists(), source


def test_the_page_on_installing_names_every_dependency_and_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs/start/install.md").read_text(encoding="utf-8")
    rows = set(
        re.findall(r"`([\w-]+)`", " ".join(re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)))
    )
    asked = {re.split(r"[\[<>=~! ]", line)[0] for line in project["dependencies"]}
    assert rows == asked | set(project["optional-dependencies"])


def test_the_commands_of_the_first_result_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("start/first_result.md", "sh") for line in block.splitlines()]
    assert len(lines) >= 6
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "hindsched"
        done = CliRunner().invoke(app, words[1:], standalone_mode=False)
        assert done.exception is None, f"{line}\n{done.output}"
        assert done.return_value in (0, None), f"{line}\n{done.output}"
    assert (tmp_path / "results" / "first" / "report.html").exists()


@pytest.mark.parametrize("page", ["start/first_result.md", "guides/own_instance.md"])
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in blocks(page, "python"):
        exec(compile(code, page, "exec"), names)
    printed = capsys.readouterr().out
    if page == "start/first_result.md":
        assert printed.startswith("True []\n")
    else:
        assert "jobs[0].chunks: 0: " in printed
        assert "jobs[2].chunks: 0: " in printed  # and all else that is wrong
        assert "submit: -5: input should be greater than or equal to 0; gpus: 0: " in printed
        assert "duration: (absent): is required" in printed


def test_what_is_written_by_hand_can_be_read():
    """Results and all else that scripts write are not counted."""
    pages = [page for page in (ROOT / "docs").glob("**/*.md") if page.parent.name != "results"]
    sizes = {
        page.relative_to(ROOT).as_posix(): len(MADE.sub("", page.read_text("utf-8")).encode())
        for page in pages
        if page.name not in MADE_PAGES
    }
    assert sum(sizes.values()) <= MOST_BYTES, sorted(sizes.items(), key=lambda item: -item[1])

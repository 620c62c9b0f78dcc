"""Install the package into a fresh environment, weigh it, and write the table of a page.

``python benchmarks/weight.py``; needs a package index.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from marked import write_between

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/start/install.md"
MARK = "<!-- by benchmarks/weight.py -->"
MEGABYTE = 1 << 20
PURPOSES = {
    "clarabel": "the solver of the convex programs",
    "cvxpy-base": "convex programs of `mlbroker` and of the fair-share rivals",
    "highspy": "HiGHS: linear and integer programs",
    "jinja2": "the pages of `bench` and `audit`",
    "joblib": "the local processes of `bench`",
    "numba": "compiled pricing oracles and bounds (with LLVM)",
    "numpy": "arrays",
    "pandas": "tables: results, traces, logs",
    "pydantic": "instances that are checked when they are read",
    "pyomo": "the offline programs as one declares them",
    "rich": "tables and progress on the terminal",
    "scipy": "sparse matrices and statistics",
    "threadpoolctl": "one thread of linear algebra in each local process",
    "typer": "the command line",
    "tzdata": "time zones of logs, where the system has none",
}
WEIGH = """
import importlib.metadata, json
found = {}
for item in importlib.metadata.distributions():
    files = [item.locate_file(path) for path in item.files or ()]
    blocks = sum(path.stat().st_blocks for path in files if path.is_file())
    found[item.metadata["Name"].lower()] = 512 * blocks
print(json.dumps(found))
"""


def direct() -> list[str]:
    """Names of the packages that pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [re.split(r"[\[<>=~! ]", line)[0] for line in project["dependencies"]]


def weigh() -> tuple[dict[str, int], int, float]:
    """Bytes on disk of each package and of all, and seconds that ``pip install`` took."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder, "bin", "python")
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        begin = time.perf_counter()
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--no-compile", ROOT],
            check=True, cwd=folder, env=clean,
        )  # fmt: skip
        seconds = time.perf_counter() - begin
        done = subprocess.run(
            [python, "-c", WEIGH], check=True, cwd=folder, env=clean, capture_output=True, text=True
        )
        site = Path(folder, "lib")
        total = 512 * sum(path.stat().st_blocks for path in site.rglob("*") if path.is_file())
    return json.loads(done.stdout), total, seconds


def text(sizes: dict[str, int], total: int, seconds: float) -> str:
    """Sentence and table of `docs/start/install.md`."""
    names = direct()
    llvm, version = sizes["llvmlite"], ".".join(map(str, sys.version_info[:2]))
    ours = {"pip", "setuptools", "hindsched"}
    others = sorted(set(sizes) - set(names) - ours)
    lines = [
        f"{len(sizes) - len(ours)} packages and pip, {total / MEGABYTE:.0f} MB on disk, in "
        f"{seconds:.0f} s on 2 cores ({sys.platform}, Python {version}, "
        "`pip install --no-compile .`).",
        "",
        "| package | MB | for |",
        "|---|---|---|",
    ]
    for name in sorted(names, key=lambda name: -sizes[name] - (llvm if name == "numba" else 0)):
        size = sizes[name] + (llvm if name == "numba" else 0)
        lines.append(f"| `{name}` | {size / MEGABYTE:.0f} | {PURPOSES[name]} |")
    rest = sum(sizes[name] for name in others if name != "llvmlite")
    lines.append(f"| what these bring | {rest / MEGABYTE:.0f} | {', '.join(others)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Replace what stands between the marks."""
    write_between(PAGE, MARK, ["", text(*weigh())])


if __name__ == "__main__":
    main()

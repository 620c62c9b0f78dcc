"""The exact kernel by family: lines that must be right, its time and the fast path's.

    python benchmarks/kernel.py [--seconds 10] [--family FAMILY ...]

Bounds are found for so many seconds on a small and a paper-scale instance; then the kernel checks
the certificate in a process of its own (CPU seconds, start included), and `verify_certificate` does
in this one, compiled (the better of two). Prints the table of ``docs/reference/certificates.md``.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
import tokenize
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

from library_records import Records

import hindsched as hs
from hindsched.instances.base import FAMILIES
from hindsched.instances.catalogue import all_recipes
from hindsched.kernel.__main__ import check_command as check_files
from hindsched.solvers.certificates.file import verify_certificate, write_certificate

KERNEL = Path(hs.__file__).parent / "kernel"
SIZES = {"oasis": {"horizon": 100, "jobs": 100}, "edgecloud": {"jobs": 60}}
"""Settings of the ``paper`` preset where it is larger or smaller than the paper's usual size."""
ANY = 10**18


def code_lines(path: Path) -> set[int]:
    """Lines of a file that run: no comments, docstrings or empty lines."""
    source = path.read_text()
    texts = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if isinstance(node.value.value, str)
    }
    silent = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENDMARKER,
    }  # fmt: skip
    used = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in silent
        for line in range(token.start[0], token.end[0] + 1)
    }
    return used - texts


def functions(path: Path) -> dict[int, set[int]]:
    """Lines of every function of a file, by its first one, as the interpreter numbers it."""
    found = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[first] = set(range(first, (node.end_lineno or first) + 1))
    return found


def files_of(name: str) -> set[str]:
    """A file of the kernel and those that it imports."""
    found = {name}
    for node in ast.walk(ast.parse((KERNEL / f"{name}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            named = [node.module] if node.module else [alias.name for alias in node.names]
            found = found.union(*(files_of(other) for other in named))
    return found


def lines_of(family: str) -> int:
    """Lines that must be right for a certificate of a family."""
    return sum(len(code_lines(KERNEL / f"{name}.py")) for name in files_of(family) | {"__main__"})


def entered_lines(paths: list[str]) -> int:
    """Lines of the kernel on which its verdict on files rests: none of functions not called.

    A function that is called counts whole, as do modules and classes outside functions.
    """
    called: set[tuple[str, int]] = set()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    family = json.loads(Path(paths[0]).read_text())["family"]
    sys.setprofile(seen)
    try:
        with redirect_stdout(io.StringIO()):
            code = check_files([*paths, "--limit", f"steps={ANY}"])
    finally:
        sys.setprofile(None)
    assert code == 0, paths
    lines = 0
    for name in files_of(family) | {"__main__"}:
        path = KERNEL / f"{name}.py"
        idle = (own for at, own in functions(path).items() if (str(path), at) not in called)
        lines += len(code_lines(path).difference(*idle))
    return lines


def most_entered(family: str, instances: int | None = None) -> tuple[int, int]:
    """The most of `entered_lines` over the library's small instances, or the first of them.

    Of a certificate alone, and of one with a solution.
    """
    records = Records(Path(__file__).parent / "library")
    alone, both = [0], [0]
    recipes = [r for r in all_recipes() if (r.family, r.suite) == (family, "library-small")]
    with tempfile.TemporaryDirectory() as folder:
        for recipe in recipes[:instances]:
            path = str(Path(folder) / f"{recipe.member}.json")
            hs.write(hs.named_instance(recipe.name), path)
            solution, certificate = (
                str(records.path(recipe, part)) for part in ("solution", "certificate")
            )
            alone.append(entered_lines([path, certificate]))
            both.append(entered_lines([path, solution, certificate]))
    return max(alone), max(both)


def times(instance: hs.Instance, seconds: float, folder: Path) -> tuple[float, float, str]:
    """CPU seconds of kernel and fast path on one certificate, and the kernel's last line."""
    result = hs.solve(instance, "bound", time_limit=seconds)
    assert result.certificate is not None
    paths = [str(folder / name) for name in ("instance.json", "certificate.json")]
    hs.write(instance, paths[0])
    write_certificate(result.certificate, paths[1])
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    limits = [word for name in ("steps", "items") for word in ("--limit", f"{name}={ANY}")]
    command = [sys.executable, "-m", "hindsched.kernel", *paths, *limits]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    exact = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    data, fast = result.certificate.to_dict(), []
    for _ in range(2):
        began = time.process_time()
        verify_certificate(instance, data)
        fast.append(time.process_time() - began)
    said = [line for line in done.stdout.splitlines() if line.startswith(("bound ", "refused"))]
    return exact, min(fast), said[-1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--family", action="append", choices=FAMILIES)
    options = parser.parse_args()
    print("| family | in files | right | with solution | instance | kernel, s | fast, s | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for family in options.family or FAMILIES:
        lines = " | ".join(map(str, (lines_of(family), *most_entered(family))))
        for preset, sizes in (("small", {}), ("paper", SIZES.get(family, {}))):
            instance = hs.generate(family, preset=preset, seed=1, **sizes)
            with tempfile.TemporaryDirectory() as folder:
                exact, fast, last = times(instance, options.seconds, Path(folder))
            assert last.startswith("bound "), last
            row = f"{exact:.2f} | {fast:.3f} | {exact / fast:.0f}"
            print(f"| {family} | {lines} | {instance.name} | {row} |", flush=True)


if __name__ == "__main__":
    main()

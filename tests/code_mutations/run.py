"""Changes the package's own code at random and counts the changes that no test notices.

    python -m tests.code_mutations.run --count 100 --seed 1 [--folder kernel]

A mutant lives in a process of its own, forked from one that has run the unchanged tests and has all
libraries and compiled kernels: only Python is loaded anew, and no file is touched. The tests that
stand beside the module run first, and all of its room if they notice nothing. A mutant that takes
`PATIENCE` times as long as the unchanged code counts as noticed. Survivors are printed with file,
line and change.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.code_mutations.mutants import mutant, sites

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "kernel": "hindsched/kernel", "solutions": "hindsched/solutions",
    "pricing": "hindsched/solvers/pricing",
}  # fmt: skip
ROOMS = {
    "kernel": (
        "tests/kernel",
        "tests/solutions/test_second_reading.py",
        "tests/solvers/pricing/test_contract.py",
        "tests/solvers/pricing/test_contract_decisions.py",
    ),
    "solutions": ("tests/solutions", "tests/kernel/test_gang.py", "tests/analysis/test_verify.py"),
    "pricing": ("tests/solvers/pricing", "tests/solvers/test_certificate.py", "tests/kernel"),
}
BESIDE = {
    "astraea": "windows", "batchsched": "windows", "__main__": "cli", "windows": "windows",
    "slots": "windows",
}  # fmt: skip
"""Modules whose tests have another name."""
KEPT = ("hindsched.solvers.kernels", "hindsched.kernel_cache", "hindsched.arrays")
"""What a mutant's process does not load anew, beside all that is not the package's own."""
PATIENCE, LEAST_SECONDS = 3, 5


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, and makes it from another source than its file's."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, path, source

    def find_spec(self, name: str, *_: Any) -> Any:
        """Only that module is found here."""
        if name != self.name:
            return None
        folder = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self, submodule_search_locations=folder
        )

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed source."""
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)


def tests_of(path: Path, folder: str) -> list[str]:
    """Tests that stand beside a module: of its family, or of its own name."""
    room, parent = ROOT / ROOMS[folder][0], path.parent.name
    family = path.stem if folder == "kernel" or parent == "pricing" else parent
    name = BESIDE.get(family, family) if folder == "kernel" else family
    beside = sorted(room.glob("test_contract*.py")) if folder == "pricing" else []
    beside.append(room / f"test_{name}.py")
    found = [str(file) for file in beside if file.exists()]
    chosen = ["-k", family] if folder == "pricing" != parent else []
    return [*found, *chosen] or list(ROOMS[folder])


def forget(folder: str) -> None:
    """Unload the tests and what a mutant of a folder could change."""
    own = ("hindsched.kernel",) if folder == "kernel" else ("hindsched",)
    for name in list(sys.modules):
        kept = name.startswith(KEPT) and folder != "kernel"
        if name.startswith((*own, "tests.", "test_")) and not kept and "code_mutations" not in name:
            del sys.modules[name]


def noticed(name: str, path: Path, source: str, tests: list[str], seconds: int) -> str | None:
    """How tests notice a source: ``failed``, ``hangs`` (CPU seconds); None if they do not."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        sys.meta_path.insert(0, Changed(name, path, source))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 1
        with contextlib.suppress(BaseException):
            code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
        os._exit(0 if code == 0 else 1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "hangs"
    return None if status == 0 else "failed"


def main() -> int:
    """Make the mutants that were asked for and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", choices=FOLDERS, action="append")
    parser.add_argument("--beside", action="store_true", help="only the tests beside the module")
    parser.add_argument("--record", type=Path, help="JSON file that the counts are added to")
    options = parser.parse_args()
    for folder in options.folder or FOLDERS:
        every = [
            (path, *site)
            for path in sorted((ROOT / FOLDERS[folder]).rglob("*.py"))
            for site in sites(path.read_text())
        ]
        drawn = random.Random(options.seed).sample(every, min(options.count, len(every)))
        survivors, usual = list[str](), dict[str, float]()
        for number, (path, position, line, word) in enumerate(drawn, 1):
            source, beside = path.read_text(), tests_of(path, folder)
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            changed = mutant(source, position, word)
            known = " ".join(beside)
            if known not in usual:
                began = time.process_time()
                code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *beside])
                assert code == 0, f"{beside} fail without a change"
                usual[known] = time.process_time() - began
                forget(folder)
            seconds = LEAST_SECONDS + int(PATIENCE * usual[known])
            how = noticed(name, path, changed, beside, seconds)
            if how is None and not options.beside:
                how = noticed(name, path, changed, list(ROOMS[folder]), 3600)
            what = f"{path.relative_to(ROOT)}:{line}: {word}"
            survivors += [what] if how is None else []
            print(f"{number}/{len(drawn)} {how or 'SURVIVES'} {what}", flush=True)
        noticed_of = f"{len(drawn) - len(survivors)} of {len(drawn)} noticed"
        print(f"{folder}: {noticed_of}, of {len(every)} changes", flush=True)
        if options.record:
            draw = {
                "folder": folder, "seed": options.seed, "drawn": len(drawn), "of": len(every),
                "survivors": survivors,
            }  # fmt: skip
            known = json.loads(options.record.read_text()) if options.record.exists() else []
            options.record.write_text(json.dumps([*known, draw], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What numba compiles counts against no limit, and is watched wherever kernels are loaded."""

import importlib
import re
from contextlib import nullcontext
from pathlib import Path

import hindsched as hs
from hindsched import compiler_clock
from hindsched.analysis import tasks


def test_whoever_loads_numba_counts_what_it_compiles():
    """No limit loads numba to do so: kernels do, and their folder is the only one that has any."""
    package = Path(hs.__file__).parent
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"^(import|from) numba", path.read_text(), re.MULTILINE)
        and "from hindsched.solvers.kernels" not in path.read_text()
        and "watch_compiler()" not in path.read_text()
    }
    assert {name for name in users if not name.startswith("solvers/kernels/")} == set()
    importlib.import_module("hindsched.solvers.kernels")
    assert compiler_clock._watched.is_set()


def test_what_a_run_loads_for_its_kernels_is_none_of_its_time(monkeypatch):
    seen = []
    monkeypatch.setattr(tasks, "watch_compiler", lambda: seen.append("loaded"))
    monkeypatch.setattr(tasks, "time_limit", lambda _: seen.append("clock") or nullcontext())
    with tasks._stopped_after(2.0):
        pass
    assert seen == ["loaded", "clock"]

"""Scripts of `benchmarks/` as modules, for the tests that hold a page against its script."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


def script(name: str) -> ModuleType:
    """A script by its name, under a name of its own; it finds the scripts beside it."""
    spec = importlib.util.spec_from_file_location(f"script_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    with patch.object(sys, "path", [*sys.path, str(BENCHMARKS)]):
        spec.loader.exec_module(module)
    return module

"""Compile every kernel once, before pytest's workers begin: ``python tests/fill_kernels.py``.

Solves and simulates one small instance of each family; what numba compiles meanwhile stays in
``NUMBA_CACHE_DIR``, and a file there says that all is done.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import hindsched as hs

SECONDS = 3.0


def fill(family: str) -> None:
    """Run what calls the kernels of a family."""
    instance = hs.generate(family, preset="small", seed=0)
    for method in ("auto", "bound", "tree"):
        try:
            hs.solve(instance, method=method, time_limit=SECONDS)
        except hs.HindschedError:
            continue  # not every family has every method
    for algorithm in hs.algorithms(family):
        try:
            hs.simulate(instance, algorithm)
        except hs.HindschedError:
            continue  # the tests say what fails


if __name__ == "__main__":
    done = Path(os.environ["NUMBA_CACHE_DIR"]) / "filled"
    if not done.exists():
        with ProcessPoolExecutor(2) as pool:
            list(pool.map(fill, reversed(hs.families())))  # gang, the longest, is the last of them
        done.touch()

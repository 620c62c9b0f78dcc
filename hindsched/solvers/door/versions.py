"""Versions of everything that can change a number, for results and bug reports."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    "hindsched", "pyomo", "highspy", "cvxpy", "cvxpy-base", "clarabel", "numpy", "scipy",
    "pandas", "numba", "pydantic",
)  # fmt: skip


@cache
def versions() -> dict[str, str]:
    """Version by package name, and Python's; packages that are not installed are left out.

    Examples
    --------
    >>> import hindsched as hs
    >>> "highspy" in hs.versions()
    True
    """
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found

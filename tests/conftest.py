"""What every test shares."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("HINDSCHED_THREADS", "1")  # tests run side by side themselves
os.environ.setdefault("HINDSCHED_COMPILE", "later")  # tests call few kernels of many families

EVERY_TIME = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}
settings.register_profile("commit", max_examples=20, **EVERY_TIME)
settings.register_profile("nightly", max_examples=200, **EVERY_TIME)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "commit"))


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Leave no open picture behind for the next test."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")

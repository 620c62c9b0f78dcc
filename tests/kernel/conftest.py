"""Strangers' limits hold in the kernel's tests."""

from collections.abc import Iterator

import pytest

from hindsched.kernel.reading import LIMITS, limited


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    """Hold every test to the default limits."""
    with limited(LIMITS):
        yield

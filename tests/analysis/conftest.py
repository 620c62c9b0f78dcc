"""An instance with a run and a certificate, which many tests look at."""

import pytest

import hindsched as hs


@pytest.fixture(scope="session")
def instance():
    return hs.named_instance("oasis-t10-i10-h25-s0")


@pytest.fixture(scope="session")
def solution(instance):
    return hs.simulate(instance, "oasis").solution


@pytest.fixture(scope="session")
def certificate(instance):
    return hs.solve(instance, "bound", options={"time_limit": 2}).certificate

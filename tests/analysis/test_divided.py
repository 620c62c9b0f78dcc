"""A bound divided over workers is the bound of one process, also when a worker dies."""

import os
import signal

import numpy as np
import pytest

import hindsched as hs
from hindsched.analysis.distributed_bound import (
    LocalTeam,
    divided_bound,
    local_team,
)
from hindsched.errors import InputError
from hindsched.solvers.bounds.distributed import DividedOracle
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.oracles.base import build_oracle

ITERATIONS = 40


def small(family):
    return hs.generate(family, "small", seed=3, jobs=9)


def bounded(oracle):
    return subgradient_bound(oracle, max_iterations=ITERATIONS)


class Here(LocalTeam):
    """The shares in this process: what is divided, without processes."""

    def hold(self, shares):
        self.shares = shares

    def ask(self, prices):
        from hindsched.solvers.bounds.distributed import answer

        return [answer(share, prices) for share in self.shares]


@pytest.mark.parametrize("shares", [1, 2, 5, 20])
@pytest.mark.parametrize("family", ["oasis", "batchsched", "astraea"])
def test_shares_give_the_same_bound_bit_for_bit(family, shares):
    oracle = build_oracle(small(family))
    found = bounded(DividedOracle(oracle, Here(shares)))
    alone = bounded(oracle)
    assert found.iterations == alone.iterations
    assert found.bound == alone.bound
    assert (found.prices == alone.prices).all()


@pytest.mark.nightly
def test_a_local_worker_that_dies_is_replaced():
    instance = small("batchsched")
    oracle = build_oracle(instance)
    with local_team(2) as team:
        divided = DividedOracle(oracle, team)
        zero = np.zeros(oracle.rows.size)
        before = divided.bound(zero)
        (victim,) = team._processes[1]._processes
        os.kill(victim, signal.SIGKILL)
        found = bounded(divided)
    assert team.taken_over == 1
    assert before == oracle.bound(zero)
    assert found.bound == bounded(oracle).bound
    assert verify_certificate(instance, found.certificate.to_dict()).bound == found.bound


def test_the_result_says_how_it_was_divided():
    instance = small("astraea")
    found = divided_bound(instance, workers=2)
    alone = hs.solve(instance, "bound")
    assert found.bound == alone.bound
    assert found.details["shares"] == 2
    assert found.details["taken_over"] == 0
    rows = build_oracle(instance).rows.size
    assert 4 * 8 * rows < found.details["bytes_an_evaluation"] < 4 * 8 * (rows + 8)


@pytest.mark.parametrize("family", ["edgecloud", "gang", "mlbroker"])
def test_a_bound_that_is_not_divided_is_refused(family):
    with pytest.raises(InputError, match=rf"workers.*bound of {family} does not divide its blocks"):
        divided_bound(small(family), workers=2)

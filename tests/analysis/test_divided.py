"""A bound divided over workers is the bound of one process."""

import pytest

import hindsched as hs
from hindsched.analysis.distributed_bound import bound_on_cluster
from hindsched.errors import InputError
from hindsched.solvers.bounds.distributed import DividedOracle, ShareTeam, answer
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.oracles.base import build_oracle


def small(family):
    return hs.generate(family, "small", seed=3, jobs=9)


class Here(ShareTeam):
    """The shares in this process: what is divided, without processes."""

    def __init__(self, size):
        self.size = size

    def hold(self, shares):
        self.shares = shares

    def ask(self, prices):
        return [answer(share, prices) for share in self.shares]


@pytest.mark.parametrize("shares", [1, 2, 20])
@pytest.mark.parametrize("family", ["oasis", "batchsched", "astraea"])
def test_shares_give_the_same_bound_bit_for_bit(family, shares):
    oracle = build_oracle(small(family))
    found = subgradient_bound(DividedOracle(oracle, Here(shares)), max_iterations=40)
    alone = subgradient_bound(oracle, max_iterations=40)
    assert found.iterations == alone.iterations
    assert found.bound == alone.bound
    assert (found.prices == alone.prices).all()


@pytest.mark.nightly
def test_a_cluster_finds_the_same_bound():
    distributed = pytest.importorskip("distributed", reason="hindsched[dask] is not installed")
    instance = small("astraea")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://",
        dashboard_address=None,
    ) as cluster:  # fmt: skip
        found = bound_on_cluster(instance, cluster.scheduler_address)
    assert found.bound == hs.solve(instance, "bound").bound
    assert found.details["shares"] == 2
    rows = build_oracle(instance).rows.size
    assert 4 * 8 * rows < found.details["bytes_an_evaluation"] < 4 * 8 * (rows + 8)


@pytest.mark.parametrize("family", ["edgecloud", "gang", "mlbroker"])
def test_a_bound_that_is_not_divided_is_refused(family):
    with pytest.raises(InputError, match=rf"dask.*bound of {family} does not divide its blocks"):
        bound_on_cluster(small(family), "tcp://127.0.0.1:1")

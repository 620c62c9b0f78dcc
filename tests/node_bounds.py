"""The bound of a tree's root without a tree: the linear program over whole schedules, for tests."""

from hindsched.solvers.bounds.lagrangian import Subgradient
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.tree.node_program import NodeProgram

WARM_ITERATIONS = 40


def root_bound(oracle, prices=None):
    """The certificate of the best prices, found by column generation from `prices` on."""
    search = Subgradient(oracle, prices)
    while prices is None and search.iterations < WARM_ITERATIONS and not search.converged:
        search.step(None)
    program = NodeProgram(oracle, search.size)
    return certify(oracle, program.bound((), search.best.prices, None, lambda: None).prices)

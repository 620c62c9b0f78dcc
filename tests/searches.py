"""A neighbourhood search of so many neighbourhoods, for tests."""

from hindsched.solvers.search import NeighbourhoodSearch


def searched(oracle, *, prices=None, start=None, max_iterations=0):
    """The solution that it finds, or None."""
    search = NeighbourhoodSearch(oracle, prices, start=start)
    if not search.is_complete:
        search.construct()
    search.improve(lambda: search.iterations >= max_iterations)
    return search.solution()

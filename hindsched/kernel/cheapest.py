"""The cheapest units of what is offered, in integers."""

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import accumulate, chain, islice, repeat


class Cheapest:
    """The cheapest `need` units offered so far; at first all at a price that none is worth."""

    def __init__(self, need: int, never: int) -> None:
        self.held, self.cost = {never: need}, never * need
        self._dearest = [-never]

    @property
    def dearest(self) -> int:
        """Price of the dearest units that are held."""
        return -self._dearest[0]

    def offer(self, price: int, number: int) -> None:
        """Units that replace the dearest ones, as long as these cost more."""
        while number and price < (dearest := self.dearest):
            taken = min(self.held[dearest], number)
            self.cost, number = self.cost - taken * (dearest - price), number - taken
            if price not in self.held:
                self.held[price] = 0
                heappush(self._dearest, -price)
            self.held[price] += taken
            self.held[dearest] -= taken
            if not self.held[dearest]:
                del self.held[-heappop(self._dearest)]


def cheapest_units(places: Iterable[tuple[int, int, int]], most: int, never: int) -> list[int]:
    """Cost of the cheapest 0, 1, ..., `most` units on places (price, least, most), or `never`."""
    listed = sorted(places)
    if any(low > high for _, low, high in listed):
        return [never] * (most + 1)
    forced = sum(low for _, low, _ in listed)
    start = sum(price * low for price, low, _ in listed)
    units = chain.from_iterable(repeat(price, high - low) for price, low, high in listed)
    costs = [*repeat(never, min(forced, most + 1)), *accumulate(islice(units, most), initial=start)]
    return (costs + [never] * most)[: most + 1]

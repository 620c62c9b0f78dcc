"""What is free in every slot, kept only where it changes: empty slots cost nothing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = TypeVar("Array", bound=NDArray[Any])


class CapacityTimeline(Generic[Array]):
    """Capacities by slot, from slot 1 on without end; where nothing was booked, those given.

    >>> free = CapacityTimeline(np.array([4, 2]))
    >>> free.book(1_000_000, 1_000_001, np.array([1, 2]))
    >>> free.at(999_999).tolist(), free.at(1_000_000).tolist()
    ([4, 2], [3, 0])
    """

    def __init__(self, capacity: Array) -> None:
        self.capacity = capacity
        self._cuts = [1]
        self._free = [capacity]  # from each cut to the next

    def at(self, slot: int) -> Array:
        """What is free in a slot; not to be changed."""
        return self._free[bisect_right(self._cuts, slot) - 1]

    def least(self, first: int, last: int) -> Array:
        """The least that is free in slots `first` .. `last`, of each capacity by itself."""
        begin, end = bisect_right(self._cuts, first) - 1, bisect_right(self._cuts, last)
        least: Any = np.min(self._free[begin:end], axis=0)
        return least  # type: ignore[no-any-return]

    def book(self, first: int, last: int, used: Any) -> None:
        """Take what is used, the same in every slot, in slots `first` .. `last`."""
        for k in range(self._cut(first), self._cut(last + 1)):
            self._free[k] = self._free[k] - used

    def _cut(self, slot: int) -> int:
        """Let a slot begin a stretch of its own; which one."""
        k = bisect_left(self._cuts, slot)
        if k == len(self._cuts) or self._cuts[k] != slot:
            self._cuts.insert(k, slot)
            self._free.insert(k, self._free[k - 1])
        return k

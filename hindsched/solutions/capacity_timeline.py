"""What is free in every slot, laid out only where something was booked.

An instance may have ten million slots in which nothing happens; whoever keeps what is left of the
cluster in each of them needs a page of slots only around what runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hindsched.limits import check_memory

Array = TypeVar("Array", bound=NDArray[Any])
SLOTS_OF_A_PAGE = 256


class CapacityTimeline(Generic[Array]):
    """Capacities by slot, from slot 1 on without end.

    Parameters
    ----------
    capacity : ndarray
        What is free where nothing was booked: of every slot the same.

    Examples
    --------
    >>> import numpy as np
    >>> free = CapacityTimeline(np.array([4, 2]))
    >>> free.book(1_000_000, 1_000_001, np.array([1, 2]))
    >>> free.window(999_999, 1_000_000).tolist(), free.pages
    ([[4, 2], [3, 0]], 1)
    """

    def __init__(self, capacity: Array) -> None:
        self.capacity = capacity
        self._pages: dict[int, Array] = {}

    @property
    def pages(self) -> int:
        """How many pages of slots are laid out."""
        return len(self._pages)

    def at(self, slot: int) -> Array:
        """What is free in a slot; not to be changed."""
        number, place = divmod(slot - 1, SLOTS_OF_A_PAGE)
        page = self._pages.get(number)
        found: Array = self.capacity if page is None else page[place]
        return found

    def of(self, slots: Any, *part: Any) -> Array:
        """What is free in each of many slots of a part of the capacities: arrays of one length."""
        numbers, places = np.divmod(np.asarray(slots) - 1, SLOTS_OF_A_PAGE)
        found: Any = self.capacity[part]
        for number in self._pages.keys() & set(np.unique(numbers).tolist()):
            here = numbers == number
            found[here] = self._pages[number][(places[here], *(each[here] for each in part))]
        return found  # type: ignore[no-any-return]

    def window(self, first: int, last: int, *part: Any) -> Array:
        """Copy of what is free in slots `first` .. `last`, slots first.

        Parameters
        ----------
        first, last : int
            Both inclusive.
        *part
            Index of the part of the capacities that is meant; all if absent.

        Raises
        ------
        InputError
            If the memory does not hold so many slots.
        """
        whole = self.capacity[part] if part else self.capacity
        _check(last - first + 1, whole)
        found: Any = np.repeat(whole[None], last - first + 1, axis=0)
        for page, here, there in self._parts(first, last):
            if page in self._pages:
                found[there] = self._pages[page][(here, *part)]
        return found  # type: ignore[no-any-return]

    def least(self, first: int, last: int) -> Array:
        """The least that is free in slots `first` .. `last`, of each capacity by itself."""
        parts = [
            self._pages[page][here].min(axis=0) if page in self._pages else self.capacity
            for page, here, _ in self._parts(first, last)
        ]
        found: Any = parts[0] if len(parts) == 1 else np.min(parts, axis=0)
        return found  # type: ignore[no-any-return]

    def book(self, first: int, last: int, used: Any, *part: Any) -> None:
        """Take what is used, the same in every slot, from a part of the capacities.

        Raises
        ------
        InputError
            If the memory does not hold so many slots.
        """
        _check(last - first + 1, self.capacity)
        for page, here, _ in self._parts(first, last):
            if page not in self._pages:
                self._pages[page] = np.repeat(self.capacity[None], SLOTS_OF_A_PAGE, axis=0)  # type: ignore[assignment]
            self._pages[page][(here, *part)] -= used

    @staticmethod
    def _parts(first: int, last: int) -> Iterator[tuple[int, slice, slice]]:
        """Pages of a window: number, slots of the page, slots of the window."""
        for page in range((first - 1) // SLOTS_OF_A_PAGE, (last - 1) // SLOTS_OF_A_PAGE + 1):
            begin = page * SLOTS_OF_A_PAGE
            low, high = max(first - 1, begin), min(last, begin + SLOTS_OF_A_PAGE)
            yield page, slice(low - begin, high - begin), slice(low - first + 1, high - first + 1)


def _check(slots: int, capacity: NDArray[Any]) -> None:
    check_memory(f"room in {slots} slots", float(capacity.nbytes) * slots)

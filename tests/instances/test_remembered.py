"""What is worked out of an instance once."""

from __future__ import annotations

import gc

from hindsched.instances.remembered import remembered


class Thing:
    """Something that can be referred to weakly, and has no hash."""

    __hash__ = None

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return self.number == other.number


def test_once_for_each_and_forgotten_with_it():
    asked = []

    @remembered
    def double(thing):
        """Twice the number."""
        asked.append(thing.number)
        return [2 * thing.number]

    one, same = Thing(3), Thing(3)
    assert double(one) is double(one)
    assert double(same) == [6]
    assert asked == [3, 3]
    assert double.__doc__ == "Twice the number."
    del one, same
    gc.collect()
    known = double.__closure__
    assert [cell.cell_contents for cell in known if isinstance(cell.cell_contents, dict)] == [{}]

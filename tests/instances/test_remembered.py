"""What is worked out of an instance once."""

from __future__ import annotations

import gc

import pytest

from hindsched.instances import remembered as module
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


def test_nothing_is_kept_of_an_instance_whose_end_nobody_would_see(monkeypatch):
    """Another instance may stand in its place later."""

    def full(*_):
        raise MemoryError

    double = remembered(lambda thing: 2 * thing.number)
    with monkeypatch.context() as patched:
        patched.setattr(module, "finalize", full)
        with pytest.raises(MemoryError):
            double(Thing(3))
    (known,) = (cell.cell_contents for cell in double.__closure__
                if isinstance(cell.cell_contents, dict))  # fmt: skip
    assert known == {}
    assert double(Thing(4)) == 8

"""Linking rows by name: what files may say of them, and what their means are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hindsched.errors import InputError
from hindsched.solvers.oracles.rows import LARGEST_PRICE, Rows, RowSet, slot_labels

HELD = np.array([[[2.0, 2, 4], [1, 1, 0]], [[6, 2, 0], [3, 3, 0]]])


def three_sets() -> Rows:
    """Servers' resources from slot 3 on, one row a slot, and two tags."""
    slots = ("slot", (3, 4, 5))
    return Rows(
        [
            RowSet("held", (("server", ("a", "b")), ("resource", ("gpu", "net")), slots), HELD),
            RowSet("room_capacity", (slots,), np.array([1.0, 2, 3])),
            RowSet("tags", (("tag", ("x", 1)),), np.array([5.0, 0])),
        ]
    )


def test_rows_lie_end_to_end() -> None:
    rows = three_sets()
    assert rows.size == 17
    assert rows.capacity.tolist() == [*HELD.ravel().tolist(), 1, 2, 3, 5, 0]
    assert rows.label(0) == {"rows": "held", "server": "a", "resource": "gpu", "slot": 3}
    assert rows.label(10) == {"rows": "held", "server": "b", "resource": "net", "slot": 4}
    assert rows.label(12) == {"rows": "room_capacity", "slot": 3}
    assert rows.label(16) == {"rows": "tags", "tag": 1}
    for wrong in (-1, 17):
        with pytest.raises(IndexError):
            rows.label(wrong)
    flat = np.arange(17.0)
    parts = rows.unpack(flat)
    assert parts["held"][1, 0].tolist() == [6, 7, 8]
    assert rows.pack(parts).tolist() == flat.tolist()
    assert rows.pack({"tags": np.array([1.0, 2])}).tolist() == [0] * 15 + [1, 2]
    with pytest.raises(ValueError, match=r"tags: capacity \(3,\) is not \(2,\)"):
        RowSet("tags", (("tag", ("x", "y")),), np.zeros(3))


def test_runs_of_one_price_are_one_row() -> None:
    rows = three_sets()
    flat = np.zeros(17)
    flat[[1, 2, 9, 10, 11, 12, 14, 16]] = [2, 2, 7, 8, 8, 3, 3, 4]
    written = rows.to_file(flat)
    assert written == {
        "held": [
            {"server": "a", "resource": "gpu", "from": 4, "to": 5, "price": 2},
            {"server": "b", "resource": "net", "from": 3, "to": 3, "price": 7},
            {"server": "b", "resource": "net", "from": 4, "to": 5, "price": 8},
        ],
        "room_capacity": [
            {"from": 3, "to": 3, "price": 3}, {"from": 5, "to": 5, "price": 3},
        ],
        "tags": [{"tag": 1, "price": 4}],
    }  # fmt: skip
    assert rows.from_file(written).tolist() == flat.tolist()
    assert rows.from_file({}).tolist() == [0] * 17
    most = {"tags": [{"tag": "x", "price": LARGEST_PRICE}]}
    assert rows.from_file(most)[15] == LARGEST_PRICE


ONE = {"server": "a", "resource": "gpu", "from": 4, "to": 5, "price": 1}


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ([], r"^prices: .*an object of row sets"),
        ({"hold": []}, r"^prices\.hold: hold: must be one of held, room_capacity, tags"),
        ({"held": [ONE, 3]}, r"^prices\.held\[1\]: .*keys from, price, resource, server, to"),
        ({"tags": [{"tag": "x", "price": 1, "from": 3, "to": 3}]}, r"the keys price, tag$"),
        ({"held": [{**ONE, "server": "c"}]}, r"^prices\.held\[0\]\.server: c: must be a label"),
        ({"held": [{**ONE, "from": 2}]}, r"^prices\.held\[0\]\.from: 2: must be a slot, .*3\.\.5"),
        ({"held": [{**ONE, "from": True}]}, r"^prices\.held\[0\]\.from: "),
        ({"held": [{**ONE, "to": 3}]}, r"^prices\.held\[0\]\.to: 3: must not precede from = 4"),
        ({"held": [{**ONE, "price": True}]}, r"^prices\.held\[0\]\.price: "),
        ({"room_capacity": [{"from": 3, "to": 3, "price": 1.1e100}]}, r"\.price: "),
        ({"held": [{**ONE, "price": float("nan")}]}, r"^prices\.held\[0\]\.price: "),
        ({"held": [{**ONE, "price": -1}]}, r"^prices\.held\[0\]\.price: -1: .*not be negative"),
        ({"held": [ONE, {**ONE, "from": 5}]}, r"^prices\.held\[1\]: .*price a row twice"),
    ],
)  # fmt: skip
def test_bad_rows_are_named(prices: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        three_sets().from_file(prices)


def test_means_by_slot_are_weighted_by_what_is_held() -> None:
    rows = three_sets()
    prices = np.random.default_rng(1).random(17)
    worth: dict[Any, float] = {}
    held: dict[Any, float] = {}
    for index, (price, capacity) in enumerate(zip(prices, rows.capacity, strict=True)):
        label = rows.label(index)
        if "slot" in label:
            key = label["slot"], label.get("resource", "room")
            worth[key] = worth.get(key, 0) + price * capacity
            held[key] = held.get(key, 0) + capacity
    found = rows.mean_by_slot(prices)
    keys = [(row["slot"], row["resource"]) for row in found]
    assert keys == sorted(key for key in held if held[key])
    assert (5, "net") not in keys
    for key, row in zip(keys, found, strict=True):
        assert row["price"] == pytest.approx(worth[key] / held[key])


def test_labels_of_slots_need_memory() -> None:
    assert slot_labels(3, 7) == (1, 2, 3)
    with pytest.raises(InputError, match=r"prices of 7000000000000 rows over 1000000000000 slots"):
        slot_labels(10**12, 7)

"""Files that are not trusted: exact numbers, hashes, limits, and one line for what is wrong."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.io import parse_instance
from hindsched.kernel import reading
from hindsched.kernel.exact import point
from hindsched.kernel.reading import RefusedFile, limited, load
from tests.kernel.agreement import INSTANCES


@pytest.fixture
def write(tmp_path):
    def to_file(text, name="file.json"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return to_file


def test_numbers_are_the_decimals_written(write):
    text = '{"a": 0.1, "b": 1e-3, "c": -7, "d": 2.50, "e": 1234567890123456.5, "f": 1E2}'
    data, _ = load(write(text))
    assert data == {
        "a": Fraction(1, 10), "b": Fraction(1, 1000), "c": -7, "d": Fraction(5, 2),
        "e": Fraction(2469135780246913, 2), "f": 100,
    }  # fmt: skip
    assert type(data["c"]) is int
    assert type(data["f"]) is Fraction


@given(st.sampled_from(sorted(INSTANCES)).flatmap(INSTANCES.__getitem__))
def test_the_hash_is_the_packages(tmp_path_factory, instance):
    path = tmp_path_factory.mktemp("hash") / "instance.json"
    data = instance.to_dict() | {"provenance": {"ä": [1.0, 1e22, -0.0, None, True]}}
    path.write_text(json.dumps(data, indent=2), encoding="utf-8")
    assert load(str(path))[1] == parse_instance(data).sha256()


def test_gzip_and_byte_order_mark(write):
    assert load(write(gzip.compress(b'{"a": 1}'), "a.json.gz"))[0] == {"a": 1}
    assert load(write("\ufeff{}"))[0] == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "object"),
        ("{", "Expecting"),
        ('{"a": 12345678901234567890.5}', "more digits than a double keeps"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1, "b": 2, "a": 3}', "'a' stands twice"),
        ('{"a": ' + "[" * 65 + "]" * 65 + "}", "depth"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "recursion|depth|overflow"),
        ('{"a": 1' + "0" * 500 + "}", "digits"),
        ('{"a": 1e999}', "digits"),
        ('{"a": 1e-99999999999999999999}', "digits"),
        ('{"a": [' + "0," * 500_001 + "0]}", "items"),
        (b'{"a": "\xff"}', "utf-8"),
        ('{"a": "\\ud800"}', "surrogates"),
        (b"\x1f\x8b\x08\x00", "ended|unreadable"),
    ],
)
def test_what_is_refused_in_one_line(write, text, says):
    with pytest.raises(RefusedFile, match=says) as caught:
        load(write(text, "x.json.gz" if text[:1] == b"\x1f" else "x.json"))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_file_that_unpacks_beyond_the_limit_is_not_unpacked(write):
    with limited({"bytes": 1000}), pytest.raises(RefusedFile, match="bytes"):
        load(write(gzip.compress(b" " * 10**6), "bomb.json.gz"))
    with limited({"bytes": 1000}), pytest.raises(RefusedFile, match="--limit bytes="):
        load(write(" " * 1001))


def test_absent_files_are_refused(tmp_path):
    for name in ("absent.json", "absent.json.gz", "."):
        with pytest.raises(RefusedFile):
            load(str(tmp_path / name))


def rows(*rows):
    return {"set": list(rows)}


AXES = [("server", ["a", "b"])]


def test_price_rows_are_series_by_slot():
    given = rows(
        {"server": "a", "from": 2, "to": 3, "price": 5},
        {"server": "a", "from": 4, "to": 4, "price": Fraction(1, 2)},
    )
    found = reading.price_rows(given, {"set": AXES, "other": AXES}, 4)
    assert found == {"set": {("a",): [0, 0, 5, 5, Fraction(1, 2)]}, "other": {}}
    assert reading.to_integers(found["set"].values(), 3) == 6
    assert found["set"] == {("a",): [0, 0, 30, 30, 3]}


@pytest.mark.parametrize(
    "row",
    [
        {"server": "c", "from": 1, "to": 1, "price": 1},
        {"server": "a", "from": 0, "to": 1, "price": 1},
        {"server": "a", "from": 1, "to": 5, "price": 1},
        {"server": "a", "from": Fraction(3, 2), "to": 2, "price": 1},
        {"server": "a", "from": 1, "to": 1, "price": -1},
        {"server": "a", "from": 1, "to": 1, "price": True},
        {"server": "a", "from": 1, "to": 1, "price": 1, "more": 1},
        {"server": "b", "from": 4, "to": 4, "price": 1},
    ],
)
def test_price_rows_refuse(row):
    with pytest.raises(RefusedFile):
        reading.price_rows(
            rows({"server": "b", "from": 1, "to": 4, "price": 0}, row), {"set": AXES}, 4
        )


def test_stated_bounds_may_be_worse_but_not_better():
    proven = point(Fraction(10))
    for sense, worse, better in (
        ("max", "10.1", "9.99999999999"),
        ("min", "9.9", "10.00000000001"),
    ):
        reading.check_stated(Fraction(worse), proven, sense, "bound")
        reading.check_stated(Fraction(10), proven, sense, "bound")
        with pytest.raises(RefusedFile, match="more than what is proven"):
            reading.check_stated(Fraction(better), proven, sense, "bound")

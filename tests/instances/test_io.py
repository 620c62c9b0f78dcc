"""Instance files: exact round trip, hashes, migration of older formats, schema, one-line errors."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hindsched.errors import InputError
from hindsched.instances.base import FAMILIES, canonical_json
from hindsched.instances.io import parse_instance, read, schema, write

DATA = Path(__file__).resolve().parent.parent / "data"
FILES = sorted((DATA / "instances").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_read_and_write_round_trip_exactly(path: Path, tmp_path: Path) -> None:
    given = json.loads(path.read_text())
    instance = read(path)
    assert instance.to_dict() == given
    assert instance.sha256() == hashlib.sha256(canonical_json(given).encode()).hexdigest()
    write(instance, tmp_path / "copy.json")
    assert json.loads((tmp_path / "copy.json").read_text()) == given
    assert read(tmp_path / "copy.json") == instance


def test_numbers_keep_the_type_they_were_written_with() -> None:
    data = json.loads(FILES[0].read_text())
    for seconds in (3600, 3600.0):
        again = parse_instance({**data, "slot_seconds": seconds}).to_dict()
        assert type(again["slot_seconds"]) is type(seconds)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "marked.json"
    path.write_bytes(b"\xef\xbb\xbf" + FILES[0].read_bytes())
    assert read(path) == read(FILES[0])


def test_an_older_format_is_migrated_step_by_step() -> None:
    old = DATA / "format-0" / "batchsched-rar-j5-s200.json"
    assert json.loads(old.read_text())["format"] == "hindsched/0"
    migrated = read(old)
    assert migrated == read(DATA / "instances" / "batchsched-rar-j5-s200.json")
    assert migrated.to_dict()["format"] == "hindsched/1"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "hindsched/2"}, "format: hindsched/2"),
        ({"family": "unknown"}, "family: unknown"),
        ({"surprise": 1}, "surprise: 1: unknown field"),
        ({"horizon": 0}, "horizon: 0"),
        ({"horizon": True}, "horizon: True"),
        ({"slot_seconds": float("inf")}, "slot_seconds: inf"),
        ({"name": ""}, "name"),
    ],
)
def test_broken_envelopes_are_one_line(change: dict[str, Any], said: str) -> None:
    data = {**json.loads(FILES[0].read_text()), **change}
    with pytest.raises(InputError) as caught:
        parse_instance(data)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"horizon": NaN}', "\x00"])
def test_what_is_no_json_object_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("family", FAMILIES)
def test_schemas_name_what_files_have(family: str) -> None:
    body = schema(family)
    assert {"format", "family", "name", "horizon", "slot_seconds"} <= set(body["required"])
    assert body["additionalProperties"] is False
    for path in FILES:
        data = json.loads(path.read_text())
        if data["family"] == family:
            assert set(body["required"]) <= set(data) <= set(body["properties"])


@pytest.mark.parametrize("number", ["9" * 500, "-" + "9" * 400, "2e-999999999999999999", "0.1e999"])
def test_numbers_beyond_a_double_are_one_line(number, tmp_path):
    path = tmp_path / "instance.json"
    path.write_text(f'{{"format": "hindsched/1", "family": "oasis", "horizon": {number}}}')
    with pytest.raises(InputError, match="digits") as caught:
        read(path)
    assert "\n" not in str(caught.value)

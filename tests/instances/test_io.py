"""Instance files: types of numbers, one-line errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hindsched.errors import InputError
from hindsched.instances.io import parse_instance, read

DATA = Path(__file__).resolve().parent.parent / "data"
FILES = sorted((DATA / "instances").glob("*.json"))


def test_numbers_keep_the_type_they_were_written_with() -> None:
    data = json.loads(FILES[0].read_text())
    for seconds in (3600, 3600.0):
        again = parse_instance({**data, "slot_seconds": seconds}).to_dict()
        assert type(again["slot_seconds"]) is type(seconds)


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"horizon": NaN}', "\x00"])
def test_what_is_no_json_object_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", ["9" * 500, "-" + "9" * 400, "2e-999999999999999999", "0.1e999"])
def test_numbers_beyond_a_double_are_one_line(number, tmp_path):
    path = tmp_path / "instance.json"
    path.write_text(f'{{"format": "hindsched/1", "family": "oasis", "horizon": {number}}}')
    with pytest.raises(InputError, match="digits") as caught:
        read(path)
    assert "\n" not in str(caught.value)

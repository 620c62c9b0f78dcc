"""Records of JSON files as a stream: a list, a list under a key, or one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.open_compressed import Source
from hindsched.json_types import JsonObject

SPACE = " \t\n\r"
FIRST_PIECE = 1 << 16


def records(source: Source, lines: Iterator[str], key: str) -> Iterator[tuple[int, Any]]:
    """Records of a JSON file with their number, counted from 1.

    The file is a list of records, an object with a list of records under `key`, or a sequence of
    records (as JSON lines are), each of which may be such an object.

    Raises
    ------
    InputError
        If it is not JSON, or a record exceeds the limit on lines.
    """
    text = _Text(source, lines)
    number = 0
    while text.peek():
        if text.peek() == "[":
            items = text.items()
        elif text.peek() == "{":
            items = text.items_under(key)
        else:
            raise text.error("must be JSON: a list or an object")
        for item in items:
            number += 1
            yield number, item
    if number == 0:
        raise InputError(source.name, "(no record)", f"must hold a list of records or {key!r}")


def peek(lines: Iterator[str]) -> tuple[Iterator[str], str]:
    """The lines again, and the first character that is no space."""
    seen: list[str] = []
    for line in lines:
        seen.append(line)
        if line.strip():
            break
    mark = seen[-1].lstrip()[:1] if seen else ""
    return chain(seen, lines), mark


class _Text:
    """JSON text of which only what is being read is held."""

    def __init__(self, source: Source, lines: Iterator[str]) -> None:
        self._source = source
        self._lines = lines
        self._text = ""
        self._at = 0
        self._row = 0
        self._decoder = json.JSONDecoder(parse_constant=self._refuse_constant)

    def peek(self) -> str:
        """Next character that is no space, or nothing at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more(1):
                return ""

    def items(self) -> Iterator[Any]:
        """Items of the list that begins here."""
        self._take("[")
        if self.peek() == "]":
            self._take("]")
            return
        while True:
            yield self.value()
            if self.peek() == "]":
                self._take("]")
                return
            self._take(",")

    def items_under(self, key: str) -> Iterator[Any]:
        """Items of the list that the object here has under a key; without one, the object."""
        self._take("{")
        found: JsonObject = {}
        is_list = False
        while self.peek() != "}":
            name = self.value()
            if not isinstance(name, str):
                raise self.error("must be JSON: an object's keys are texts")
            self._take(":")
            if name == key and self.peek() == "[":
                is_list = True
                yield from self.items()
            else:
                found[name] = self.value()
            if self.peek() != "}":
                self._take(",")
        self._take("}")
        if not is_list:
            yield found

    def value(self) -> Any:
        """The value that begins here."""
        self.peek()
        piece = FIRST_PIECE
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._more(piece):
                    piece *= 2
                    continue
                self._at = min(error.pos, len(self._text))
                raise self.error(f"must be JSON ({error.msg})") from None
            except RecursionError:
                raise self.error("must not nest so deep") from None
            # A number may go on after what has been read.
            if end == len(self._text) and self._more(piece):
                continue
            self._at = end
            return value

    def error(self, rule: str) -> InputError:
        """An error at the present place."""
        row = self._row - self._text.count("\n", self._at)
        shown = self._text[self._at : self._at + 40] or "(end of the file)"
        return InputError(f"{self._source.name}, row {max(row, 1)}", shown, rule)

    def _take(self, mark: str) -> None:
        if self.peek() != mark:
            raise self.error(f"must be JSON (a {mark!r} is missing)")
        self._at += 1

    def _more(self, size: int) -> bool:
        """Read on; False at the end of the file."""
        if len(self._text) - self._at > self._source.limits.longest_line:
            rule = f"must have records of at most {self._source.limits.longest_line} characters"
            raise self.error(rule + " (longest_line)")
        pieces: list[str] = []
        wanted = max(size, FIRST_PIECE)
        for line in self._lines:
            pieces.append(line)
            self._row += 1
            wanted -= len(line) + 1
            if wanted <= 0:
                break
        if not pieces:
            return False
        self._text = self._text[self._at :] + "\n".join(pieces) + "\n"
        self._at = 0
        return True

    def _refuse_constant(self, text: str) -> Any:
        raise self.error(f"must be JSON ({text} is no number)")

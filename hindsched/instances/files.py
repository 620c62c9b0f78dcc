"""A file's bytes: plain, gzip, bzip2 or xz, told by the first bytes, up to a size limit."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from hindsched.errors import InputError

MOST_BYTES = 1 << 30
"""What a file may unpack to, unless the caller says otherwise."""
OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
FOREIGN = {
    b"\x28\xb5\x2f\xfd": "zstd: unpack it first",
    b"PK\x03\x04": "a ZIP archive (or a spreadsheet): unpack it or export it as CSV",
    b"\xff\xfe": "UTF-16: export it as UTF-8",
    b"\xfe\xff": "UTF-16: export it as UTF-8",
    b"%PDF": "a PDF",
    b"PAR1": "a Parquet file: read it with pandas and pass the frame",
    b"SQLite format 3": "an SQLite database: export the table as CSV",
}


def read_bytes(path: str | Path, most_bytes: int = MOST_BYTES) -> tuple[bytes, str]:
    """A file's or pipe's bytes, unpacked, and the SHA-256 of what is stored.

    `InputError` if it is absent, no file, damaged, of a foreign format, or larger than
    `most_bytes`.
    """
    source, file = str(path), Path(path)
    try:
        if not (file.is_file() or file.is_fifo()):
            found = "a folder" if file.is_dir() else "a device" if file.exists() else "(absent)"
            raise InputError(source, found, "must be a readable file")
        with file.open("rb") as stream:
            data = raw = stream.read(most_bytes + 1)
        for magic, unpack in OPENERS.items():
            if raw.startswith(magic):
                data = unpack(io.BytesIO(raw)).read(most_bytes + 1)
    except InputError:
        raise
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InputError(source, f"damaged ({error})", "must be a whole file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(source, reason, "must be a readable file") from None
    for magic, what in FOREIGN.items():
        if raw.startswith(magic):
            raise InputError(source, what, "must be text, or text packed by gzip, bzip2 or xz")
    if len(data) > most_bytes:
        rule = f"must unpack to at most {most_bytes} bytes (most_bytes)"
        raise InputError(source, f"more than {most_bytes} bytes", rule)
    return data, hashlib.sha256(raw).hexdigest()


def decoded(data: bytes, source: str) -> str:
    """Bytes as UTF-8 text; a byte order mark is skipped."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row, byte = data.count(b"\n", 0, error.start) + 1, f"byte 0x{data[error.start]:02x}"
        raise InputError(f"{source}, row {row}", byte, "must be UTF-8 text") from None
    if "\0" in text:
        row = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{source}, row {row}", "(a NUL character)", "must be text")
    return text


def json_records(text: str, key: str, source: str) -> list[Any]:
    """Records of a JSON text: a list, the list under `key` of an object, or one object a line."""

    def refuse(word: str) -> Any:
        raise InputError(source, word, f"must be JSON ({word} is no number)")

    decoder, at, found = json.JSONDecoder(parse_constant=refuse), 0, []
    try:
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            value, at = decoder.raw_decode(text, at)
            inner = value.get(key, [value]) if isinstance(value, dict) else value
            found += inner if isinstance(inner, list) else [inner]
    except json.JSONDecodeError as error:
        shown = text[error.pos : error.pos + 40] or "(end of the file)"
        rule = f"must be JSON ({error.msg})"
        raise InputError(f"{source}, row {error.lineno}", shown, rule) from None
    except RecursionError:
        raise InputError(source, "(nested too deep)", "must be JSON") from None
    if not found:
        raise InputError(source, "(no record)", f"must hold a list of records or {key!r}")
    return found

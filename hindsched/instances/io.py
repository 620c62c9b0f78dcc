"""Files: bytes plain or packed, JSON read and written, instances of them; their JSON Schema."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import math
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO, Any

from hindsched.errors import InputError
from hindsched.instances.base import (
    FORMAT,
    Instance,
    check_family,
    check_instance,
    families_on,
    family_module,
)
from hindsched.json_types import JsonObject
from hindsched.kernel.reading import RefusedFile, depth_of, refuse_constant, unique_keys

MOST_BYTES = 1 << 30  # that a file may unpack to, unless the caller says otherwise
MOST_JSON_BYTES = 256 << 20
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
DEEPEST = 64
"""Levels of nesting that a file may have; ours have fewer than ten, beside free provenance."""
MOST_DIGITS = 300  # digits of a whole number; doubles end at 309


def instance_class(family: str) -> type[Instance]:
    """The instance class of a family, found by its name."""
    cls: type[Instance] = family_module("instances", family, "instance").INSTANCE
    return cls


def parse_instance(data: object, where: str = "instance") -> Instance:
    """Build an instance from JSON data; `where` names it in errors."""
    if not isinstance(data, dict):
        raise InputError(where, data, "must be a JSON object")
    version, family = (data.get(key, "(absent)") for key in ("format", "family"))
    if version != FORMAT:
        raise InputError("format", version, f"must be {FORMAT}")
    check_family(family)
    return instance_class(family).parse(data)


def read(source: str | Path | Mapping[str, object]) -> Instance:
    """Read an instance from a file, or from its JSON data.

    Parameters
    ----------
    source : str, Path or dict
        A JSON file in a ``hindsched`` format, or what stands in one.

    Raises
    ------
    InputError
        If the file cannot be read, is not JSON, or breaks a rule.

    Examples
    --------
    >>> import hindsched as hs
    >>> made = hs.generate("oasis", seed=2)
    >>> hs.read(made.to_dict()) == made
    True
    """
    if isinstance(source, Mapping):
        return parse_instance(dict(source))
    if not isinstance(source, str | os.PathLike):
        raise InputError("source", source, "must be a file's path, or an instance's JSON data")
    return parse_instance(read_json(source), str(source))


def write(instance: Instance, path: str | Path) -> None:
    """Write an instance file; reading it back gives an equal instance.

    Examples
    --------
    >>> import hindsched as hs
    >>> instance = hs.generate("oasis", seed=2)
    >>> hs.write(instance, "instance.json")
    >>> hs.read("instance.json") == instance
    True
    """
    check_instance(instance)
    write_json(instance.to_dict(), path)


def read_json(path: str | Path) -> Any:
    """Parse a JSON file; what is wrong with it becomes one line.

    Plain or compressed (gzip, bzip2, xz). A byte order mark is skipped. NaN, infinities, a decimal
    that a double does not keep (0.30000000000000001), a key that stands twice in an object, a
    nesting deeper than `DEEPEST` and more than `MOST_JSON_BYTES` are refused.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError("file", path, "must be the path of a file")
    text = decoded(read_bytes(path, MOST_JSON_BYTES)[0], str(path))
    try:
        data = json.loads(
            text,
            parse_float=_kept_float,
            parse_int=_kept_int,
            parse_constant=refuse_constant,
            object_pairs_hook=unique_keys,
        )
    except RecursionError:
        raise InputError(str(path), "(nested too deep)", "must be JSON") from None
    except (ValueError, RefusedFile) as error:
        raise InputError(str(path), str(error), "must be JSON") from None
    if "\\ud" in text.lower():  # halves of characters, which no file can be written with
        try:
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InputError(str(path), "a lone surrogate", "must be Unicode text") from None
    if isinstance(data, dict | list) and depth_of(data) > DEEPEST:
        raise InputError(str(path), "(nested too deep)", f"must not nest beyond {DEEPEST} levels")
    return data


def read_bytes(path: str | Path, most_bytes: int = MOST_BYTES) -> tuple[bytes, str]:
    """A file's or pipe's bytes, unpacked, and the SHA-256 of what is stored.

    `InputError` if it is absent, no file, damaged, of a foreign format, or larger than
    `most_bytes`.
    """
    source, file = str(path), Path(path)
    try:
        if not (file.is_file() or file.is_fifo()):
            kind = "a folder" if file.is_dir() else "a device" if file.exists() else "(absent)"
            raise InputError(source, kind, "must be a readable file")
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

    decoder, at, records = json.JSONDecoder(parse_constant=refuse), 0, []
    try:
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            value, at = decoder.raw_decode(text, at)
            inner = value.get(key, [value]) if isinstance(value, dict) else value
            records += inner if isinstance(inner, list) else [inner]
    except json.JSONDecodeError as error:
        shown = text[error.pos : error.pos + 40] or "(end of the file)"
        rule = f"must be JSON ({error.msg})"
        raise InputError(f"{source}, row {error.lineno}", shown, rule) from None
    except RecursionError:
        raise InputError(source, "(nested too deep)", "must be JSON") from None
    if not records:
        raise InputError(source, "(no record)", f"must hold a list of records or {key!r}")
    return records


def write_json(data: object, path: str | Path, *, indent: int | None = 1) -> None:
    """Write JSON in one step; without an indent all stands in a line, which is twice as fast."""
    write_text(json.dumps(data, indent=indent, ensure_ascii=False) + "\n", path)


def write_text(text: str, path: str | Path) -> None:
    """Write a text file, see `write_bytes`."""
    write_bytes(text.encode("utf-8"), path)


def write_bytes(data: bytes, path: str | Path) -> None:
    """Write a file in one step (temporary file, then rename), so that no half file is left.

    A symbolic link is followed and stays; an existing file keeps its mode; what is no regular file
    (a device, a pipe, ``/dev/stdout``) is written to and never replaced.
    """
    try:
        if not is_replaceable(path):
            with open(path, "wb") as stream:
                stream.write(data)
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with open(temporary, "xb") as stream:
                stream.write(data)
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except InputError:
        raise
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(str(path), reason, "must be writable") from None


def is_replaceable(path: str | Path) -> bool:
    """Whether a path leads to a regular file, or to nothing yet, and to no open stream."""
    name = os.path.abspath(path)
    return not name.startswith(("/dev/", "/proc/")) and (
        os.path.isfile(name) or not os.path.exists(name)
    )


def schema(family: str) -> JsonObject:
    """JSON Schema (draft 2020-12) of a family's instance files.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.schema("oasis")["title"]
    'hindsched instance: oasis'
    """
    body = instance_class(family).model_json_schema(mode="validation")
    for part in (body, *body.get("$defs", {}).values()):  # fields have descriptions of their own
        part["description"] = part.get("description", "").split("\n\nParameters\n")[0]
    body["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    body["title"] = f"hindsched instance: {family}"
    body["required"] = sorted({*body.get("required", []), "format", "family"})
    return body


def families() -> tuple[str, ...]:
    """The families' names.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.families()
    ('oasis', 'batchsched', 'astraea', 'edgecloud', 'mlbroker', 'gang')
    """
    return families_on("instances", "instance")


def _kept_float(text: str) -> float:
    """The double that a file means by a decimal; another decimal than its own is refused."""
    value = float(text)
    try:
        is_same = repr(value) == text or Decimal(text) == Decimal(repr(value))
    except InvalidOperation:  # an exponent beyond counting
        is_same = False
    if math.isinf(value) or not is_same:
        raise ValueError(f"{text[:40]} has more digits than a double keeps, which is {value!r}")
    return value


def _kept_int(text: str) -> int:
    """A whole number that a double can at least be near to."""
    if len(text) > MOST_DIGITS:
        raise ValueError(f"{text[:40]}... has more than {MOST_DIGITS} digits")
    return int(text)

"""Reading a file's bytes within limits: plain or compressed, from a file or a pipe, as a stream.

Nothing here trusts a name or a length: compression is told by the first bytes, a device is refused,
a pipe that nobody writes to is given up, and what grows beyond `Limits` stops in one line.
"""

from __future__ import annotations

import bz2
import errno
import hashlib
import io
import lzma
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hindsched.errors import InputError
from hindsched.memory import free_memory

BLOCK = 1 << 20
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
FOREIGN = {
    b"\x28\xb5\x2f\xfd": "zstd: unpack it first",
    b"PK\x03\x04": "a ZIP archive (or a spreadsheet): unpack it or export it as CSV",
    b"\xff\xfe": "UTF-16: export it as UTF-8",
    b"\xfe\xff": "UTF-16: export it as UTF-8",
    b"%PDF": "a PDF",
    b"PAR1": "a Parquet file: read it with pandas and pass the frame",
    b"SQLite format 3": "an SQLite database: export the table as CSV",
}
WAIT_FOR_WRITER_SECONDS = 3.0
STALLED_SECONDS = 600.0
EXPANSION_FROM_BYTES = 1 << 20
"""Expansion is judged once so much has come out of a compressed file."""


@dataclass(frozen=True)
class Limits:
    """How large a file may be.

    Parameters
    ----------
    most_bytes : int
        Bytes after decompression.
    most_rows : int, optional
        Rows; None for as many as fit into the memory at hand.
    longest_line : int
        Bytes of a line, or of one record of a JSON file.
    most_expansion : int
        Bytes after decompression per compressed byte.
    """

    most_bytes: int = 8 << 30
    most_rows: int | None = None
    longest_line: int = 4 << 20
    most_expansion: int = 200

    def __post_init__(self) -> None:
        for name in ("most_bytes", "most_rows", "longest_line", "most_expansion"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise InputError(name, value, "must be a whole number above 0")

    def with_rows(self, bytes_a_row: int) -> Limits:
        """The same limits with the number of rows that fit into the memory at hand."""
        if self.most_rows is not None:
            return self
        return replace(self, most_rows=max(100_000, free_memory() // (2 * bytes_a_row)))


@dataclass
class Source:
    """A file's bytes, read once.

    Parameters
    ----------
    path : Path
        File or pipe.
    limits : Limits
        What it may hold.
    """

    path: Path
    limits: Limits
    _digest: Any = field(default_factory=hashlib.sha256, repr=False)
    _was_read: bool = field(default=False, repr=False)

    @property
    def name(self) -> str:
        """What to call it in errors."""
        return str(self.path)

    @property
    def sha256(self) -> str:
        """Hash of the bytes read so far, as they are stored; empty if nothing was read."""
        return str(self._digest.hexdigest()) if self._was_read else ""

    def lines(self) -> Iterator[str]:
        """Lines of text without their ends; line n of the file is the n-th.

        Raises
        ------
        InputError
            If it cannot be read, is not UTF-8 text, or exceeds a limit.
        """
        longest, done, rest = self.limits.longest_line, 0, b""
        for block in self.blocks():
            whole, newline, tail = block.rpartition(b"\n")
            if not newline:
                rest += tail
                self._check_line(len(rest), longest, done + 1)
                continue
            texts = self._decode(rest + whole, done, longest)
            yield from texts
            done, rest = done + len(texts), tail
        if rest:
            yield from self._decode(rest, done, longest)

    def text(self) -> str:
        """All of it as text; a byte order mark is skipped."""
        data = b"".join(self.blocks())
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(self.name, str(error), "must be UTF-8 text") from None

    def stream(self) -> io.BufferedReader:
        """The decompressed bytes as a file that is read from front to back."""
        return io.BufferedReader(_Blocks(self.blocks()), BLOCK)

    def blocks(self) -> Iterator[bytes]:
        """Decompressed bytes, in blocks."""
        raw = self._raw_blocks()
        first = next(raw, b"")
        if not first:
            raise InputError(self.name, "(empty)", "must hold something")
        for magic, advice in FOREIGN.items():
            if first.startswith(magic):
                raise InputError(self.name, advice, "must be text, plain, gzip, bzip2 or xz")
        kind = next((kind for magic, kind in MAGIC.items() if first.startswith(magic)), "plain")
        taken = given = 0
        for block in self._unpack(_chain(first, raw), kind):
            taken, data = block
            given += len(data)
            if given > self.limits.most_bytes:
                rule = f"must unpack to at most {self.limits.most_bytes} bytes (most_bytes)"
                raise InputError(self.name, f"more than {given - len(data)} bytes", rule)
            too_dense = given > self.limits.most_expansion * max(taken, 1)
            if kind != "plain" and given > EXPANSION_FROM_BYTES and too_dense:
                rule = f"must unpack to at most {self.limits.most_expansion} times its size"
                raise InputError(self.name, f"{given} from {taken} bytes", rule)
            if data:
                yield data

    def _unpack(self, raw: Iterator[bytes], kind: str) -> Iterator[tuple[int, bytes]]:
        """(Compressed bytes so far, block of decompressed ones)."""
        taken = 0
        if kind == "plain":
            for block in raw:
                taken += len(block)
                yield taken, block
            return
        makers: dict[str, Callable[[], Any]] = {
            "gzip": lambda: _Inflater(),
            "bzip2": bz2.BZ2Decompressor,
            "xz": lzma.LZMADecompressor,
        }
        unpacker = makers[kind]()
        try:
            for block in raw:
                taken += len(block)
                data = block
                while True:
                    if unpacker.eof:  # another member follows, or zeros that pad the last one
                        data = data.lstrip(b"\0")
                        if not data:
                            break
                        unpacker = makers[kind]()
                    yield taken, unpacker.decompress(data, BLOCK)
                    data = unpacker.unused_data if unpacker.eof else b""
                    if not unpacker.eof and unpacker.needs_input:
                        break
            if not unpacker.eof:
                raise InputError(self.name, f"{kind}, cut off", "must be a whole file")
        except (zlib.error, lzma.LZMAError, OSError, EOFError) as error:
            raise InputError(self.name, f"damaged {kind} ({error})", "must unpack") from None

    def _raw_blocks(self) -> Iterator[bytes]:
        descriptor, is_pipe = self._open()
        try:
            block = self._first_of_pipe(descriptor) if is_pipe else os.read(descriptor, BLOCK)
            while block:
                self._digest.update(block)
                self._was_read = True
                yield block
                block = os.read(descriptor, BLOCK)
        except OSError as error:
            raise InputError(self.name, error.strerror or str(error), "must be readable") from None
        finally:
            os.close(descriptor)

    def _open(self) -> tuple[int, bool]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
            absent = getattr(error, "errno", None) == errno.ENOENT
            reason = "(absent)" if absent else getattr(error, "strerror", None) or str(error)
            raise InputError(self.name, reason, "must be a readable file") from None
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
            return descriptor, stat.S_ISFIFO(mode)
        os.close(descriptor)
        kind = "a folder" if stat.S_ISDIR(mode) else "a device or socket"
        raise InputError(self.name, kind, "must be a file or a pipe")

    def _first_of_pipe(self, descriptor: int) -> bytes:
        """Wait for a pipe's first bytes; give up on one that nobody writes to."""
        begun = time.monotonic()
        while True:
            try:
                block = os.read(descriptor, BLOCK)
            except BlockingIOError:  # somebody has it open for writing
                if time.monotonic() - begun > STALLED_SECONDS:
                    rule = f"must give data within {STALLED_SECONDS:g} s"
                    raise InputError(self.name, "a silent pipe", rule) from None
            else:
                if block:
                    os.set_blocking(descriptor, True)
                    return block
                if time.monotonic() - begun > WAIT_FOR_WRITER_SECONDS:
                    raise InputError(self.name, "a pipe that nobody writes to", "must give data")
            time.sleep(0.02)

    def _decode(self, data: bytes, done: int, longest: int) -> list[str]:
        """Lines of a block that ends where a line ends; `done` lines came before it."""
        try:
            text = data.decode("utf-8-sig" if done == 0 else "utf-8")
        except UnicodeDecodeError as error:
            row = done + data.count(b"\n", 0, error.start) + 1
            byte = f"byte 0x{data[error.start]:02x}"
            raise InputError(f"{self.name}, row {row}", byte, "must be UTF-8 text") from None
        if "\0" in text:
            row = done + text.count("\n", 0, text.index("\0")) + 1
            raise InputError(f"{self.name}, row {row}", "(a NUL character)", "must be text")
        texts = text.split("\n")
        if "\r" in text:
            texts = [line.removesuffix("\r") for line in texts]
        size = max(map(len, texts))
        if size > longest:
            row = done + next(i for i, line in enumerate(texts, 1) if len(line) == size)
            self._check_line(size, longest, row)
        return texts

    def _check_line(self, size: int, longest: int, row: int) -> None:
        if size > longest:
            rule = f"must have lines of at most {longest} bytes (longest_line)"
            raise InputError(f"{self.name}, row {row}", f"{size} bytes or more", rule)


class _Inflater:
    """zlib's stream with the interface of the other decompressors."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        """Whether the member has ended."""
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        """Whether nothing waits to come out."""
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        """What follows the member."""
        return self._stream.unused_data

    def decompress(self, data: bytes, most: int) -> bytes:
        """At most so many bytes of output."""
        return self._stream.decompress(self._stream.unconsumed_tail + data, most)


class _Blocks(io.RawIOBase):
    """Blocks as a raw stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the present block goes."""
        self._rest = self._rest or next(self._blocks, b"")
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


class Bounded(io.RawIOBase):
    """Another stream, a member of an archive say, that stops in one line at a number of bytes.

    Parameters
    ----------
    stream : file
        What to read.
    name : str
        What to call it in errors.
    most_bytes : int
        How many bytes it may give.
    """

    def __init__(self, stream: Any, name: str, most_bytes: int) -> None:
        self._stream, self._name, self._most, self._given = stream, name, most_bytes, 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; `InputError` beyond the limit."""
        data = self._stream.read(len(buffer))
        self._given += len(data)
        if self._given > self._most:
            rule = f"must unpack to at most {self._most} bytes"
            raise InputError(self._name, f"more than {self._most} bytes", rule)
        buffer[: len(data)] = data
        return len(data)


def _chain(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from others

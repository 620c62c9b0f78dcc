"""How many GPUs there are: one pool, or servers with their GPUs, as the log or the user says."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.files import decoded, read_bytes

SHAPE = re.compile(r"(\d{1,7})x(\d{1,7})", re.ASCII)
NAMED = re.compile(r"([^=,\s]{1,200})=(\d{1,7})", re.ASCII)
MOST_SERVERS = 1_000_000


@dataclass(frozen=True)
class Capacity:
    """GPUs of a cluster.

    Parameters
    ----------
    gpus : int
        In all.
    servers : tuple of (str, int)
        Name and GPUs of each server; empty for one pool.
    said_by : str
        Where it is from: a header, a file, the user.
    """

    gpus: int
    servers: tuple[tuple[str, int], ...] = ()
    said_by: str = ""

    def of_server(self, name: str) -> int | None:
        """GPUs of a server; of any server if all are alike and go by other names; else None."""
        shapes = {gpus for _, gpus in self.servers}
        known = dict(self.servers)
        if name in known:
            return known[name]
        anonymous = all(server.startswith(UNNAMED) for server in known)
        return shapes.pop() if anonymous and len(shapes) == 1 else None


UNNAMED = "server-"
"""Names of servers that were given by their number only."""


def pool(gpus: object, said_by: str) -> Capacity:
    """One pool of GPUs."""
    if type(gpus) is not int or not 1 <= gpus <= 10_000_000:
        raise InputError("gpus", gpus, "must be a whole number from 1 to 10,000,000")
    return Capacity(gpus, (), said_by)


def parse_servers(text: str | Sequence[tuple[str, int]], said_by: str) -> Capacity:
    """Servers from ``16x8`` (sixteen of 8 GPUs), ``4x8,2x4``, ``a=8,b=4``, pairs or a CSV file.

    Raises
    ------
    InputError
        If it is none of these, or a name stands twice.
    """
    if not isinstance(text, str):
        return _checked([(str(name), gpus) for name, gpus in text], said_by)
    servers: list[tuple[str, int]] = []
    for part in text.split(","):
        shape, named = SHAPE.fullmatch(part.strip()), NAMED.fullmatch(part.strip())
        if shape is not None:
            count, gpus = int(shape[1]), int(shape[2])
            if len(servers) + count > MOST_SERVERS:
                raise InputError("servers", text, f"must be at most {MOST_SERVERS} servers")
            begin = len(servers)
            servers.extend((f"{UNNAMED}{begin + k}", gpus) for k in range(count))
        elif named is not None:
            servers.append((named[1], int(named[2])))
        elif Path(text).is_file():
            return _from_file(Path(text))
        else:
            rule = "must be like 16x8, 4x8,2x4 or a=8,b=4, or a CSV file of server,gpus"
            raise InputError("servers", text, rule)
    return _checked(servers, said_by)


def _from_file(path: Path) -> Capacity:
    text = decoded(read_bytes(path)[0], str(path))
    servers: list[tuple[str, int]] = []
    for row, cells in enumerate(csv.reader(text.splitlines()), start=1):
        if not cells or (row == 1 and not cells[-1].strip().isdecimal()):
            continue
        if len(cells) != 2 or not (cells[1].strip().isascii() and cells[1].strip().isdecimal()):
            raise InputError(f"{path}, row {row}", ",".join(cells), "must be server,gpus")
        servers.append((cells[0].strip(), int(cells[1])))
    return _checked(servers, str(path))


def said_capacity(gpus: int | None, servers: Any) -> Capacity | None:
    """The capacity that the user says, or None."""
    if gpus is not None and servers is not None:
        raise InputError("gpus", gpus, "either gpus or servers can be given, not both")
    if servers is not None:
        return parse_servers(servers, "the user")
    return None if gpus is None else pool(gpus, "the user")


def _checked(servers: list[tuple[str, int]], said_by: str) -> Capacity:
    if not servers:
        raise InputError("servers", "(none)", "must be at least one")
    seen: set[str] = set()
    for name, gpus in servers:
        if name in seen or not name:
            raise InputError("servers", name, "names of servers must be unique and not empty")
        if type(gpus) is not int or not 1 <= gpus <= 1_000_000:
            raise InputError(f"servers, {name}", gpus, "must have 1 to 1,000,000 GPUs")
        seen.add(name)
    return Capacity(sum(gpus for _, gpus in servers), tuple(servers), said_by)

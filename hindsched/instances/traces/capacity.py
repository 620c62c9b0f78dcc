"""How many GPUs there are: one pool, or servers with their GPUs, as the log or the user says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.files import decoded, read_bytes

PART = re.compile(r"(\d{1,7})x(\d{1,7})|([^=,\s]{1,200})=(\d{1,7})", re.ASCII)
MOST_GPUS = 10_000_000
MOST_SERVERS = 1_000_000
UNNAMED = "server-"
"""Names of servers that were given by their number only."""


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
        known = dict(self.servers)
        if name in known:
            return known[name]
        shapes = set(known.values())
        anonymous = all(server.startswith(UNNAMED) for server in known)
        return shapes.pop() if anonymous and len(shapes) == 1 else None


def said_capacity(gpus: int | None, servers: Any) -> Capacity | None:
    """The capacity that the user says: GPUs of one pool, or servers; None for neither.

    Servers are ``16x8`` (sixteen of 8 GPUs), ``4x8,2x4``, ``a=8,b=4``, pairs, or the path of a CSV
    file of ``server,gpus``.
    """
    if gpus is not None and servers is not None:
        raise InputError("gpus", gpus, "either gpus or servers can be given, not both")
    if servers is None:
        if gpus is not None and (type(gpus) is not int or not 1 <= gpus <= MOST_GPUS):
            raise InputError("gpus", gpus, f"must be a whole number from 1 to {MOST_GPUS:,}")
        return None if gpus is None else Capacity(gpus, (), "the user")
    listed, said_by = [], "the user"
    if not isinstance(servers, str):
        listed = [(str(name), count) for name, count in servers]
    elif all(parts := [PART.fullmatch(part.strip()) for part in servers.split(",")]):
        if sum(int(part[1] or 1) for part in parts if part) > MOST_SERVERS:
            raise InputError("servers", servers, f"must be at most {MOST_SERVERS} servers")
        for part in filter(None, parts):
            first, more = len(listed), int(part[1] or 1)
            names = [part[3]] if part[3] else [f"{UNNAMED}{first + k}" for k in range(more)]
            listed += [(name, int(part[4] or part[2])) for name in names]
    elif Path(servers).is_file():
        listed, said_by = _from_file(servers), servers
    else:
        rule = "must be like 16x8, 4x8,2x4 or a=8,b=4, or a CSV file of server,gpus"
        raise InputError("servers", servers, rule)
    if not listed:
        raise InputError("servers", "(none)", "must be at least one")
    seen: set[str] = set()
    for name, count in listed:
        if name in seen or not name:
            raise InputError("servers", name, "names of servers must be unique and not empty")
        if type(count) is not int or not 1 <= count <= MOST_SERVERS:
            raise InputError(f"servers, {name}", count, f"must have 1 to {MOST_SERVERS:,} GPUs")
        seen.add(name)
    return Capacity(sum(count for _, count in listed), tuple(listed), said_by)


def _from_file(path: str) -> list[tuple[str, int]]:
    servers = []
    for row, line in enumerate(decoded(read_bytes(path)[0], path).splitlines(), start=1):
        name, _, count = (cell.strip() for cell in line.rpartition(","))
        if count.isascii() and count.isdecimal() and name:
            servers.append((name, int(count)))
        elif line.strip() and row > 1:  # the first may be a header
            raise InputError(f"{path}, row {row}", line, "must be server,gpus")
    return servers

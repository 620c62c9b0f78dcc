"""How many GPUs there are: one pool, or servers with their GPUs, as the log or the user says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.io import decoded, read_bytes

MOST_GPUS = 10_000_000
MOST_SERVERS = 1_000_000
UNNAMED = "server-"  # names of servers that were given by their number only
SERVERS = r"(?a:(\d{1,7})x(\d{1,7})|([^=]{1,200})=(\d{1,7}))"


@dataclass(frozen=True)
class Capacity:
    """GPUs of a cluster, of servers by name (none: one pool), and who said so."""

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
    pairs, said_by = servers, "the user"
    if isinstance(servers, str) and os.path.isfile(servers):
        said_by, text = servers, decoded(read_bytes(servers)[0], servers)
        rows = [re.sub(r"\s*,\s*(?=\w*\s*$)", "=", line.strip()) for line in text.split("\n")]
        is_header = re.search(r"=\d+$", rows[0]) is None
        pairs = _listed(servers, filter(None, rows[is_header:]), "must have rows of server,gpus")
    elif isinstance(servers, str):
        rule = "must be like 16x8, 4x8,2x4 or a=8,b=4, or a CSV file of server,gpus"
        pairs = _listed("servers", re.split(r"\s*,\s*", servers.strip()), rule)
    pairs = tuple((str(name), count) for name, count in pairs)
    if not 1 <= len(pairs) <= MOST_SERVERS:
        raise InputError("servers", len(pairs), f"must be 1 to {MOST_SERVERS:,} servers")
    if len(dict(pairs)) < len(pairs) or "" in dict(pairs):
        raise InputError("servers", servers, "names of servers must be unique and not empty")
    for name, count in pairs:
        if type(count) is not int or not 1 <= count <= MOST_SERVERS:
            raise InputError(f"servers, {name}", count, f"must have 1 to {MOST_SERVERS:,} GPUs")
    return Capacity(sum(count for _, count in pairs), pairs, said_by)


def _listed(where: str, parts: Iterable[str], rule: str) -> list[tuple[str, int]]:
    """Servers of texts like ``4x8`` and ``a=8``."""
    servers: list[tuple[str, int]] = []
    for part in parts:
        match = re.fullmatch(SERVERS, part)
        if match is None:
            raise InputError(where, part, rule)
        if match[3]:
            servers.append((match[3], int(match[4])))
        else:
            count = min(int(match[1]), MOST_SERVERS + 1)
            servers += [(f"{UNNAMED}{len(servers) + k}", int(match[2])) for k in range(count)]
    return servers

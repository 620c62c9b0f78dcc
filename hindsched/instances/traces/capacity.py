"""How many GPUs there are: one pool, or servers with their GPUs, as the log or the user says."""

from __future__ import annotations

import csv
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
SERVERS = r"(?a:(?:(\d{1,7})x(\d{1,7})|([^=]{1,200})=(\d{1,7}))(?:@([^@=,]{1,200}))?)"
NAMED = {
    "server": ("server", "sn", "name", "node", "host"),
    "gpus": ("gpus", "gpu", "num_gpus", "num_gpu"),
    "gpu_kind": ("gpu_kind", "model", "gpu_type", "kind"),
}
"""How the columns of a table of servers with kinds of GPUs may be called."""


@dataclass(frozen=True)
class Capacity:
    """GPUs of a cluster, of servers by name (none: one pool), and who said so.

    `kinds` are those of the servers' GPUs, one a server, if anybody has said them.
    """

    gpus: int
    servers: tuple[tuple[str, int], ...] = ()
    said_by: str = ""
    kinds: tuple[str, ...] = ()

    def by_kind(self) -> dict[str, int]:
        """GPUs of each kind; none where nobody has said the kinds."""
        rooms: dict[str, int] = {}
        for (_, gpus), kind in zip(self.servers, self.kinds, strict=False):
            rooms[kind] = rooms.get(kind, 0) + gpus
        return rooms

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

    Servers are ``16x8`` (sixteen of 8 GPUs), ``4x8,2x4``, ``a=8,b=4``, each with its kind of GPU if
    it has one (``16x8@V100``), pairs or triples, or the path of a CSV file of ``server,gpus`` or
    with columns as in `NAMED`, of which those without GPUs are left out.
    """
    if gpus is not None and servers is not None:
        raise InputError("gpus", gpus, "either gpus or servers can be given, not both")
    if servers is None:
        if gpus is not None and (type(gpus) is not int or not 1 <= gpus <= MOST_GPUS):
            raise InputError("gpus", repr(gpus), f"must be a whole number from 1 to {MOST_GPUS:,}")
        return None if gpus is None else Capacity(gpus, (), "the user")
    pairs, said_by = servers, "the user"
    if isinstance(servers, str) and os.path.isfile(servers):
        said_by, text = servers, decoded(read_bytes(servers)[0], servers)
        lines = [re.sub(r"\s*,\s*(?=\w*\s*$)", "=", line.strip()) for line in text.split("\n")]
        is_header = re.search(r"=\d+$", lines[0]) is None
        pairs = _mapping_pairs(servers, text) or _listed(
            servers, filter(None, lines[is_header:]), "must have rows of server,gpus"
        )
    elif isinstance(servers, str):
        rule = "must be like 16x8, 4x8,2x4@V100 or a=8,b=4, or a CSV file of server,gpus"
        pairs = _listed("servers", re.split(r"\s*,\s*", servers.strip()), rule)
    kinds = tuple(str(rest[0]) if rest else "" for _, _, *rest in pairs)
    pairs = tuple((str(name), count) for name, count, *_ in pairs)
    if not 1 <= len(pairs) <= MOST_SERVERS:
        raise InputError("servers", len(pairs), f"must be 1 to {MOST_SERVERS:,} servers")
    if len(dict(pairs)) < len(pairs) or "" in dict(pairs):
        raise InputError("servers", servers, "names of servers must be unique and not empty")
    for name, count in pairs:
        if type(count) is not int or not 1 <= count <= MOST_SERVERS:
            raise InputError(f"servers, {name}", count, f"must have 1 to {MOST_SERVERS:,} GPUs")
    return Capacity(sum(count for _, count in pairs), pairs, said_by, kinds if any(kinds) else ())


def _mapping_pairs(where: str, text: str) -> list[tuple[str, int, str]]:
    """Servers of a table whose header names all three of `NAMED`; none of any other file."""
    header, *rows = [*csv.reader(text.splitlines())] or [[]]
    names = [name.strip() for name in header]
    at = [next((names.index(word) for word in words if word in names), -1)
          for words in NAMED.values()]  # fmt: skip
    servers = []
    for number, row in enumerate(rows if min(at) >= 0 else (), start=2):
        if len(row) != len(names):
            raise InputError(f"{where}, row {number}", len(row), f"must have {len(names)} cells")
        name, gpus, kind = (row[place].strip() for place in at)
        if re.fullmatch(r"(?a:\d{1,7})", gpus) is None:
            raise InputError(f"{where}, row {number}, column {names[at[1]]}", gpus,
                             "must be a whole number of GPUs")  # fmt: skip
        if int(gpus):
            servers.append((name, int(gpus), kind))
    return servers


def _listed(where: str, parts: Iterable[str], rule: str) -> list[tuple[str, int, str]]:
    """Servers of texts like ``4x8``, ``a=8`` and ``a=8@V100``."""
    servers: list[tuple[str, int, str]] = []
    for part in parts:
        match = re.fullmatch(SERVERS, part)
        if match is None:
            raise InputError(where, part, rule)
        if match[3]:
            servers.append((match[3], int(match[4]), match[5] or ""))
        else:
            count = min(int(match[1]), MOST_SERVERS + 1)
            size, kind, first = int(match[2]), match[5] or "", len(servers)
            servers += [(f"{UNNAMED}{first + k}", size, kind) for k in range(count)]
    return servers

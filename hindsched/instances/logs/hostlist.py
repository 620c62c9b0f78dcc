"""Slurm's lists of hosts, such as ``gpu[01-04,07],login1``."""

from __future__ import annotations

import re

HOST = re.compile(r"([^\[\],\s]+)(?:\[(\d+)\])?")


def only_host(text: str) -> str:
    """The host if the list names exactly one, else nothing: a share of each is not known."""
    match = HOST.fullmatch(text)
    if match is None or text in ("None", "(null)"):
        return ""
    return match[1] + (match[2] or "")

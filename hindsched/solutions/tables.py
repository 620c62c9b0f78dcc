"""Rows of the tables that a solution gives of its jobs and of what they use."""

from __future__ import annotations

from typing import TypedDict


class JobRow(TypedDict):
    """What every family says of a job; numbers that it does not have are None."""

    job: str
    arrival: int
    start: int | None
    completion: int | None
    value: float | None


class UsageRow(TypedDict):
    """Use of a resource of a server in a slot; the capacity is None where it is not bounded."""

    slot: int
    server: str
    resource: str
    used: float
    capacity: float | None

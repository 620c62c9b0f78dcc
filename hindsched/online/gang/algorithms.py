"""Online algorithms of gang: its schedulers are replayed whole (`replay`), none is stepped yet."""

from __future__ import annotations

from typing import Any

from hindsched.instances.base import Instance
from hindsched.online.registry import Factory

ALGORITHMS: dict[str, Factory] = {}


def declared_estimates(instance: Instance) -> dict[str, Any]:
    """Nothing is told in advance."""
    return {}

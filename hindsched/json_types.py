"""What JSON data is: what the files, the protocol and ``--json`` hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value of JSON. A reader finds out by `isinstance` which of them it is."""
JsonObject: TypeAlias = dict[str, Json]
"""An object of JSON, as it is built or was read."""
Settings: TypeAlias = Mapping[str, object]
"""Keywords by name that somebody else chose: whoever takes them checks them."""

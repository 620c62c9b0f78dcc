"""What data of JSON files, of the protocol and of ``--json`` is, before and after it is that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, object]
"""An object of JSON. Whoever reads a field of it finds out by `isinstance` what it is; where the
keys are known, a ``TypedDict`` names them."""
Keywords: TypeAlias = Mapping[str, object]
"""Values by name that a user chose; whoever takes them checks them."""
Draft: TypeAlias = dict[str, Any]
"""An instance, or a part of one, that is put together or changed before `Instance.parse` checks it:
what its fields are, only the family's own module knows, which reads what it wrote."""

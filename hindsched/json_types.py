"""What data of JSON files, of the protocol and of ``--json`` is, before and after it is that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, object]  # an object of JSON; `isinstance` says what a field is
Keywords: TypeAlias = Mapping[str, object]  # values that a user chose; who takes them checks them
Draft: TypeAlias = dict[str, Any]  # an instance, or a part of one, before `Instance.parse`

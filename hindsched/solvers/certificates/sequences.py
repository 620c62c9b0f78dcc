"""Certificates of kind ``sequences``: an enumeration that the exact kernel makes again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hindsched import kernel
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.decimals import exactly
from hindsched.json_types import JsonObject
from hindsched.solvers.base import build_oracle
from hindsched.solvers.certificates import certificate as base


@dataclass(frozen=True)
class SequencesCertificate(base.Certificate):
    """A bound proven by enumeration; ``prices`` are those of its first layer."""

    stages: Sequence[JsonObject] = field(repr=False)  # prices by how many jobs are begun

    def prices_data(self) -> object:
        """The stages: the file's ``prices``."""
        return list(self.stages)

    def as_prices(self, instance: Instance) -> tuple[base.Certificate, str]:
        """What the first prices prove alone, and a line that says so."""
        oracle = build_oracle(instance, self.formulation, rows=self.layout).on_rows(self.rows)
        alone = base.certify(oracle, self.prices)
        note = (
            f"the certificate is an enumeration that proves {self.bound:.10g}; explained is"
            f" {alone.bound:.10g}, which its first prices prove alone"
        )
        return alone, note


def certify_sequences(
    instance: Instance, formulation: str, bound: Fraction, stages: Sequence[JsonObject]
) -> SequencesCertificate:
    """The certificate of a bound that was enumerated: the largest double that is not above it."""
    stated = float(bound)
    if exactly(stated) > bound:
        stated = math.nextafter(stated, -math.inf)
    first = {key: rows for key, rows in stages[0].items() if key != "started"}
    oracle = build_oracle(instance, formulation).on_rows_of_file(first)
    prices = oracle.rows.from_file(first)
    return SequencesCertificate(
        instance.family, instance.name, instance.sha256(), formulation, oracle.layout, "sequences",
        oracle.sense, stated, prices, oracle.rows, stages=stages,
    )  # fmt: skip


def verify_sequences(instance: Instance, data: Any) -> SequencesCertificate:
    """Enumerate again what a file states; `InputError` if that is not proven."""
    if not isinstance(data["prices"], list) or not data["prices"]:
        raise InputError("prices", data["prices"], "must be the list of an enumeration's prices")
    try:
        steps = {"steps": kernel.LIMITS["steps"]}
        proven = kernel.bound(instance.to_dict(), data, limits=steps)
    except kernel.RefusedFile as refused:
        raise InputError("prices", data["instance"], str(refused)) from None
    return certify_sequences(instance, data["formulation"], proven.low, data["prices"])

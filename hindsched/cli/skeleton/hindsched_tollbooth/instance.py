"""Cars pass booths that are all alike; a car that is through by the horizon pays its toll."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from hindsched.instances.base import Instance, Name, Positive, PositiveCount, Record, Slot


class Car(Record):
    """A car, and how many slots it holds a booth."""

    name: Name
    arrival: Slot
    length: PositiveCount
    toll: Positive


class TollboothInstance(Instance):
    """Booths and cars."""

    sense: ClassVar[Literal["max", "min"]] = "max"
    formulations: ClassVar[tuple[str, ...]] = ("standard",)

    booths: PositiveCount
    jobs: tuple[Car, ...] = ()

    def starts(self, job: Car) -> range:
        """Slots in which a car may drive up."""
        return range(job.arrival, self.horizon - job.length + 2)

    def row(self, job: Car, first: int) -> dict[str, Any]:
        """What a solution file says of a car that drives up in a slot."""
        return {"from": first, "to": first + job.length - 1, "workers": {"booth": 1}}


INSTANCE = TollboothInstance

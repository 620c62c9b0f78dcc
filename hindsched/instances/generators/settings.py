"""A generator's settings: a preset's with some replaced, and the envelope of what is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import PrivateAttr, ValidationError

from hindsched.errors import InputError
from hindsched.instances.base import Record, input_error
from hindsched.instances.generators.registry import check_settings
from hindsched.instances.generators.sampling import Draws


class Settings(Record):
    """Settings of a generator, each of which its type checks; a family derives its own."""

    _changed: dict[str, Any] = PrivateAttr(default_factory=dict)

    @classmethod
    def of(
        cls,
        family: str,
        presets: Mapping[str, Mapping[str, Any]],
        preset: str,
        settings: Mapping[str, object],
    ) -> Self:
        """A preset's settings, some of them replaced.

        Raises
        ------
        InputError
            For an unknown preset or setting, or the first value that breaks a rule, as
            ``set.jobs: 0: ...``.
        """
        if preset not in presets:
            raise InputError("preset", preset, f"must be one of {', '.join(presets)}")
        usual = presets[preset]
        values = {**usual, **check_settings(settings, set(usual), f"preset {preset} of {family}")}
        try:
            found = cls.model_validate(values)
        except ValidationError as error:
            wrong = input_error(error)
            name = wrong.where.split("[")[0].split(".")[0]
            raise InputError(f"set.{name}", values.get(name, wrong.value), wrong.rule) from None
        found._changed = {key: value for key, value in values.items() if value != usual[key]}
        return found

    def changed(self) -> dict[str, Any]:
        """What differs from the preset, as JSON has it."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in self._changed.items()
        }


def draw_integer(draws: Draws, span: tuple[float, float]) -> int:
    """Draw an integer from a range whose ends are cut to integers."""
    low, high = span
    return draws.integer(int(low), int(high))


def envelope(
    family: str,
    preset: str,
    seed: int,
    horizon: int,
    settings: Settings,
    size: str,
    slot_seconds: float,
    origin: Mapping[str, object],
) -> dict[str, Any]:
    """The fields of an instance file that all families share, with their provenance.

    Parameters
    ----------
    family : str
        The family's word.
    preset, seed, settings
        What was drawn from; of the settings, what differs from the preset is written down.
    horizon : int
        Number of slots.
    size : str
        What tells how large it is, for the name.
    slot_seconds : float
        Length of a slot.
    origin : mapping
        The trace, if there was one.
    """
    kind = "-trace" if origin else ""
    return {
        "format": "hindsched/1",
        "family": family,
        "name": f"{family}-{preset}{kind}-{size}-s{seed}",
        "horizon": horizon,
        "slot_seconds": slot_seconds,
        "provenance": {
            "generator": family,
            "preset": preset,
            "seed": seed,
            "settings": settings.changed(),
            **origin,
        },
    }

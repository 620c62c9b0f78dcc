"""A generator's settings: a preset's with some replaced, spans to draw from, and the envelope.

A span is one number, which fixes what is drawn, or two, between which it is drawn uniformly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.generators.ranges import check_range
from hindsched.instances.generators.registry import check_settings
from hindsched.instances.generators.sampling import Draws


def merge_settings(
    family: str,
    presets: Mapping[str, Mapping[str, Any]],
    preset: str,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """A preset's settings, some of them replaced.

    Raises
    ------
    InputError
        For an unknown preset or setting.
    """
    if preset not in presets:
        raise InputError("preset", preset, f"must be one of {', '.join(presets)}")
    known = presets[preset]
    return {**known, **check_settings(settings, set(known), f"preset {preset} of {family}")}


def check_span(name: str, value: Any) -> None:
    """Refuse a setting that is neither a number of at least 0 nor two of them, low <= high."""
    try:
        check_range(name, value if isinstance(value, list | tuple) else [value, value])
    except InputError:
        rule = "must be a number or two numbers low <= high, at least 0"
        raise InputError(f"set.{name}", value, rule) from None


def check_number(name: str, value: Any) -> None:
    """Refuse a setting that is not one number of at least 0."""
    try:
        check_range(name, [value, value])
    except InputError:
        raise InputError(f"set.{name}", value, "must be a number of at least 0") from None


def draw_uniform(draws: Draws, span: Any) -> float:
    """Draw a real number from a span."""
    low, high = _ends(span)
    return draws.uniform(low, high)


def draw_integer(draws: Draws, span: Any) -> int:
    """Draw an integer from a span whose ends are cut to integers."""
    low, high = _ends(span)
    return draws.integer(int(low), int(high))


def envelope(
    family: str,
    presets: Mapping[str, Mapping[str, Any]],
    preset: str,
    seed: int,
    values: Mapping[str, Any],
    size: str,
    slot_seconds: float,
    origin: Mapping[str, Any],
) -> dict[str, Any]:
    """The fields of an instance file that all families share, with their provenance.

    Parameters
    ----------
    family : str
        The family's word.
    presets, preset, seed, values
        Where the settings `values` come from; what differs from the preset is written down.
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
        "horizon": values["horizon"],
        "slot_seconds": slot_seconds,
        "provenance": {
            "generator": family,
            "preset": preset,
            "seed": seed,
            "settings": {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in values.items()
                if value != presets[preset][key]
            },
            **origin,
        },
    }


def _ends(span: Any) -> tuple[Any, Any]:
    return (span, span) if isinstance(span, int | float) else (span[0], span[1])

"""The optimum of a tiny instance and a schedule that attains it, by the second statement."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

from .enumeration import agrees


@dataclass(frozen=True)
class Settled:
    """An optimum, exactly; None if nothing is feasible. Rows of the solution file by job."""

    value: Any
    rows: dict[str, list[dict[str, Any]]]


def settle(instance: Any, formulation: str | None = None) -> Settled:
    """What the family's printed problem is worth, by default in its first formulation."""
    statement = _statement(instance, formulation)
    found = statement.program.optimum()
    assert agrees(statement.program, found) is not False  # HiGHS says that no point is better
    jobs = () if found.value is None else statement.jobs(found.point)
    return Settled(found.value, {job["name"]: job["assignments"] for job in jobs})


def optimum(instance: Any, formulation: str | None = None) -> float:
    """The optimum as a float; of a problem without any feasible point the worst number."""
    value = settle(instance, formulation).value
    return float("-inf" if instance.sense == "max" else "inf") if value is None else float(value)


def is_binding(instance: Any, value: Any, formulation: str | None = None) -> bool:
    """Whether jobs get in each other's way: together they are worth less than each alone."""
    alone = sum(optimum(instance.with_jobs((job,)), formulation) for job in instance.jobs)
    return abs(alone - float(value)) > 1e-6


def placements(instance: Any, job: Any) -> list[tuple[Fraction, tuple[float, ...]]]:
    """Slots for all work of a job, and what it takes, of its placements on the empty cluster.

    batchsched: of every server and resource; astraea: of every worker type, then PS type, and
    server.
    """
    statement = _statement(instance, None)
    found = statement.placements(statement.instance["jobs"][instance.job_index(job.name)])
    return [(way.slots, tuple(map(float, way.use))) for way in found]


def _statement(instance: Any, formulation: str | None) -> Any:
    data = json.loads(json.dumps(instance.to_dict()), parse_float=Fraction)
    module = import_module(f"tests.second_opinion.{instance.family}")
    return module.Statement(data, formulation or module.FORMULATIONS[0])

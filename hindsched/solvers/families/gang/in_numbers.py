"""What a policy's run and the best order come to, in numbers alone.

For searches that ask a hundred thousand times: no object is built and nothing is checked. Whoever
shows a schedule asks `solve` and `simulate`, which find the same.
"""

from __future__ import annotations

import math

import numpy as np

from hindsched.instances.base import Instance
from hindsched.instances.gang.instance import GangInstance, split_formulation
from hindsched.json_types import Keywords
from hindsched.solvers.families.gang.makespan import makespan_bound_slots
from hindsched.solvers.families.gang.orders import best_starts
from hindsched.solvers.families.gang.replay import POLICIES, replay

ROUNDING = 1e-12
"""Of a sum of up to a few hundred products."""


def value_of_run(
    instance: Instance, name: str, formulation: str, settings: Keywords
) -> float | None:
    """Objective of a policy that keeps to the formulation; None for whoever is not replayed.

    Parameters
    ----------
    instance : Instance
        The instance.
    name : str
        The algorithm's name.
    formulation : str
        Kind and objective.
    settings : mapping
        The algorithm's settings.
    """
    assert isinstance(instance, GangInstance)
    policy = POLICIES.get(name)
    if policy is None or (policy.preemptive and split_formulation(formulation)[0] != "preemptive"):
        return None
    return replay(instance, name, formulation, **settings).objective()


def value_of_reference(
    instance: Instance, method: str, formulation: str, most: float
) -> tuple[float, float] | None:
    """A lower bound, and the objective of a schedule; None for what has no short cut.

    Parameters
    ----------
    instance : Instance
        With at least one job.
    method : str
        Method of `solve`.
    formulation : str
        Kind and objective.
    most : float
        A bound above it is enough: no schedule is sought, and the objective is infinite.
    """
    assert isinstance(instance, GangInstance)
    kind, goal = split_formulation(formulation)
    if method != "orders" or kind != "non-preemptive" or goal == "deadlines":
        return None
    if instance.is_consolidated or instance.slot_seconds != 1:
        return None
    bound = float(makespan_bound_slots(instance, kind)) if goal == "makespan" else _flow(instance)
    if bound > most:
        return bound, math.inf
    ends = best_starts(instance, formulation)[0] + instance.durations
    if goal == "makespan":
        return bound, float(ends.max())
    return bound, float(instance.weights @ (ends - instance.submits))


def _flow(instance: GangInstance) -> float:
    """A lower bound on the weighted flow time, rounded down."""
    weight, duration, room = instance.weights, instance.durations, instance.total_gpus
    own = float(weight @ duration)
    if instance.job_gpus.max() > 1:
        return own
    if room == 1 and (weight == weight[0]).all():  # Schrage 1968
        return replay(instance, "srtf", "preemptive").objective()
    if instance.submits.any():
        return own
    order = np.argsort(duration / weight)  # Eastman, Even and Isaacs 1964
    one_machine = float(weight[order] @ np.cumsum(duration[order]))
    return (one_machine / room + own * (room - 1) / (2 * room)) * (1 - ROUNDING)

"""What a family offers on this floor: `FamilyOnline`, found by the family's word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hindsched.instances.base import Instance, family_module
from hindsched.json_types import JsonObject
from hindsched.online.baselines.cluster import BaselineCluster
from hindsched.online.cluster_state import ClusterState, CommittedRows
from hindsched.online.protocol import Environment, MeasureAtSpeed, OnlineAlgorithm, Theorem
from hindsched.solvers.door.options import SolveOptions

Factory = Callable[..., OnlineAlgorithm]
"""A class or function that builds an algorithm; its keyword parameters are the settings."""


@dataclass(frozen=True, kw_only=True)
class FamilyOnline:
    """What a family offers on this floor: ``ONLINE`` of its ``algorithms.py``."""

    algorithms: Mapping[str, Factory]
    """Algorithms by name, the paper's own first, baselines included."""
    state: Callable[[Any, Environment], ClusterState[Any]]
    """``(instance, environment)``: the simulator's side of a run."""
    committed_rows: CommittedRows
    """``(rows, slot)``: of a job's planned rows, those that following the plan makes irrevocable in
    `slot`; and whether the whole job is then settled (non-preemptive families), not this slot
    alone."""
    build_cluster: Callable[[Environment], BaselineCluster[Any]] | None = None
    """The cluster as the shared baselines see it; None for families that have none of them."""
    declared_estimates: Callable[..., JsonObject] = lambda instance: {}
    """``(instance, **settings)``: exact values of what algorithms are told in advance."""
    theorems: Mapping[str, Callable[[Any], Theorem]] = field(default_factory=dict)
    """By algorithm, what is proven of it on an instance."""
    measure_at_speed: Callable[[Any, float, SolveOptions], list[MeasureAtSpeed]] | None = None
    """``(instance, speed, options)``: the paper's algorithm on machines so many times as fast."""


def family_online(family: str) -> FamilyOnline:
    """What a family offers on this floor, found by its word."""
    online: FamilyOnline = family_module("online", family, "algorithms").ONLINE
    return online


def build_state(instance: Instance, environment: Environment) -> ClusterState[Any]:
    """The simulator's side of a run, found by the instance's word."""
    return family_online(instance.family).state(instance, environment)

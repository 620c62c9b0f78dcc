"""Chosen schedules packed together on real servers, by the patterns that a server can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.ends import build_packing
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.oasis.plans import OasisPlan
from hindsched.solvers.kernels.oasis.maximal_patterns import server_patterns

MOST_PACKED_PATTERNS = 120
"""Patterns of a group in a slot above which its packing rows are left out."""
PLACING_SECONDS = 2.0
"""Limit of placing given schedules on servers."""


def find_patterns(
    capacity: Floats, demand: Floats, most: Sequence[int]
) -> tuple[tuple[int, ...], ...] | None:
    """Maximal patterns of a server; None if they are more than `MOST_PACKED_PATTERNS`."""
    return _known_patterns(tuple(capacity), tuple(map(tuple, demand.tolist())), tuple(most))


@lru_cache(maxsize=4096)
def _known_patterns(
    capacity: tuple[float, ...], demand: tuple[tuple[float, ...], ...], most: tuple[int, ...]
) -> tuple[tuple[int, ...], ...] | None:
    patterns = server_patterns(
        np.array(capacity), np.array(demand), np.array(most), MOST_PACKED_PATTERNS
    )
    return None if patterns is None else tuple(map(tuple, patterns.tolist()))


def place_together(instance: OasisInstance, plans: Mapping[int, OasisPlan]) -> OasisSolution | None:
    """Schedules of jobs, by position, packed on real servers; None if they are not seen to fit."""
    ends = {job: plan[0] for job, plan in plans.items()}
    leaf = build_packing(instance, ends, find_patterns)
    for job, (end, *placed) in plans.items():
        block = leaf.model.job[job]
        for units, counts in zip((block.workers, block.servers), placed, strict=True):
            in_slot = np.bincount(counts.slots, counts.counts, end + 1)
            for slot, variable in units.items():
                variable.fix(int(in_slot[slot]))
    result = solve_program(leaf.model, SolveOptions(time_limit=PLACING_SECONDS, threads=1))
    return leaf.extract() if result.has_point else None

"""Problems (8)/(17) of batchsched and (5) of astraea over whole schedules, and their duals.

A schedule of a job is one window with one placement that satisfies everything but the capacities:
here all of them are listed, so this is for small clusters. (8)/(17) is a round's: every job may
start in slot 1, and a schedule that ends in time is worth the job's weight. In (5) a schedule is
worth its revenue. Payoffs are u of (9)/(18) and mu of (6), prices delta and eta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.modes import WindowInstance
from hindsched.models.schedule_dual import Priced, ScheduleDual, schedule_dual
from hindsched.models.windows.block import Family
from hindsched.models.windows.program import WindowFace, refuse_in_pieces
from hindsched.models.windows.sets import Spans, host_use, sets_by_job


class Schedule(NamedTuple):
    """What a schedule of a job is worth, and what it uses, (servers, resources, slots)."""

    job: int
    worth: float
    use: Floats


@dataclass(kw_only=True, eq=False, repr=False)
class WindowDual(WindowFace, ScheduleDual):
    """A dual with the rows of all schedules."""

    LETTERS: ClassVar[tuple[str, ...]] = ("price",)
    """Of the prices, by set of capacities."""

    listed: list[Schedule] = field(default_factory=list)


def splits(count: int, room: Sequence[int]) -> list[tuple[int, ...]]:
    """All ways to put `count` workers on servers with this room."""
    if not room:
        return [()] if count == 0 else []
    return [
        (here, *rest)
        for here in range(min(room[0], count) + 1) for rest in splits(count - here, room[1:])
    ]  # fmt: skip


def schedules(
    instance: WindowInstance, spans: Spans, worth: Callable[[int, int], float], slots: int
) -> Iterator[Schedule]:
    """All schedules: the jobs' columns, with every way to place the workers beside no PS.

    `worth` gives a job's value by its last slot.
    """
    for j, job in sets_by_job(instance, spans).items():
        for column in job.columns:
            k, first, n, g = column
            mode, last = job.modes[k], job.last_slot(column)
            worker = instance.worker_demand[mode.worker_type]
            on_host = np.zeros_like(instance.server_capacity)
            if n >= 0:
                on_host[n] = host_use(instance, mode, g)
            room = instance.worker_room[:, mode.worker_type].tolist()
            for split in splits(mode.workers - g, [0 if h == n else m for h, m in enumerate(room)]):
                use = np.zeros((*on_host.shape, slots))
                use[:, :, first - 1 : last] = (on_host + np.outer(split, worker))[:, :, None]
                yield Schedule(j, float(worth(j, last)), use)


def build_schedule_dual(
    kind: type[WindowDual], family: Family, formulation: str, row: str, spans: Spans,
    worth: Callable[[int, int], float], slots: int, whose: str,
) -> Any:  # fmt: skip
    """The dual of a `kind` with its rows."""
    refuse_in_pieces(formulation)
    priced = dict[str, Priced]()
    for letter, part in zip(kind.LETTERS, family.capacities, strict=True):
        capacity = family.cluster.server_capacity[:, list(part.kinds)]
        priced[part.name] = Priced(letter, "a server's resource", capacity, np.ones_like(capacity))
    dual = schedule_dual(
        kind, family.cluster, row.rstrip("a"), row, "payoff", priced, slots,
        formulation=formulation, family=family, whose=whose,
        listed=list(schedules(family.cluster, spans, worth, slots)),
    )  # fmt: skip
    for job, value, use in dual.listed:
        dual.add_row(job, value, family.by_name(use))
    return dual

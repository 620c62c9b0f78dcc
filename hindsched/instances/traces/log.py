"""The neutral result of every reader: jobs, the schedule they got, and what was noticed.

Times are whole slots of ``1 / slots_per_second`` seconds since `Log.zero`, so that nothing is
rounded: a log in whole seconds has slots of a second, one in milliseconds slots of a millisecond.
`Log.stamp` writes a slot as the log would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

from hindsched.errors import InputError
from hindsched.instances.traces.capacity import Capacity
from hindsched.instances.traces.times import NANO, find_zone, seconds_text, stamp_text
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    import pandas as pd

    from hindsched.instances.traces.reader_warnings import ReaderWarnings

FORMULATIONS = ("non-preemptive", "preemptive", "elastic")
"""How freely jobs are scheduled, least freedom first."""


@dataclass(frozen=True)
class Waits:
    """How long rows of one kind waited, in seconds.

    Parameters
    ----------
    kind : str
        ``all``, ``whole GPUs``, ``a share of a GPU`` or ``no GPU``.
    rows : int
        How many.
    mean, median, p95, p99, most : float
        Of their waits; percentiles are waits that occur (the smallest that so many do not exceed).
    """

    kind: str
    rows: int
    mean: float
    median: float
    p95: float
    p99: float
    most: float


@dataclass(frozen=True)
class Log:
    """Jobs and the schedule that somebody's scheduler gave them.

    Parameters
    ----------
    format, source, sha256 : str
        Format of the log, name of the file (or ``frame``), hash of what is stored (or nothing).
    jobs : DataFrame
        A row a job that can be judged, by submission: ``row, job, submit, duration, gpus, work``
        (GPU-slots), ``ran`` (slots in which it ran, if known), ``runs`` (times that it was
        started), ``completion`` (end of its last run), ``completion_only`` (its runs within start
        and end are not known) and, where the log has them, ``weight, deadline, user``.
    schedule : DataFrame
        What held GPUs when: ``row, job, start, end, gpus`` and, where known, ``server``, ``lost``
        (the work of this run was thrown away) and ``part`` (rows of a job with the same one are a
        gang). Several rows a job: runs, or parts on different servers.
    others : DataFrame
        Jobs that cannot be judged, with the reason: ``row, job, submit, start, end, gpus, why``.
        They held GPUs from ``start`` (None: since before the log) to ``end`` (None: till after).
    notes : ReaderWarnings
        What was noticed, by row and column.
    capacity : Capacity, optional
        GPUs, if the log or the user says how many there are.
    formulation : str
        The least of `FORMULATIONS` in which the log's schedule is a schedule.
    slots_per_second : int
        A power of ten.
    zero : int
        Nanoseconds of slot 0: since 1970 for stamps, since the log's zero for numbers.
    clock : str
        ``seconds`` or ``stamps``.
    zone : str, optional
        Time zone in which stamps are written.
    rows_read : int
        Rows of the log.
    waits : tuple of Waits
        Time from submission to start of all rows that have both, also of those not judged.
    facts : tuple of str
        What the log's header says that a judgement should repeat.
    gpus_a_server : int, optional
        GPUs of every server that the log names, where its format says so.
    """

    format: str
    source: str
    sha256: str
    jobs: pd.DataFrame
    schedule: pd.DataFrame
    others: pd.DataFrame
    notes: ReaderWarnings
    capacity: Capacity | None
    formulation: str
    slots_per_second: int
    zero: int
    clock: str
    zone: str | None
    rows_read: int
    waits: tuple[Waits, ...] = ()
    facts: tuple[str, ...] = ()
    gpus_a_server: int | None = None

    def __repr__(self) -> str:
        return (
            f"<{self.format} log {self.source!r}: {len(self.jobs)} jobs judged, "
            f"{len(self.others)} others, {len(self.notes)} notes, {self.formulation}>"
        )

    @property
    def slot_seconds(self) -> int | float:
        """Length of a slot in seconds."""
        return 1 if self.slots_per_second == 1 else 1 / self.slots_per_second

    @property
    def is_slotwise(self) -> bool:
        """Whether it is known which GPUs were held in every slot."""
        return not bool(self.jobs["completion_only"].any())

    def seconds(self, slots: int) -> int | float:
        """Slots as seconds: a whole number where it is one."""
        whole, rest = divmod(int(slots), self.slots_per_second)
        return whole if rest == 0 else float(seconds_text(int(slots) * self._slot_nanoseconds))

    def stamp(self, slot: Any) -> str:
        """Time of a slot's begin as the log would write it; nothing for a missing one."""
        import pandas as pd

        if pd.isna(slot):
            return ""
        nanoseconds = self.zero + int(slot) * self._slot_nanoseconds
        if self.clock == "stamps":
            return stamp_text(nanoseconds, find_zone(self.zone) if self.zone else UTC)
        return seconds_text(nanoseconds)

    def with_capacity(self, capacity: Capacity) -> Log:
        """The same log with the capacity that the user says."""
        return replace(self, capacity=capacity)

    def need_capacity(self) -> Capacity:
        """The capacity, or `InputError` if nobody has said it."""
        if self.capacity is None:
            rule = "the log does not say how many GPUs there are: --gpus or --servers must"
            raise InputError("gpus", "(absent)", rule)
        return self.capacity

    def to_frame(self) -> pd.DataFrame:
        """A row a job for people: times as the log writes them, spans in seconds."""
        import pandas as pd

        jobs = self.jobs
        first = self.schedule.groupby("job", sort=False)["start"].min()
        rows: JsonObject = {
            "row": jobs["row"],
            "job": jobs["job"],
            "submit": [self.stamp(slot) for slot in jobs["submit"]],
            "start": [self.stamp(slot) for slot in first.reindex(jobs["job"])],
            "end": [self.stamp(slot) for slot in jobs["completion"]],
            "duration": [self.seconds(slots) for slots in jobs["duration"]],
            "gpus": jobs["gpus"],
            "jct": [self.seconds(slots) for slots in jobs["completion"] - jobs["submit"]],
        }
        if "deadline" in jobs:
            rows["deadline"] = [self.stamp(slot) for slot in jobs["deadline"]]
        rows |= {name: jobs[name] for name in ("weight", "user") if name in jobs}
        return pd.DataFrame(rows)

    @property
    def _slot_nanoseconds(self) -> int:
        return NANO // self.slots_per_second

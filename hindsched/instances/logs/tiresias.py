"""Tiresias' simulator: ``job.csv``, a row a job, widths fixed.

A job is preempted and resumed between ``start_time`` and ``end_time``; its work is ``duration``
where the file has it, else ``executed_time``. Without the events' file (as ElasticFlow's version of
the simulator writes it) only completions can be judged, and capacity cannot be checked.
"""

from __future__ import annotations

from hindsched.instances.logs.elasticflow import COLUMNS, SETTINGS, read_with_events
from hindsched.instances.logs.reading import Format, Reading


def read(reading: Reading) -> None:
    """Read jobs and, where there are any, events."""
    read_with_events(reading, needs_events=False)


FORMAT = Format(
    name="tiresias",
    what="job.csv of Tiresias' simulator",
    read=read,
    columns={**COLUMNS, "work": "duration"},
    needed=("job", "submit", "start", "end", "gpus", "duration"),
    settings=SETTINGS,
)

"""When a job held how many GPUs: its rows as maximal stretches of one width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hindsched.arrays import Ints

Span = tuple[int, int, int]
"""Begin, end and GPUs."""


def profile_of(rows: Mapping[str, NDArray], members: Ints) -> list[Span]:
    """GPUs held over time by some rows: maximal stretches of one width, without those of none.

    Rows of one ``part`` are a gang: it runs from its last row's start to its last row's end.
    """
    names = ("start", "end", "gpus")
    spans: list[Any] = [tuple(int(rows[name][k]) for name in names) for k in members]
    if "part" in rows:
        parts: dict[int, list[Any]] = {}
        for k, span in zip(members, spans, strict=True):
            parts.setdefault(int(rows["part"][k]), []).append(span)
        spans = [
            (max(b for b, _, _ in gang), max(e for _, e, _ in gang), sum(g for _, _, g in gang))
            for gang in parts.values()
        ]
    changes: dict[int, int] = {}
    for begin, end, gpus in spans:
        changes[begin] = changes.get(begin, 0) + gpus
        changes[end] = changes.get(end, 0) - gpus
    profile: list[Span] = []
    width, since = 0, 0
    for moment in sorted(changes):
        if changes[moment]:
            if width:
                profile.append((since, moment, width))
            width, since = width + changes[moment], moment
    return profile


def runs_of(jobs: pd.DataFrame, schedule: pd.DataFrame) -> dict[str, Ints]:
    """What each judged job held, without runs whose work was lost.

    Parameters
    ----------
    jobs, schedule : DataFrame
        Of a log whose runs are known.

    Returns
    -------
    dict of ndarray of int
        ``job`` (position in `jobs`), ``start``, ``end``, ``gpus``: stretches of one width.
    """
    names = ("start", "end", "gpus", "part", "lost")
    rows = {name: schedule[name].to_numpy() for name in names if name in schedule}
    job = pd.Index(jobs["job"]).get_indexer(schedule["job"])
    if "lost" in rows:
        kept = ~rows["lost"]
        job, rows = job[kept], {name: values[kept] for name, values in rows.items()}
    order = np.argsort(job, kind="stable")
    bounds = np.flatnonzero(np.r_[True, np.diff(job[order]) != 0, True])
    sizes = np.diff(bounds)
    single = order[bounds[:-1][sizes == 1]]
    found = [
        np.column_stack([job[single], *(rows[name][single] for name in ("start", "end", "gpus"))])
    ]
    for at in np.flatnonzero(sizes > 1):
        members = order[bounds[at] : bounds[at + 1]]
        spans = profile_of(rows, members)
        found.append(np.array([(job[members[0]], *span) for span in spans], dtype=np.int64))
    table = np.concatenate(found).astype(np.int64)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    return dict(zip(("job", "start", "end", "gpus"), table.T, strict=True))

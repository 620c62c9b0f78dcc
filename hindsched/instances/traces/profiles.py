"""When a job held how many GPUs: its rows as maximal stretches of one width."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hindsched.arrays import Ints

Span = tuple[int, int, int]
"""Begin, end and GPUs."""


def profile_of(rows: pd.DataFrame) -> list[Span]:
    """GPUs held over time by some rows: maximal stretches of one width, without those of none.

    Rows of one ``gang`` run together, from the last row's start to the last row's end.
    """
    spans = list(zip(*(rows[name].tolist() for name in ("start", "end", "gpus")), strict=True))
    if "gang" in rows:
        gangs = rows.groupby("gang", sort=False).agg({"start": "max", "end": "max", "gpus": "sum"})
        spans = [(int(b), int(e), int(g)) for b, e, g in gangs.itertuples(index=False)]
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
    rows = schedule.assign(at=pd.Index(jobs["job"]).get_indexer(schedule["job"]))
    rows = rows.rename(columns={"part": "gang"})
    if "lost" in rows:
        rows = rows[~rows["lost"]]
    several = rows["at"].duplicated(keep=False)
    found = [rows.loc[~several, ["at", "start", "end", "gpus"]].to_numpy(dtype=np.int64)]
    for at, group in rows[several].groupby("at"):
        found.append(np.array([(at, *span) for span in profile_of(group)], dtype=np.int64))
    table = np.concatenate(found)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    return dict(zip(("job", "start", "end", "gpus"), table.T, strict=True))

"""``audit --check``: what is missing, doubtful or impossible in a log, before anything is judged.

A log is *sound* if all its rows are judged (but for those that ask for no GPU), none stands twice
and nothing in it is impossible; it is *judged with what is left* otherwise; it *cannot be judged*
where nobody knows how many GPUs there are, or no row has what a judgement needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from hindsched.analysis.audit.gang.verdict import (
    WORDS,
    Breach,
    Breaches,
    find_breaches,
    held_rows,
)
from hindsched.analysis.audit.gang.words import how_often, plural
from hindsched.errors import InputError
from hindsched.instances.gang.from_log import instance_of_log
from hindsched.instances.traces.log import Log, read_log
from hindsched.instances.traces.reading import ASIDE, LEFT_OUT, NO_GPU, UNJUDGED, CannotJudge
from hindsched.json_types import JsonObject
from hindsched.solutions.gang.solution import use_over_time

SOUND, PARTLY, NOT = "sound", "judged with what is left", "cannot be judged"
SAME_ROW = ["job", "submit", "start", "end", "gpus", "server"]
"""Rows that agree in all of these are one row written twice."""


@dataclass(frozen=True)
class LogCheck:
    """What a look at a log found."""

    source: str  # name of the file, or ``frame``
    rows_read: int
    rows_out: int  # that are not judged
    jobs: int  # that are judged
    findings: tuple[str, ...]  # a sentence each
    verdict: str  # `SOUND`, `PARTLY` or `NOT`
    because: str = ""  # why it cannot be judged

    def sentence(self) -> str:
        """Rows, jobs and verdict in one sentence."""
        text = f"{self.source}: {self.verdict}"
        if self.verdict == NOT:
            return f"{text}, because {self.because}."
        counts = f"{plural(self.jobs, 'job')} judged, {plural(self.rows_out, 'row')} not judged"
        return f"{text}. {plural(self.rows_read, 'row')} read: {counts}."

    def lines(self) -> list[str]:
        """The sentence, and a line a finding."""
        return [self.sentence(), *(f"- {finding}." for finding in self.findings)]

    def to_dict(self) -> JsonObject:
        """JSON data."""
        return {**asdict(self), "sentence": self.sentence()}


def check_log(
    log: Log | str | Path | pd.DataFrame,
    format: str = "csv",  # noqa: A002
    **reading: Any,
) -> LogCheck:
    """Look a log through without judging it: rows that break a rule are left out and told.

    Parameters
    ----------
    log, format : Log, path or DataFrame, and str
        As `hindsched.audit` takes them.
    **reading
        How it is read, as `read_log` takes it: ``gpus, servers, columns, time_zone``, ...

    Raises
    ------
    InputError
        For a file that is not of the format at all, or an unknown option.

    Examples
    --------
    >>> import pandas as pd, hindsched as hs
    >>> log = pd.DataFrame({"job": ["a", "b"], "submit": 0, "start": [0, 60], "end": [60, 30]})
    >>> for line in hs.check_log(log.assign(gpus=2), gpus=2).lines():
    ...     print(line)
    frame: judged with what is left. 2 rows read: 1 job judged, 1 row not judged.
    - 1 row left out: must not precede the start (column end, row 2: -30 s after its start).
    - no job waited: either there was nothing to schedule, or submissions are really starts.
    """
    if not isinstance(log, Log):
        try:
            log = read_log(log, format, **{**reading, "skip_broken": True})
        except CannotJudge as error:
            name = Path(log).name if isinstance(log, (str, Path)) else "frame"
            by_rule = {note["rule"]: note for note in reversed(error.notes)}  # the most frequent
            found = tuple(map(note_sentence, reversed(by_rule.values())))
            return LogCheck(
                name, error.rows_read, error.rows_read, 0, found, NOT, error.because or error.rule
            )
    return checked(log, None if log.capacity is None else find_breaches(log))


def checked(log: Log, breaches: Breaches | None) -> LogCheck:
    """The check of a log that was read, and of what is impossible in it."""
    notes: list[Any] = log.notes.summary()
    rows, held = log.rows, held_rows(log)
    twice = int(rows.duplicated([name for name in SAME_ROW if name in rows]).sum())
    found = [*log.facts, *map(note_sentence, notes)]
    if twice:
        found.append(f"{plural(twice, 'row')} of the log {_stand(twice)} in it before, the same")
    jobs, because, by_kind = log.jobs, "", list[str]()
    if (jobs["completion"] - jobs["submit"] == jobs["ran"]).all():
        found.append(
            "no job waited: either there was nothing to schedule, or submissions are really starts"
        )
    peak = int(use_over_time(held["start"], held["end"], held["gpus"]).max()) if len(held) else 0
    if log.capacity is None or breaches is None:
        found.append(f"at most {plural(peak, 'GPU')} known to be held at once")
        because = "nobody says how many GPUs there are (`gpus` or `servers`)"
    else:
        found += _impossible(log, breaches.listed, held)
        by_kind = [*_by_kind(log, held)]
        found += by_kind
        found += _never_used(log, peak, held)
        try:
            instance_of_log(log)
        except InputError as error:
            because = f"{error.where}: {error.value}: {error.rule}"
    out = sum(note["count"] for note in notes if note["done"] in UNJUDGED)
    left_out = any(note["done"] in (ASIDE, LEFT_OUT) and note["rule"] != NO_GPU for note in notes)
    sound = not (left_out or twice or by_kind or (breaches and breaches.listed))
    return LogCheck(
        log.source, log.rows_read, out, len(jobs),
        tuple(text.rstrip(".") for text in found), NOT if because else SOUND if sound else PARTLY,
        because,
    )  # fmt: skip


def note_sentence(note: Mapping[str, Any]) -> str:
    """What was noticed of how many rows, and what was done."""
    count, value = int(note["count"]), f": {note['first_value']}" if note["first_value"] else ""
    if not note["first_row"]:  # of the log as a whole
        return f"{note['rule']}{value}: {note['done']}"
    where = f"column {note['column']}, {'first in ' * (count > 1)}row {note['first_row']}{value}"
    done = note["done"].removeprefix("row ").partition(":")[0]
    comma = "" if note["done"] in UNJUDGED else ","
    return f"{plural(count, 'row')}{comma} {done}: {note['rule']} ({where})"


def _impossible(log: Log, breaches: tuple[Breach, ...], held: pd.DataFrame) -> Iterator[str]:
    """What cannot have been: how often, first when, and who holds most then."""
    for kind, words in WORDS.items():
        of_kind = [breach for breach in breaches if breach.kind == kind]
        if of_kind:
            at = held.loc[held["row"] == of_kind[0].row, "start"].max()
            by = _most_held_by(held, at) if kind in ("capacity", "server") else ""
            yield f"impossible, {how_often(len(of_kind))}: {words}; first {of_kind[0]}{by}"


def _by_kind(log: Log, held: pd.DataFrame) -> Iterator[str]:
    """Kinds of GPUs of which more were held, or are asked for, than there are."""
    rooms = log.need_capacity().by_kind()
    if not rooms or "gpu_kinds" not in held:
        return
    jobs = log.jobs
    span = max(1, int(jobs["completion"].max() - jobs["submit"].min()))
    for kind, room in rooms.items():
        asked = int(jobs.loc[jobs["gpu_kinds"] == kind, "work"].sum()) / (room * span)
        if asked > 1:
            yield f"jobs that name {kind} alone ask for {asked:.0%} of its GPU-seconds"
        alone = held[held["gpu_kinds"] == kind]
        used = use_over_time(alone["start"], alone["end"], alone["gpus"])
        if len(used) and used.max() > room:
            place = int(used.argmax())
            at, until = used.index[place], log.stamp(used.index[place + 1])
            by = _most_held_by(alone, at)
            yield (
                f"impossible: {used.max()} GPUs of kind {kind} held where there are {room}, from "
                f"{log.stamp(at)} to {until}{by}"
            )
    named = {*jobs["gpu_kinds"].str.split(r"\s*[|,;]\s*", regex=True).explode()} - {"", *rooms}
    if named:
        few = ", ".join(sorted(named)[:3])
        yield f"jobs name {plural(len(named), 'kind')} of GPUs that no server has: {few}"


def _most_held_by(held: pd.DataFrame, at: Any) -> str:
    """Who holds most GPUs at a moment."""
    now = held[(held["start"] <= at) & (at < held["end"])]
    who = "user" if "user" in held and (now["user"] != "").any() else "job"
    by = now.groupby(who)["gpus"].sum()
    return f"; most by {who} {by.idxmax()}: {by.max()}" if len(by) else ""


def _never_used(log: Log, peak: int, held: pd.DataFrame) -> Iterator[str]:
    """GPUs and servers that nobody held at any moment."""
    capacity = log.need_capacity()
    if peak < capacity.gpus:
        yield f"never used: {capacity.gpus - peak:,} of {plural(capacity.gpus, 'GPU')}"
    if "server" in held and (servers := dict(capacity.servers)):
        unused = sorted({*servers} - {*held["server"]})
        if 0 < len(unused) < len(servers):
            few = ", ".join(unused[:3])
            yield f"never used: {plural(len(unused), 'server')}, such as {few}"


def _stand(number: int) -> str:
    return "stand" if number != 1 else "stands"

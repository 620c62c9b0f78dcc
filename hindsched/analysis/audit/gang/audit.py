"""``audit``: whether a schedule that somebody else made can have been, and how good it was."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hindsched.analysis.audit.gang.check import LogCheck, checked
from hindsched.analysis.audit.gang.fragmentation import (
    IN_POOL,
    Fragmentation,
    Level,
    find_fragmentation,
    levels_above_pool,
)
from hindsched.analysis.audit.gang.verdict import (
    BEATS_BOUND,
    REFUSED,
    ROUNDING,
    WORDS,
    AuditSchedule,
    AuditVerdict,
    Breach,
    Breaches,
    Gap,
    find_breaches,
    find_gap,
)
from hindsched.analysis.audit.gang.words import cell_text, how_often, plural
from hindsched.analysis.bounds import Bounds, ratio_text
from hindsched.errors import InputError, check_type
from hindsched.instances.base import Instance
from hindsched.instances.gang.from_log import instance_of_log
from hindsched.instances.gang.instance import KINDS, GangInstance, split_formulation
from hindsched.instances.traces.capacity import said_capacity
from hindsched.instances.traces.log import Log, read_log
from hindsched.json_types import JsonObject
from hindsched.solutions.gang.solution import GangSolution, gang_metrics, pool_rows
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.compiling import compile_first
from hindsched.solvers.door.api import compile_solve, solve
from hindsched.solvers.families.gang.prices import certify_without_prices
from hindsched.solvers.families.gang.replay import POLICIES, replay

DEFAULT_SECONDS = 60.0
FOR_OUTPUT, PER_JOB = 1.5, 1e-4  # seconds that page and files take, and what each job adds
GOALS = {"mean-jct": "completion", "makespan": "makespan", "deadlines-met": "deadlines"}
LEAST_SECONDS = 0.01  # of bound and search, which then are what is known at once
MEASURES = (
    "mean_jct", "p50_jct", "p95_jct", "p99_jct", "mean_wait", "makespan", "bounded_slowdown",
    "utilisation", "deadlines_met", "weighted_mean_jct",
)  # fmt: skip
BREACHES_TOLD = 100


@dataclass(frozen=True, repr=False)
class Audit:
    """What is known of a log's schedule."""

    log: Log
    instance: GangInstance  # the jobs that are judged and the GPUs that there are
    objective: str  # mean-jct, makespan or deadlines-met
    formulation: str  # how freely the best possible may schedule, with the family's objective
    breaches: Breaches  # what makes the schedule impossible
    schedule: AuditSchedule  # what the log's scheduler did
    policies: tuple[AuditSchedule, ...]  # what others would have done with the same jobs
    best: AuditSchedule | None  # the best found of all and of the search
    certificate: Certificate  # prices that prove the bound
    verdict: AuditVerdict  # the interval in the units people use
    seconds: Mapping[str, float] = field(hash=False)  # that each step took
    remarks: tuple[str, ...] = ()  # what a reader of the verdict should know
    # the same jobs by kind of GPU and on the servers; None where neither is known
    fragmentation: Fragmentation | None = field(default=None, repr=False)

    @property
    def is_possible(self) -> bool:
        """Whether nothing shows that the schedule cannot have been."""
        return not self.breaches.listed

    @cached_property
    def check(self) -> LogCheck:
        """What is missing, doubtful or impossible in the log."""
        return checked(self.log, self.breaches)

    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.is_possible:
            return self.verdict.sentence()
        kinds = ", ".join(
            f"{WORDS[kind]} ({how_often(count)})" for kind, count in self.breaches.counts.items()
        )
        return f"This schedule is impossible: {kinds}. As logged: {self.verdict.sentence()}"

    def rows(self) -> list[dict[str, Any]]:
        """Measures of the log's schedule, of the policies and of the best found."""
        rows: list[dict[str, Any]] = []
        for schedule in dict.fromkeys([self.schedule, *self.policies, self.best or self.schedule]):
            value = schedule.solution.objective()
            verdict = verdict_on(
                self.instance, self.objective, value, self.certificate.bound, self.best
            )
            measured = _measures(schedule, elastic=self.formulation.startswith(KINDS[-1]))
            rows.append({
                "scheduler": schedule.name, "value": verdict.value,
                "ratio_lower": verdict.ratio.lower, "ratio_upper": verdict.ratio.upper,
                "pauses": schedule.pauses, **{name: measured[name] for name in MEASURES},
            })  # fmt: skip
        return rows

    def to_frame(self) -> pd.DataFrame:
        """`rows` as a pandas frame."""
        return pd.DataFrame(self.rows())

    def shown_rows(self) -> list[dict[str, Any]]:
        """`rows` for people: the ratio and what counts first, no measure twice, spans in words."""
        rows, what = self.rows(), self.verdict.measure
        names = [name for name in MEASURES if name not in {"weighted_mean_jct", what}]
        names = [name for name in names if any(row[name] is not None for row in rows)]
        return [
            {
                "scheduler": row["scheduler"] + " (pauses jobs)" * row["pauses"],
                "ratio": ratio_text(Bounds(row["ratio_lower"], row["ratio_upper"])),
                **{name: cell_text(name, row[name]) for name in (what, *names)},
            }
            for row in rows
        ]

    @cached_property
    def gap(self) -> Gap | None:
        """Which jobs and hours hold the gap to the best schedule found; None if there is none."""
        if self.best is None or self.best is self.schedule:
            return None
        return find_gap(self.log, self.schedule, self.best)

    def users(self) -> list[JsonObject]:
        """Jobs, mean completion time, mean wait and GPU-seconds asked for, a row a user."""
        rows: Any = _measures(self.schedule, elastic=False)["users"]
        return list(rows)

    def jobs(self) -> pd.DataFrame:
        """A row a job with its identifiers and times as the log writes them."""
        frame = self.log.to_frame()
        if self.best is not None:
            slots = self.best.solution.completions - self.instance.submits
            frame["best_found_jct"] = [self.log.seconds(slot) for slot in slots.tolist()]
        return frame

    def to_dict(self) -> JsonObject:
        """The object that ``hindsched audit --json`` prints."""
        capacity = self.log.need_capacity()
        return {
            "log": self.log.source, "format": self.log.format, "sha256": self.log.sha256,
            "rows_read": self.log.rows_read, "check": self.check.to_dict(),
            "jobs": len(self.instance.jobs),
            "jobs_set_aside": int(self.log.others["job"].nunique()),
            "gpus": capacity.gpus, "gpus_said_by": capacity.said_by,
            "formulation": self.formulation, "possible": self.is_possible,
            "sentence": self.sentence(), **self.verdict.to_dict(),
            "bound": self.certificate.bound,
            "best_schedule": None if self.best is None else self.best.name,
            "breaches": dict(self.breaches.counts),
            "breaches_listed": [str(each) for each in self.breaches.listed[:BREACHES_TOLD]],
            "not_checked": list(self.breaches.unchecked),
            "most_gpus_held": self.breaches.peak,
            "notes": self.log.notes.summary(),
            "remarks": list(self.remarks),
            "schedulers": self.rows(),
            "users": self.users(),
            "gap": None if self.gap is None else self.gap.to_dict(),
            "fragmentation": self.fragmentation and self.fragmentation.to_dict(),
            "seconds": dict(self.seconds),
        }  # fmt: skip

    def write(self, folder: str | Path) -> list[Path]:
        """Write page, tables, schedules and certificate to a folder; the files, the page first."""
        from hindsched.analysis.audit.gang.page import write_folder

        return write_folder(self, folder)

    def __repr__(self) -> str:
        return f"<audit of {self.log.source!r}: {self.sentence()}>"


def audit(
    log: Log | str | Path | pd.DataFrame,
    format: str = "csv",  # noqa: A002
    *,
    gpus: int | None = None,
    servers: object = None,
    objective: str = "mean-jct",
    formulation: str | None = None,
    policies: Sequence[str] | None = None,
    time_limit: float | None = None,
    say: Callable[[str], None] | None = None,
    **reading: Any,
) -> Audit:
    """Judge the schedule that a log, a file or a frame holds.

    Parameters
    ----------
    log, format : Log, path or DataFrame, and str
        A log that was read, a file and its format, or a frame with the columns
        ``job, submit, start, end, gpus``.
    gpus, servers
        The capacity, where the log does not say it.
    objective : {"mean-jct", "makespan", "deadlines-met"}
        What counts.
    formulation : {"non-preemptive", "preemptive", "elastic"}, optional
        How freely the best possible may schedule; by default as freely as the log's scheduler did.
    policies : sequence of str, optional
        Policies to replay on the same jobs: all if None.
    time_limit : float, optional
        Seconds for everything, of which some are kept for writing the verdict; policies for which
        no time is left are not replayed. If None 60 for the bound and the search alone.
    say : callable, optional
        Is told in words what is being done.
    **reading
        How a file or a frame is read, as `read_log` takes it: ``columns, time_zone``, ...

    Returns
    -------
    Audit
        ``sentence()``, ``is_possible``, ``breaches``, ``to_frame()``, ``write(folder)``, ...

    Raises
    ------
    InputError
        For a log that cannot be read or judged.

    Examples
    --------
    >>> import pandas as pd, hindsched as hs
    >>> log = pd.DataFrame({"job": ["a", "b"], "submit": 0, "start": [0, 60], "end": [60, 90]})
    >>> log["gpus"] = 2
    >>> hs.audit(log, gpus=2).is_possible
    True
    """  # fmt: skip
    check_type("time_limit", time_limit, int | float | None, "a number of seconds, at least 0")
    if time_limit is not None and not 0 <= time_limit < float("inf"):
        raise InputError("time_limit", time_limit, "must be a number of seconds, at least 0")
    begin, tell = time.perf_counter(), say or (lambda text: None)
    if not isinstance(log, Log):
        log = read_log(log, format, gpus=gpus, servers=servers, **reading)
    elif (capacity := said_capacity(gpus, servers)) is not None:
        log = replace(log, capacity=capacity)
    kind = _kind(log, formulation)
    chosen = _replayable(kind, policies)
    if objective not in GOALS:
        raise InputError("objective", objective, f"must be one of {', '.join(GOALS)}")
    full = kind if objective == "mean-jct" else f"{kind},{GOALS[objective]}"
    instance = instance_of_log(log, formulation=kind)
    if objective == "deadlines-met" and not (instance.deadlines >= 0).any():
        raise InputError("objective", objective, "no job of the log has a deadline")
    laps = {"reading": time.perf_counter() - begin}
    compile_audit()  # no seconds of the audit
    begin = time.perf_counter() - laps["reading"]

    def lap(name: str) -> None:
        laps[name] = time.perf_counter() - begin - sum(laps.values())

    until = math.inf  # when bound and search must end, for the verdict to be written in time
    if time_limit is not None:
        until = begin + time_limit - min(time_limit / 2, FOR_OUTPUT + PER_JOB * len(instance.jobs))
    tell(f"{len(instance.jobs)} jobs on {instance.total_gpus} GPUs: what is impossible")
    schedule, breaches = _schedule_of(log, instance, full), find_breaches(log)
    listed = list(breaches.listed)
    if schedule.is_known and not listed:
        listed += [
            Breach(REFUSED, 0, str(broken), log.stamp(0), "", 0, 0)
            for broken in schedule.solution.violations()
        ]
    lap("checks")
    replayed: dict[str, AuditSchedule] = {}
    for name in chosen:
        if time.perf_counter() < (begin + until) / 2:  # half of the time is for bound and search
            tell(f"what {name} would have done")
            pauses = POLICIES[name].preemptive
            rules = full.replace(KINDS[0], KINDS[1]) if pauses and kind == KINDS[0] else full
            replayed[name] = AuditSchedule(name, replay(instance, name, rules), pauses)
    lap("policies")
    tell(f"bound and search ({full})")
    left = DEFAULT_SECONDS if time_limit is None else until - time.perf_counter()
    remarks = _remarks(log, instance)
    levels = _levels(log, full, remarks) if objective == "mean-jct" else []
    limit = max(LEAST_SECONDS, left) / (1 + len(levels))
    result = solve(instance, formulation=full, time_limit=limit)
    certificate = result.certificate or certify_without_prices(instance, full)
    bound = float(certificate.bound)
    lap("bound")
    value = schedule.solution.objective()
    if value < bound * (1 - ROUNDING):  # below what is proven of every schedule
        listed.append(Breach(BEATS_BOUND, 0, "all jobs", log.stamp(0), "", value, bound))
    candidates = [] if listed else [schedule]
    if isinstance(result.solution, GangSolution):
        candidates.append(AuditSchedule("best found", result.solution, kind != KINDS[0]))
    candidates += [each for each in replayed.values() if not each.pauses or kind != KINDS[0]]
    fragmentation = None
    if levels:
        least = min(
            (each.solution for each in candidates), key=lambda s: s.objective(), default=None
        )
        pool = Level(IN_POOL, instance, certificate, least)
        fragmentation = find_fragmentation(log, pool, levels, limit * len(levels), tell)
        finer = fragmentation.levels[0].best
        if finer is not None and finer is not least:
            candidates.append(AuditSchedule("best found", finer, kind != KINDS[0]))
        lap("servers and kinds")
    best = min(candidates, key=lambda each: each.solution.objective(), default=None)
    if late := [name for name in chosen if name not in replayed]:
        remarks.append(f"Not replayed, for no time was left: {', '.join(late)}.")
    return Audit(
        log=log, instance=instance, objective=objective, formulation=full,
        breaches=replace(breaches, listed=tuple(listed)), schedule=schedule,
        policies=tuple(replayed.values()), best=best, certificate=certificate,
        verdict=verdict_on(instance, objective, value, bound, best), seconds=laps,
        remarks=tuple(remarks), fragmentation=fragmentation,
    )  # fmt: skip


def _levels(log: Log, formulation: str, remarks: list[str]) -> list[tuple[str, GangInstance]]:
    """What is asked of servers and kinds; a remark where the log names no such GPUs."""
    capacity = log.need_capacity()
    if "gpu_kinds" in log.jobs and (log.jobs["gpu_kinds"] != "").any() and not capacity.kinds:
        remarks.append(
            "Jobs name kinds of GPUs, and nobody has said those of the servers: `servers` "
            "as a file with columns server,gpus,gpu_kind does."
        )
    try:
        return levels_above_pool(log, formulation)
    except InputError as error:
        remarks.append(f"Not judged by server and kind of GPU: {error}.")
        return []


def compile_audit() -> None:
    """Compile what an audit runs, once a machine, before its clock starts."""

    def run(tiny: Instance) -> None:
        assert isinstance(tiny, GangInstance)
        for name, policy in POLICIES.items():
            replay(tiny, name, KINDS[policy.preemptive])
        for kind in KINDS[1:]:
            solve(tiny, formulation=kind, work_limit=50)

    compile_solve("gang")
    compile_first("gang audit", run, "gang")


def _kind(log: Log, formulation: str | None) -> str:
    """How freely the log is judged: never less freely than it was scheduled."""
    kind = log.formulation if formulation is None else formulation
    if kind not in KINDS:
        raise InputError("formulation", kind, f"must be one of {', '.join(KINDS)}")
    if KINDS.index(kind) < KINDS.index(log.formulation):
        rule = f"the log's own schedule is {log.formulation}: it cannot be judged by less freedom"
        raise InputError("formulation", kind, rule)
    return kind


def _replayable(kind: str, policies: Sequence[str] | None) -> tuple[str, ...]:
    """Policies to replay: of jobs whose widths change there are none."""
    for name in policies or ():
        if name not in POLICIES:
            raise InputError("policy", name, f"must be one of {', '.join(POLICIES)}")
    if kind == KINDS[-1] and policies:
        raise InputError("policy", ", ".join(policies), "widths changed: no policy is defined")
    return () if kind == KINDS[-1] else tuple(POLICIES if policies is None else policies)


def _schedule_of(log: Log, instance: GangInstance, formulation: str) -> AuditSchedule:
    """The log's own schedule of the jobs that it is judged by, which stand in its order."""
    jobs = log.jobs
    first = log.schedule.groupby("job", sort=False)["start"].min().reindex(jobs["job"])
    starts = np.where(first.isna(), -1, first.fillna(-1)).astype(np.int64)
    runs = log.runs.assign(job=pd.Index(jobs["job"]).get_indexer(log.runs["job"]))
    columns = [runs[name].to_numpy(np.int64) for name in ("job", "start", "end", "gpus")]
    too_short = (jobs["ran"].notna() & (jobs["ran"] < jobs["duration"])).to_numpy(bool)
    odd = np.flatnonzero(too_short | jobs["completion_only"].to_numpy(bool))
    if odd.size:  # known by their completions: their work stands before them
        others = ~np.isin(columns[0], odd)
        ends = jobs["completion"].to_numpy(dtype=np.int64)[odd]
        ideal = (odd, ends - instance.durations[odd], ends, instance.job_gpus[odd])
        columns = [np.concatenate([a[others], b]) for a, b in zip(columns, ideal, strict=True)]
    rows = pool_rows(*columns)
    solution = GangSolution(instance, rows, formulation)
    pauses = bool((jobs["runs"] > 1).any() or not log.is_slotwise)
    return AuditSchedule("log", solution, pauses, starts, log.is_slotwise)


def _remarks(log: Log, instance: GangInstance) -> list[str]:
    remarks = list[str]()
    others = log.others
    aside = others["job"][others["start"].notna() | others["end"].notna()].nunique()
    if aside:
        verb = "are" if aside > 1 else "is"
        remarks.append(
            f"{plural(aside, 'job')} {verb} not judged beside the {len(instance.jobs)} that are: "
            "they held GPUs too, for which the ratio may blame the scheduler."
        )
    if split_formulation(log.formulation)[0] == KINDS[-1]:
        remarks.append(
            "Widths changed, so jobs are known by the GPU-seconds that they held: the bound is for "
            "schedules that give each job the same GPU-seconds, on any number of GPUs and with "
            "linear speed-up. Real speed-up is less, and at another width a job needs others."
        )
    if not log.is_slotwise:
        remarks.append(
            "Of some jobs only start and end are known, and their work is less than the time "
            "between: they are judged by their completions, and capacity cannot be checked slot by "
            "slot."
        )
    lost = log.schedule[log.schedule["lost"]]
    if len(lost):
        slots = int(((lost["end"] - lost["start"]) * lost["gpus"]).sum())
        use = f"{log.seconds(slots):,} GPU-seconds"
        remarks.append(f"Runs whose work was lost: {len(lost)}. They held {use} for nothing.")
    return remarks


def _measures(schedule: AuditSchedule, *, elastic: bool) -> JsonObject:
    """Numbers of `gang_metrics`; None where the log does not say enough."""
    solution = schedule.solution
    starts = solution.starts if schedule.starts is None else schedule.starts
    metrics = gang_metrics(solution.instance, starts, solution.completions, solution.used_gpu_slots)
    unknown = {
        "mean_wait": (starts < 0).any(),
        "utilisation": not schedule.is_known,
        "bounded_slowdown": elastic,  # jobs have no duration of their own
        "deadlines_met": not metrics["deadlines"],
    }
    return metrics | dict.fromkeys(name for name, missing in unknown.items() if missing)


def verdict_on(
    instance: GangInstance, objective: str, value: float, bound: float, best: AuditSchedule | None
) -> AuditVerdict:
    """The interval in the units people use."""
    weights = instance.weights
    value_best = None if best is None else best.solution.objective()
    weighted = bool((weights != weights[0]).any())
    if objective == "makespan":
        return AuditVerdict(objective, value, Bounds(bound, value_best))
    if objective == "mean-jct":
        below = float(sum(instance.exact_weights[0])) / instance.exact_weights[1]
        most = None if value_best is None else value_best / below
        return AuditVerdict(objective, value / below, Bounds(bound / below, most), weighted)
    unit = 1.0 if weighted else float(weights[0])
    out_of = float(weights[instance.deadlines >= 0].sum())
    if not weighted:  # deadlines are whole
        bound = unit * math.ceil(bound / unit * (1 - 1e-12))
    least = None if value_best is None else (out_of - value_best) / unit
    best_possible = Bounds(least, (out_of - bound) / unit)
    return AuditVerdict(objective, (out_of - value) / unit, best_possible, weighted, out_of / unit)

"""Random instances of gang, and the mapping from a trace.

Arrivals are a Poisson stream, or one whose rate bursts, at a given offered load: the mean gap is
``E[duration x gpus] / (load x GPUs)``. Mixes of durations that have been published:

``gavel``
    ``10^x`` minutes, x uniform in [1.5, 3] for 80 % of the jobs and in [3, 4] for 20 %
    (Narayanan et al., OSDI 2020, after Gandiva's experiments).
``log-uniform``
    A uniform logarithm between two ends (Downey's model of parallel logs, 1997).
``exponential``
    Exponential of a mean, as queueing theory has it.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from hindsched.errors import InputError
from hindsched.instances.base import LARGEST_NUMBER, Instance, Positive, PositiveCount
from hindsched.instances.gang.instance import POOL, GangInstance, exact, gang_data
from hindsched.instances.generators.ranges import (
    Amounts,
    Wholes,
    check_count,
    check_positive,
    listed,
    within,
)
from hindsched.instances.generators.registry import Suite
from hindsched.instances.generators.sampling import Draws, rounded
from hindsched.instances.generators.settings import Settings
from hindsched.instances.traces.origin import job_names, trace_rows
from hindsched.json_types import Draft

MICROSECOND = Fraction(1, 10**6)
"""Resolution of the times in a trace table, whose submissions are differences of floats."""

_PAPER: Draft = {
    "jobs": 200,
    "gpus": 64,
    "servers": None,
    "placement": POOL,
    "load": 0.9,
    "arrivals": "poisson",
    "burst": 1.0,
    "mix": "gavel",
    "seconds": (600, 200_000),
    "widths": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 4, 8],
    "weight": (1, 1),
    "deadline_factor": None,
    "users": 10,
}
"""Preset ``paper``: GPUs of a job as in the multi-GPU traces of Gavel (70 % 1, 10 % 2, 15 % 4,
5 % 8). `seconds` are the ends of ``log-uniform``, and their mean is that of ``exponential``."""
_SMALL: Draft = {
    **_PAPER,
    "jobs": 6,
    "gpus": 4,
    "mix": "log-uniform",
    "seconds": (1, 8),
    "widths": [1, 1, 2, 3],
    "weight": (1, 3),
    "deadline_factor": (1.0, 3.0),
    "users": 2,
}
_BURSTY: Draft = {**_PAPER, "arrivals": "bursty", "mix": "log-uniform"}
_SERVERS: Draft = {**_PAPER, "servers": 8, "placement": "consolidated"}
PRESETS: dict[str, Draft] = {
    "small": _SMALL,
    "paper": _PAPER,
    "bursty": _BURSTY,
    "servers": _SERVERS,
}


class GangSettings(Settings):
    """The settings that `generate` explains, and what each may be."""

    jobs: PositiveCount
    gpus: PositiveCount
    servers: PositiveCount | None
    placement: str
    load: Positive
    arrivals: Literal["poisson", "bursty"]
    burst: Positive
    mix: Literal["gavel", "log-uniform", "exponential"]
    seconds: Annotated[Amounts, within(1, LARGEST_NUMBER)]
    widths: Annotated[tuple[PositiveCount, ...], BeforeValidator(listed)]
    weight: Wholes
    deadline_factor: Amounts | None
    users: PositiveCount


def generate(preset: str, seed: int, **settings: object) -> Instance:
    """Generate a random instance.

    Parameters
    ----------
    preset : str
        ``small``, ``paper``, ``bursty`` or ``servers``.
    seed : int
        Seed of the draws.
    **settings
        In place of the preset's: ``jobs``, ``gpus``, ``servers`` (over which the GPUs are spread
        as evenly as they can be; None for one pool), ``placement``, ``load``, ``arrivals``
        (``poisson`` or ``bursty``), ``burst`` (deviation of the logarithm of the gaps' factor),
        ``mix`` (of durations, as above), ``seconds``, ``widths`` (GPUs a job, drawn from the
        list), ``weight``, ``deadline_factor`` (deadline = submit + factor x duration; None for
        none), ``users``.
    """
    s = GangSettings.of("gang", PRESETS, preset, settings)
    sizes = [_size(s, Draws(seed, "size", str(number))) for number in range(s.jobs)]
    work = sum(duration * gpus for duration, gpus in sizes) / len(sizes)
    submits = _submits(s, Draws(seed, "arrivals"), work / (s.load * s.gpus))
    jobs = []
    for number, ((duration, gpus), submit) in enumerate(zip(sizes, submits, strict=True)):
        draws = Draws(seed, "job", str(number))
        job = {"name": f"j{number + 1}", "submit": submit, "duration": duration, "gpus": gpus}
        job["weight"] = draws.integer(*s.weight)
        if s.deadline_factor is not None:
            factor = draws.uniform(*s.deadline_factor)
            job["deadline"] = submit + max(duration, int(factor * duration))
        job["user"] = f"u{draws.integer(1, s.users)}"
        jobs.append(job)
    origin = {"generator": "gang", "preset": preset, "seed": seed, "settings": s.changed()}
    name = f"gang-{preset}-j{s.jobs}-s{seed}"
    cluster = _cluster(s.gpus, s.servers, s.placement)
    return GangInstance.parse(gang_data(name, jobs, **cluster, provenance=origin))


def from_trace(
    table: Any,
    *,
    jobs: int = 200,
    seed: int = 0,
    gpus: int = 64,
    servers: int | None = None,
    placement: str = POOL,
    slot_seconds: float = 1,
    clip: bool = False,
) -> Instance:
    """Make an instance from a cluster trace; nothing is drawn.

    A job keeps its submission, duration, GPUs and user, and of its deadlines the first. Names are
    the trace's own where they are unique, else ``part/job`` or, if that is not unique either, with
    the row's number. What is no whole number of slots is rounded up: a job waits for the slot after
    its submission, and holds its last slot to the end.

    Parameters
    ----------
    table : TraceTable
        Jobs of a trace; the first `jobs` of them are used.
    jobs : int
        How many jobs.
    seed : int
        Not used.
    gpus : int
        GPUs of the cluster.
    servers : int, optional
        Over how many servers they are spread, as evenly as they can be; None for one pool.
    placement : str
        ``pool`` or ``consolidated``.
    slot_seconds : float
        Length of a slot.
    clip : bool
        Whether a job that asks for more than all GPUs gets all instead of being refused.

    Raises
    ------
    InputError
        If the trace has too few jobs, or a job breaks a rule.
    """
    if len(table) < jobs or jobs < 1:
        raise InputError("jobs", jobs, f"must be at least 1; the trace has {len(table)} jobs")
    check_positive("slot_seconds", slot_seconds)
    check_count("gpus", gpus)
    rows = table.rows.head(jobs)
    first = float(rows["submit_seconds"].min())
    names = job_names(rows)
    slot, late, longer = exact(slot_seconds), 0, 0
    records: list[Draft] = []
    for name, row in zip(names, rows.itertuples(index=False), strict=True):
        submit = _to_microsecond(row.submit_seconds - first)
        duration = _to_microsecond(row.duration_seconds)
        late += submit % slot > 0
        longer += duration % slot > 0
        record: Draft = {
            "name": name,
            "submit": _plain(ceil(submit / slot) * slot),
            "duration": _plain(ceil(duration / slot) * slot),
            "gpus": min(int(row.gpus), gpus) if clip else int(row.gpus),
        }
        if len(row.deadlines_seconds):
            record["deadline"] = _plain(submit + _to_microsecond(row.deadlines_seconds[0]))
        if row.user:
            record["user"] = row.user
        records.append(record)
    made_up = [_cluster_words(gpus, servers)]
    if late or longer:
        made_up.append(
            f"times rounded up to slots of {slot_seconds:g} s: submissions of {late} jobs, "
            f"durations of {longer}"
        )
    if narrower := int((rows["gpus"] > gpus).sum()):
        made_up.append(f"{narrower} jobs cut to {gpus} GPUs")
    origin = {
        "generator": "gang", "seed": seed, **table.provenance(),
        "took": ["submission, duration, GPUs, user and first deadline of each job"],
        "made_up": made_up,
        "trace_rows": trace_rows(rows, names),
    }  # fmt: skip
    part = f"-{table.selected_part}" if table.selected_part else ""
    name = f"gang-{table.format}{part}-j{jobs}-g{gpus}"
    cluster = _cluster(gpus, servers, placement)
    data = gang_data(name, records, slot_seconds=slot_seconds, **cluster, provenance=origin)
    return GangInstance.parse(data)


def _cluster(gpus: int, servers: int | None, placement: str) -> Draft:
    if servers is None:
        return {"gpus": gpus, "placement": placement}
    sizes = _server_sizes(gpus, servers)
    shapes = [{"name": f"s{number}", "gpus": size} for number, size in enumerate(sizes, start=1)]
    return {"servers": shapes, "placement": placement}


def _server_sizes(gpus: int, servers: int) -> list[int]:
    """GPUs of each server, the larger ones first; no two differ by more than one."""
    check_count("servers", servers)
    if servers > gpus:
        raise InputError("set.servers", servers, f"must be at most the number of GPUs, {gpus}")
    size, more = divmod(gpus, servers)
    return [size + (number < more) for number in range(servers)]


def _cluster_words(gpus: int, servers: int | None) -> str:
    if servers is None:
        return f"a cluster of {gpus} GPUs"
    sizes = sorted(set(_server_sizes(gpus, servers)))
    return f"a cluster of {gpus} GPUs: {servers} servers of {' or '.join(map(str, sizes))}"


def _size(s: GangSettings, draws: Draws) -> tuple[int, int]:
    gpus = draws.choice(s.widths)
    low, high = s.seconds
    if s.mix == "gavel":
        ends = (1.5, 3.0) if draws.chance(0.8) else (3.0, 4.0)
        seconds = 60.0 * rounded(10.0 ** draws.uniform(*ends))
    elif s.mix == "log-uniform":
        seconds = draws.log_uniform(low, high)
    else:
        seconds = draws.exponential((low + high) / 2)
    return max(1, round(seconds)), gpus


def _submits(s: GangSettings, draws: Draws, gap: float) -> list[int]:
    """Sorted submissions from second 0 on, with the mean gap."""
    now, submits = 0.0, []
    for _ in range(s.jobs):
        submits.append(int(now))
        pause = gap * draws.exponential(1.0)
        if s.arrivals == "bursty":  # times a log-normal of mean 1
            pause *= draws.log_normal(-0.5 * s.burst**2, s.burst)
        now += pause
    return submits


def _to_microsecond(value: float) -> Fraction:
    """A time of a table, whose submissions are differences of floats, as it was meant."""
    return round(Fraction(value) / MICROSECOND) * MICROSECOND


def _plain(value: Fraction) -> float:
    return int(value) if value.denominator == 1 else float(value)


def _small_suite() -> list[Instance]:
    kinds: dict[str, Draft] = {
        "": {},
        "-bursty": {"arrivals": "bursty"},
        "-servers": {"servers": 2, "placement": "consolidated"},
    }
    return [
        made.with_fields(name=made.name + kind)
        for kind, chosen in kinds.items()
        for seed in range(2)
        for made in [generate("small", seed, **chosen)]
    ]


def _paper_suite() -> list[Instance]:
    return [generate(preset, seed) for preset in ("paper", "bursty") for seed in range(3)]


SUITES: dict[str, Suite] = {"small": _small_suite, "paper": _paper_suite}

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
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import StrictBool

from hindsched.errors import InputError
from hindsched.instances.base import LARGEST_NUMBER, Instance, Positive, PositiveCount
from hindsched.instances.decimals import exactly
from hindsched.instances.gang.instance import POOL, GangInstance, gang_data
from hindsched.instances.generators import ranges
from hindsched.instances.generators.ranges import Draws, rounded
from hindsched.instances.generators.registry import FamilyGenerator, suites_of
from hindsched.json_types import Draft

if TYPE_CHECKING:
    from hindsched.instances.traces.table import TraceTable

MICROSECOND = Fraction(1, 10**6)
"""Resolution of the times in a trace table, whose submissions are differences of floats."""


class GangSettings(ranges.Settings):
    """Settings of `generate`; the defaults are the preset ``paper``."""

    jobs: PositiveCount = 200
    gpus: PositiveCount = 64
    servers: PositiveCount | None = None  # the GPUs are spread evenly; None for a pool
    placement: str = POOL
    load: Positive = 0.9
    arrivals: Literal["poisson", "bursty"] = "poisson"
    burst: Positive = 1.0  # deviation of the logarithm of the gaps' factor
    mix: Literal["gavel", "log-uniform", "exponential"] = "gavel"
    seconds: Annotated[ranges.Amounts, ranges.within(1, LARGEST_NUMBER)] = (600, 200_000)
    """Ends of the durations; of those that are exponential, around their mean."""
    widths: ranges.Choices = (*[1] * 14, 2, 2, 4, 4, 4, 8)
    """Drawn from; by default as in the multi-GPU traces of Gavel."""
    weight: ranges.Wholes = (1, 1)
    deadline_factor: ranges.Amounts | None = None  # of the duration
    users: PositiveCount = 10


PRESETS: dict[str, Draft] = {
    "small": GangSettings.values(
        jobs=6, gpus=4, mix="log-uniform", seconds=(1, 8), widths=[1, 1, 2, 3], weight=(1, 3),
        deadline_factor=(1.0, 3.0), users=2,
    ),
    "paper": GangSettings.values(),
    "bursty": GangSettings.values(arrivals="bursty", mix="log-uniform"),
    "servers": GangSettings.values(servers=8, placement="consolidated"),
}  # fmt: skip


def generate(preset: str, seed: int, **settings: object) -> Instance:
    """Generate a random instance from a preset, a seed and settings of `GangSettings`."""
    s = GangSettings.of(PRESETS[preset], settings)
    sizes = [_size(s, Draws(seed, "size", str(number))) for number in range(s.jobs)]
    gap = sum(duration * gpus for duration, gpus in sizes) / len(sizes) / (s.load * s.gpus)
    now, arrivals, jobs = 0.0, Draws(seed, "arrivals"), []
    for number, (duration, gpus) in enumerate(sizes):
        draws, submit = Draws(seed, "job", str(number)), int(now)
        job = {"name": f"j{number + 1}", "submit": submit, "duration": duration, "gpus": gpus}
        job["weight"] = draws.integer(*s.weight)
        if s.deadline_factor is not None:
            factor = draws.uniform(*s.deadline_factor)
            job["deadline"] = submit + max(duration, int(factor * duration))
        job["user"] = f"u{draws.integer(1, s.users)}"
        jobs.append(job)
        pause = gap * arrivals.exponential(1.0)
        if s.arrivals == "bursty":  # times a log-normal of mean 1
            pause *= arrivals.log_normal(-0.5 * s.burst**2, s.burst)
        now += pause
    origin = {"generator": "gang", "preset": preset, "seed": seed, "settings": s.changed()}
    name, cluster = f"gang-{preset}-j{s.jobs}-s{seed}", _gang_cluster(s.gpus, s.servers)
    data = gang_data(name, jobs, **cluster, placement=s.placement, provenance=origin)
    return GangInstance.parse(data)


def _size(s: GangSettings, draws: Draws) -> tuple[int, int]:
    """Duration in seconds, and GPUs."""
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


def _gang_cluster(gpus: int, servers: int | None) -> Draft:
    """One pool, or servers, the larger ones first; no two differ by more than one GPU."""
    if servers is None:
        return {"gpus": gpus}
    if servers > gpus:
        raise InputError("set.servers", servers, f"must be at most the number of GPUs, {gpus}")
    size, more = divmod(gpus, servers)
    return {"servers": [{"name": f"s{h + 1}", "gpus": size + (h < more)} for h in range(servers)]}


class TraceSettings(ranges.RowSettings):
    """Settings of `from_trace`."""

    gpus: PositiveCount = 64
    servers: PositiveCount | None = None  # the GPUs are spread evenly; None for a pool
    placement: str = POOL
    slot_seconds: Positive = 1
    clip: StrictBool = False  # a job wider than all GPUs gets all instead of being refused


def from_trace(
    table: TraceTable, *, jobs: int = 200, seed: int = 0, **settings: object
) -> Instance:
    """Make an instance from a trace with the settings of `TraceSettings`; nothing is drawn.

    A job keeps its submission, duration, GPUs and user, and of its deadlines the first. What is no
    whole number of slots is rounded up: a job waits for the slot after its submission, and holds
    its last slot to the end.
    """
    s = TraceSettings.of({}, settings)
    rows, slot = ranges.take_rows(table, jobs, s), exactly(s.slot_seconds)
    records: list[Draft] = []
    changed = dict.fromkeys(("submissions_rounded", "durations_rounded", "jobs_cut"), 0)
    for number, row in enumerate(rows, start=1):
        submit, duration = _meant(row["waited"]), _meant(row["duration_seconds"])
        changed["submissions_rounded"] += submit % slot > 0
        changed["durations_rounded"] += duration % slot > 0
        changed["jobs_cut"] += row["gpus"] > s.gpus
        record: Draft = {
            "name": f"j{number}",
            "submit": _json_number(ceil(submit / slot) * slot),
            "duration": _json_number(ceil(duration / slot) * slot),
            "gpus": min(row["gpus"], s.gpus) if s.clip else row["gpus"],
        }
        if row["deadlines_seconds"]:
            record["deadline"] = _json_number(submit + _meant(row["deadlines_seconds"][0]))
        if row["user"]:
            record["user"] = row["user"]
        records.append(record)
    cluster = _gang_cluster(s.gpus, s.servers)
    part = f"-{table.selected_part}" if table.selected_part else ""
    name = f"gang-{table.format}{part}-j{jobs}-g{s.gpus}"
    data = gang_data(name, records, slot_seconds=s.slot_seconds, placement=s.placement, **cluster)
    return ranges.traced(GangInstance, data, rows, table, seed, s, **changed)


def _meant(value: float) -> Fraction:
    """A time of a table, whose submissions are differences of floats, as it was meant."""
    return round(Fraction(value) / MICROSECOND) * MICROSECOND


def _json_number(value: Fraction) -> float:
    return int(value) if value.denominator == 1 else float(value)


KINDS: dict[str, Draft] = {
    "": {},
    "-bursty": {"arrivals": "bursty"},
    "-servers": {"servers": 2, "placement": "consolidated"},
}
GENERATOR = FamilyGenerator(
    presets=PRESETS,
    generate=generate,
    from_trace=from_trace,
    trace_settings=TraceSettings,
    suites=suites_of(
        generate,
        small=[
            ("small", seed, chosen, kind) for kind, chosen in KINDS.items() for seed in range(2)
        ],
        paper=[(preset, seed, {}) for preset in ("paper", "bursty") for seed in range(3)],
    ),
)

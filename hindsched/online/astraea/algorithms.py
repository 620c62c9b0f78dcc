"""Every algorithm of astraea by name, and what Lemmas 1 and 3 and Theorem 1 say of an instance."""

from __future__ import annotations

import math

import numpy as np

from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.base import LinearUtility, PowerUtility
from hindsched.instances.modes import modes, ps_for
from hindsched.models.astraea.offline import spans
from hindsched.models.windows.sets import num_columns
from hindsched.online.astraea.baselines import Batchsche, GandivaFair, Hived
from hindsched.online.astraea.paper import Astraea, AstraeaLiteral, most_a_unit
from hindsched.online.baselines.infeasible_baselines import relaxing_baselines
from hindsched.online.engines.dual_price import DualPrice
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.protocol import Theorem, theorem_of
from hindsched.online.registry import Factory


class AstraeaDualPrice(DualPrice):
    """Best responses to the capacity duals of the relaxation over whole schedules.

    Parameters
    ----------
    iterations : int
        Simplex iterations a relaxation; see `DualPrice`.
    """

    over_schedules = True


class AstraeaReoptimise(Reoptimise):
    """`Reoptimise`, with plans over whole schedules where a step's program is large."""

    def num_columns(self, slot: int) -> int:
        """Columns of the jobs that have not begun."""
        known = self._rolling.instance
        assert isinstance(known, AstraeaInstance)
        open_jobs = [j for j, job in enumerate(known.jobs) if job.name not in self._locked]
        return num_columns(known, spans(known, open_jobs, must=False, now=slot))


ALGORITHMS: dict[str, Factory] = {
    "astraea": Astraea,
    "astraea-literal": AstraeaLiteral,
    "dual-price": AstraeaDualPrice,
    "reoptimise": AstraeaReoptimise,
    "batchsche": Batchsche,
    "gandiva-fair": GandivaFair,
    "hived": Hived,
    **relaxing_baselines(rigid=True),
}


LARGEST_LOG = 700.0  # beyond e^700 a ratio is no number any more; its logarithm is still given


def theorem(instance: AstraeaInstance) -> Theorem:
    """Theorem 1: an additive bound for linear utilities, a ratio for power utilities.

    The value is OPT - ALG for ``additive`` and OPT / ALG for ``ratio``, the inverse of the paper's;
    None where no theorem applies or the number overflows. ``lambda`` is Lemma 1's, where f is the
    utility of completing in the first slot; ``sigma`` Lemma 3's, with logarithms to base 2: then
    one admission raises the dual objective by at most sigma times its value, if the two conditions
    on revenue and share hold; ``batches`` L.
    """
    tables = {job.name: modes(instance, job) for job in instance.jobs}
    jobs = [job for job in instance.jobs if len(tables[job.name])]
    if not jobs:
        return theorem_of("ratio", None)
    theta_w, theta_p = (1.0 + most for most in most_a_unit((job, tables[job.name]) for job in jobs))
    sigma = 2.0 * (math.log2(theta_w) + math.log2(theta_p))
    rounds = _rounds([job.utility.value(1) for job in jobs], sigma)
    batches = _batches(instance, jobs)
    kind, log_value = _guarantee(jobs, rounds, batches)
    least_value, largest_share = _extremes(instance, jobs, 2**batches, (theta_w, theta_p))
    flat = max(map(_flatness, jobs))
    slots = rounds * 2 ** (batches + 1)
    assumed: list[tuple[str, bool, float | None]] = [
        ("utilities are all linear or all power (Theorem 1)",
         len({job.utility.kind for job in jobs}) == 1, None),
        ("slopes below 0 and intercepts above 0, or exponents above 0 (Theorem 1)", flat < 0, flat),
        ("utilities take the completion slot itself: origin absolute (Theorem 1)",
         instance.utility_origin == "absolute", None),
        ("every schedule earns 1 per worker-slot and PS-slot at least (theta - 1 >= 1)",
         least_value >= 1, least_value),
        ("a job takes at most 1 / log2 theta of a type's workers or PSs (Lemma 3)",
         largest_share <= 1, largest_share),
        ("lambda rounds of Lemma 1 are run (the algorithm's default is 2)",
         rounds <= 2, float(rounds)),
        ("the horizon is no limit: lambda 2^(L + 1) slots",
         slots <= instance.horizon, float(slots)),
    ]  # fmt: skip
    overflows = log_value is None or log_value > LARGEST_LOG
    return theorem_of(
        kind, None if log_value is None or overflows else math.exp(log_value), assumed,
        log10_value=None if log_value is None else log_value / math.log(10), sigma=sigma,
        theta_workers=theta_w, theta_ps=theta_p, batches=batches, **{"lambda": rounds},
    )  # fmt: skip


def _extremes(
    instance: AstraeaInstance, jobs: list[AstraeaJob], latest: int, thetas: tuple[float, float]
) -> tuple[float, float]:
    """What Lemma 3's increments need, at the worst of all jobs' schedules.

    The least revenue a worker-slot or PS-slot, at a completion in slot `latest` of a round, and the
    largest share of a type's workers or PSs that a job takes, times log2 theta.
    """
    least, largest = math.inf, 0.0
    totals = instance.worker_count.sum(axis=0), instance.ps_count.sum(axis=0)
    for job in jobs:
        table = modes(instance, job)
        table = table.take(table.duration <= latest)
        if not len(table):
            continue
        elsewhere = table.workers * (1 - table.one_server)
        ps = ps_for(elsewhere, instance.ps_ratio[table.worker_type, table.ps_type])
        ps = np.minimum(ps, instance.ps_count.max(axis=0)[table.ps_type])
        earned = job.utility.value(latest) / (np.maximum(table.workers, ps) * table.duration)
        least = min(least, float(earned.min()))
        for count, types, total, theta in zip(
            (table.workers, ps), (table.worker_type, table.ps_type), totals, thetas, strict=True
        ):
            largest = max(largest, float((count / total[types]).max()) * math.log2(theta))
    return least, largest


def _flatness(job: AstraeaJob) -> float:
    """Below 0 iff the utility is of Theorem 1's form: the slope, -intercept or -exponent."""
    if isinstance(job.utility, LinearUtility):
        return max(float(job.utility.slope), -float(job.utility.intercept))
    return -float(job.utility.exponent)


def _rounds(first: list[float], sigma: float) -> int:
    """Lemma 1's lambda."""
    positive = [value for value in first if value > 0]
    if not positive:
        return 1
    shrink = math.log(sigma) - math.log(sigma - 1.0)
    return math.floor((math.log(math.fsum(positive)) - math.log(min(positive))) / shrink) + 1


def _batches(instance: AstraeaInstance, jobs: list[AstraeaJob]) -> int:
    """L: 2^L covers the last arrival and every job's shortest duration."""
    longest = max(int(modes(instance, job).duration.min()) for job in jobs)
    latest = max(job.arrival for job in jobs)
    return max(1, math.ceil(math.log2(max(longest, latest + 1))))


def _guarantee(jobs: list[AstraeaJob], rounds: int, batches: int) -> tuple[str, float | None]:
    """Kind and natural logarithm of Theorem 1's value; None where it does not apply."""
    linear = [job.utility for job in jobs if isinstance(job.utility, LinearUtility)]
    power = [job.utility for job in jobs if isinstance(job.utility, PowerUtility)]
    if len(linear) == len(jobs):
        slopes = [float(utility.slope) for utility in linear]
        value = len(jobs) * (
            (2**batches - 1) * max(slopes)
            - (2 ** (batches + 1) - 1) * (2 * rounds - 1) * min(slopes)
        )
        return "additive", math.log(value) if value > 0 else None
    if len(power) == len(jobs):
        exponents = [float(utility.exponent) for utility in power]
        scales = [float(utility.scale) for utility in power]
        low, high = min(exponents), max(exponents)
        log_value = high * math.log(4 * rounds) + (high - low) * (batches - 2) * math.log(2)
        log_value += low * math.log(max(scales)) - high * math.log(min(scales))
        return "ratio", log_value
    return "ratio", None

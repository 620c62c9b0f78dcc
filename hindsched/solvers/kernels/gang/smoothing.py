"""The Lagrangian bound of rigid jobs, smoothed: soft minima over the breaks of the starts.

A job's best response is a minimum over its starts at breaks (see `responses`); in its place stands
``-mu log sum exp(-value / mu)``, smooth in the prices and at most ``mu log(breaks)`` below. Its
gradient is the expected use of a start drawn with weights ``exp(-value / mu)``: quasi-Newton
methods climb it in a few hundred evaluations where subgradients need tens of thousands, and the
expected starts say in which order jobs run.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.gang.responses import (
    Blocks,
    add_use,
    finish_use,
    integral,
    interval_of,
    paid,
)

NEGLIGIBLE = 12.0
"""Starts that are so many mu dearer than the best have no weight."""


@njit(cache=True)
def soft_responses(
    cut: Ints, price: Floats, blocks: Blocks, mu: float
) -> tuple[float, float, Floats, Floats]:
    """Smoothed responses of all jobs.

    Returns
    -------
    soft, hard : float
        Sums of the soft and of the true minima.
    use : ndarray, shape (intervals,)
        Expected GPU-slots held by interval.
    expected : ndarray, shape (jobs,)
        Expected start; the submission of a job that would rather not run.
    """
    jobs, last = blocks.submit.size, price.size
    total = integral(cut, price)
    use, change = np.zeros(last), np.zeros(last + 1)
    expected = np.empty(jobs)
    starts = np.empty(2 * last + 4, dtype=np.int64)
    values = np.empty(2 * last + 4)
    soft = hard = 0.0
    for job in range(jobs):
        submit, duration = blocks.submit[job], blocks.duration[job]
        gpus, slope = blocks.gpus[job], blocks.slope[job]
        latest = blocks.latest[job] - duration
        start, count = submit, 0
        best = skip = blocks.skip[job]
        here, there = interval_of(cut, start), interval_of(cut, start + duration)
        while start <= latest:
            own = slope * (start + duration - submit)
            if own >= best + NEGLIGIBLE * mu:
                break
            high = paid(cut, price, total, there, start + duration)
            found = own + gpus * (high - paid(cut, price, total, here, start))
            starts[count] = start
            values[count] = found
            count += 1
            best = min(best, found)
            if here >= last:
                break
            step = cut[here + 1] - start
            if there < last:
                step = min(step, cut[there + 1] - duration - start)
            if start < latest:
                step = min(step, latest - start)
            start += step
            if start == cut[here + 1]:
                here += 1
            if there < last and start + duration == cut[there + 1]:
                there += 1
        mass = np.exp((best - skip) / mu) if skip < np.inf else 0.0
        for index in range(count):
            far = (values[index] - best) / mu
            values[index] = np.exp(-far) if far < NEGLIGIBLE else 0.0
            mass += values[index]
        soft += best - mu * np.log(mass)
        hard += best
        mean = seen = 0.0
        for index in range(count):
            if values[index] > 0.0:
                share = values[index] / mass
                mean += share * (starts[index] - submit)
                seen += share
                end = starts[index] + duration
                add_use(cut, use, change, starts[index], end, share * gpus)
        expected[job] = submit + (mean / seen if seen > 0.0 else 0.0)
    finish_use(cut, use, change)
    return soft, hard, use, expected

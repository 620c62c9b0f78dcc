"""Limits of time and of memory.

Of time: whoever works long looks at the clock (`check_time`) and ends when the `time_limit` around
it is over. Of memory: a refusal of what would not fit before it is built.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from hindsched.errors import HindschedError, InputError

GB = 1 << 30
SLOTS_WITHOUT_LIMIT = 1_000_000  # played one by one where no limit of time is given
MEMORY_WITHOUT_LIMIT = 2 * GB  # that one table may need where no limit of time is given
SURELY_THERE = 1 << 26  # bytes that fit into any memory


class OutOfTime(HindschedError):
    """The time limit around the code that asked is over."""


_limit: ContextVar[tuple[float, float] | None] = ContextVar("limit", default=None)
"""When the innermost `time_limit` ends, by ``time.monotonic``, and its seconds; None without."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Let `time_left` and `check_time` inside know when the time is over.

    None is no limit, infinity "as long as it takes"; a limit around this one holds too.
    """
    outer = _limit.get()
    inner = None if seconds is None else (time.monotonic() + seconds, seconds)
    token = _limit.set(min((each for each in (inner, outer) if each is not None), default=None))
    try:
        yield
    finally:
        _limit.reset(token)


def time_left(otherwise: float) -> float:
    """Seconds until the `time_limit` around this code ends; `otherwise` if that is less."""
    limit = _limit.get()
    return otherwise if limit is None else max(0.0, min(otherwise, limit[0] - time.monotonic()))


def check_time() -> None:
    """Raise `OutOfTime` if the `time_limit` around this code is over."""
    limit = _limit.get()
    if limit is not None and time.monotonic() > limit[0]:
        raise OutOfTime(f"stopped after {limit[1]:g} s (`time_limit`)")


@contextmanager
def uncounted() -> Iterator[None]:
    """Let what runs inside count against no limit, as kernels compile once an installation."""
    began, limit = time.monotonic(), _limit.get()
    token = _limit.set(None)
    try:
        yield
    finally:
        _limit.reset(token)
        if limit is not None:
            _limit.set((limit[0] + time.monotonic() - began, limit[1]))


def is_unlimited() -> bool:
    """Whether no limit of time is in force."""
    return _limit.get() is None


def check_count(what: str, count: int, unit: str, most: int | None = None) -> None:
    """Refuse to go through very many things one by one where there is no limit."""
    most = SLOTS_WITHOUT_LIMIT if most is None else most
    if count > most and is_unlimited():
        rule = (
            f"must be at most {most} where no limit is given: take longer slots"
            " or fewer jobs, or say by `time_limit` what it may take"
        )
        raise InputError(what, f"{count} {unit}", rule)


def check_memory(what: str, needed: float) -> None:
    """Refuse to build what the free memory cannot hold, or much of it where there is no limit.

    Few bytes are not looked at, so this may be called often.
    """
    if needed <= SURELY_THERE:
        return
    free, less = free_memory(), "take longer slots or fewer jobs, or"
    if needed > free:
        rule, most = f"{less} use a machine that has more", f"the {free / GB:.3g} GB that are left"
    elif needed > MEMORY_WITHOUT_LIMIT and is_unlimited():
        rule = f"{less} say by `time_limit` what it may take"
        most = f"{MEMORY_WITHOUT_LIMIT / GB:.3g} GB where no limit is given"
    else:
        return
    raise InputError(what, f"about {needed / GB:.3g} GB", f"must fit into {most}: {rule}")


def free_memory() -> int:
    """Bytes that this process may still use: the machine's free ones, or its control group's."""
    amounts = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError, IndexError, ValueError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        amounts.append(1024 * int(text.split("MemAvailable:")[1].split()[0]))
    with suppress(OSError, ValueError):  # no such control group, or "max"
        most, used = (
            int(Path(f"/sys/fs/cgroup/memory.{name}").read_text(encoding="ascii"))
            for name in ("max", "current")
        )
        amounts.append(most - used)
    return max(0, min(amounts))

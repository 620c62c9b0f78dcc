"""Limits of memory: the system's own, and refusals of what would not fit before it is built."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hindsched.errors import InputError
from hindsched.limits import NoTimeLeft, chosen, nobody_asked, time_left

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LEAST_MEMORY = 512 << 20
"""Less than this is a mistake: the libraries need about as much, and those of linear algebra ask
for memory for ever where they get none."""
SHARE_OF_FREE_MEMORY = 0.8
"""What a process may take of the free memory where nothing else is asked for."""
UNASKED_MEMORY = 2 << 30
"""What one thing may need that is built without any limit of time or memory."""
SURELY_THERE = 1 << 26
"""Bytes that take no time and fit into any memory."""
FASTEST_BUILDING = 1 << 29
"""Bytes a second that a machine at most lays out, fills and goes through, of anything."""


class TooLarge(InputError):
    """Something is not built, because it would not fit into the memory that is there."""


@contextmanager
def memory_limit(most_bytes: int | None = None) -> Iterator[int | None]:
    """Let allocations beyond a limit fail with `MemoryError` inside, where the system can do so.

    Parameters
    ----------
    most_bytes : int, optional
        Bytes that the process may hold, what it holds already included; if None,
        `SHARE_OF_FREE_MEMORY` of the free memory on top of what it holds.

    Yields
    ------
    int or None
        The limit; None where the system has none.
    """
    is_chosen = most_bytes is not None
    try:
        import resource

        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        holds, data = (
            1024 * int(text.split(f"{key}:")[1].split()[0]) for key in ("VmRSS", "VmData")
        )
    except (ImportError, OSError, ValueError, IndexError):  # no Linux
        yield most_bytes
        return
    if most_bytes is None:
        most_bytes = holds + int(SHARE_OF_FREE_MEMORY * free_memory())
    before, hardest = resource.getrlimit(resource.RLIMIT_DATA)
    others = [most for most in (before, hardest) if most != resource.RLIM_INFINITY]
    allowed = min([data + max(0, most_bytes - holds), *others])
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hardest))
    try:
        with chosen(is_chosen):
            yield most_bytes
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hardest))


def free_memory() -> int:
    """Bytes that this process may still use: the machine's free ones within its own limits."""
    found = [1 << 40]
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        found.append(int(text.split("MemAvailable:")[1].split()[0]) * 1024)
    except (OSError, IndexError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    try:
        most = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii")
        found.append(int(most) - int(used))
    except (OSError, ValueError):  # no such control group, or "max"
        pass
    try:
        import resource

        held = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
        if limit != resource.RLIM_INFINITY:
            found.append(limit - held * resource.getpagesize())
    except (ImportError, OSError, ValueError):
        pass
    return max(0, min(found))


def check_memory(what: str, needed: float) -> None:
    """Refuse to build what the free memory, or the limit in force, cannot hold.

    Without any limit of time or memory more than `UNASKED_MEMORY` is refused too: what needs so
    much may also take hours. Inside a `time_limit` it ends at once what could only overrun it.

    Parameters
    ----------
    what : str
        What would be built, for example ``"prices of 3,000,000 rows"``.
    needed : float
        Bytes that it would need; little is not looked at, so this may be called often.

    Raises
    ------
    TooLarge
        One line that says what it needs, what there is, and how to raise the limit.
    NoTimeLeft
        The same line, where it is the time that does not suffice.
    """
    if needed <= SURELY_THERE:
        return
    less = "take longer slots or fewer jobs, or"
    free, left = free_memory(), time_left(math.inf)
    about = f"about {in_words(needed)}"
    if needed > free:
        raise TooLarge(what, about, (
            f"must fit into the memory that is left, {in_words(free)}: {less} use a machine"
            " that has more"
        ))  # fmt: skip
    if needed > UNASKED_MEMORY and nobody_asked():
        raise TooLarge(what, about, (
            f"must fit into {in_words(UNASKED_MEMORY)} where no limit is given: {less} say by"
            " --time-limit what it may take"
        ))  # fmt: skip
    if needed > SURELY_THERE + FASTEST_BUILDING * left:
        raise NoTimeLeft(
            f"{what}: {about}: must fit into the {left:.2g} s that are left, in which nobody"
            f" builds it: {less} raise --time-limit"
        )


def parse_bytes(text: str | int | None, where: str = "memory-limit") -> int | None:
    """Read a number of bytes: ``2G``, ``800M``, ``1.5GB``, or a plain number of bytes.

    Examples
    --------
    >>> from hindsched.memory import parse_bytes
    >>> parse_bytes("1.5G"), parse_bytes("800M")
    (1610612736, 838860800)
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)\s*([KMGT]?)(?:i?B)?", str(text).strip(), re.I)
    number = 0 if match is None else int(float(match[1]) * UNITS[match[2].upper()])
    if number < LEAST_MEMORY:
        rule = f"must be at least {in_words(LEAST_MEMORY)}, as in 2G or 800M"
        raise InputError(where, text, rule)
    return number


def in_words(number: float) -> str:
    """Bytes for people.

    Examples
    --------
    >>> from hindsched.memory import in_words
    >>> in_words(7.2e9)
    '6.71 GB'
    """
    for unit, size in reversed(list(UNITS.items())):
        if unit and number >= size:
            return f"{number / size:.3g} {unit}B"
    return f"{number:.0f} bytes"

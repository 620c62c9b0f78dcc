"""The processes that track what pools share, which may be killed like any other.

Python has one, loky another. Each is told the name of every semaphore that is made and of every one
that is given back; when all processes have ended it removes what is left. One that is killed is
started again by whoever next has something to tell it.
"""

from __future__ import annotations

import os
from functools import cache
from multiprocessing import resource_tracker

from hindsched.solvers.door.interrupt import without_interrupts

QUIET = "ignore:resource_tracker:UserWarning"
"""A killed worker cannot give back Pyomo's semaphore; Python cleans up, but would say so."""


def start_trackers() -> None:
    """Start Python's tracker, which the workers use too, with `QUIET`; let loky's be killed."""
    given = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = f"{given},{QUIET}" if given else QUIET
    try:
        with without_interrupts():
            resource_tracker.ensure_running()
    finally:
        if given is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = given
    _introduce_names()


@cache
def _introduce_names() -> None:
    """Tell a loky tracker that was started again of a name before it is given back.

    It knows only names that it was told itself, and prints a traceback for each other one.
    """
    from joblib.externals.loky.backend import resource_tracker as loky

    register, unregister = loky.register, loky.unregister
    told: dict[tuple[str, str], int | None] = {}

    def tracker() -> int | None:
        process: int | None = loky._resource_tracker._pid
        return process

    def tell(name: str, kind: str) -> None:
        register(name, kind)
        told[name, kind] = tracker()

    def give_back(name: str, kind: str) -> None:
        loky.ensure_running()
        if told.pop((name, kind), None) != tracker():
            register(name, kind)
        unregister(name, kind)

    loky.register, loky.unregister = tell, give_back

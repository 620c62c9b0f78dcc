"""What ends a solve of HiGHS before it would: an event, the package's clock, enough knowledge."""

from __future__ import annotations

import math
from threading import Event
from typing import Any

import highspy

from hindsched.solvers.door.work import is_counted, now

_KIND = highspy.cb.HighsCallbackType
_ASKS = {
    int(kind)
    for kind in (
        _KIND.kCallbackSimplexInterrupt,
        _KIND.kCallbackIpmInterrupt,
        _KIND.kCallbackMipInterrupt,
    )
}
_OF_MIP = int(_KIND.kCallbackMipInterrupt)


class Stop:
    """Tells HiGHS whether to go on.

    HiGHS asks at every pivot, and a subscription of highspy's takes twice as long as this answer.

    Parameters
    ----------
    interrupted : Event
        Ends a solve.

    Attributes
    ----------
    enough : tuple of float, optional
        Ends a mixed-integer solve that minimises once its bound is more than the first, or it has a
        point of at most the second.
    """

    def __init__(self, interrupted: Event) -> None:
        self._interrupted, self._deadline = interrupted, math.inf
        self.enough: tuple[float, float] | None = None

    def after(self, seconds: float | None) -> None:
        """End solves so many seconds from now; where work is counted no clock ends any."""
        late = math.inf if seconds is None or is_counted() else now() + max(seconds, 0.0)
        self._deadline = late

    def _knows_enough(self, told: Any) -> bool:
        if self.enough is None:
            return False
        above, point = self.enough
        return bool(told.mip_dual_bound > above or told.mip_primal_bound <= point)

    def listen(self, highs: highspy.Highs) -> None:
        """Let HiGHS ask, whatever algorithm it runs; what others subscribe to is passed on."""

        def answer(kind: int, message: str, told: Any, reply: Any, owner: Any) -> None:
            if kind in _ASKS:
                # False is said too: HiGHS keeps what it was told for the next run
                reply.user_interrupt = (
                    self._interrupted.is_set()
                    or now() > self._deadline
                    or (kind == _OF_MIP and self._knows_enough(told))
                )
            else:
                owner.callbacks[kind].fire(kind, message, told, reply)

        # HiGHS holds `answer`, which must not hold HiGHS, where no collector would see the circle.
        highs.setCallback(answer, highs)
        for number, known in enumerate(highs.callbacks):
            if number in _ASKS or known.callbacks:
                highs.startCallback(known.callback_type)

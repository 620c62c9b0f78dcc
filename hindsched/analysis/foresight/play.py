"""Pure policies of a game, played: the schedule of each future, from the states' decisions."""

from __future__ import annotations

from collections.abc import Callable

from hindsched.analysis.foresight.states import StateGame
from hindsched.instances.base import Instance
from hindsched.kernel.games import State
from hindsched.kernel.rules import Held
from hindsched.solutions.base import Assignment, Solution, build_solution


def held_more(before: Held, after: Held) -> Held:
    """What is held besides."""
    old = dict(before)
    sums = ((last, tuple(a - b for a, b in zip(use, old.get(last, (0,) * len(use)), strict=True)))
            for last, use in after)  # fmt: skip
    return tuple((last, use) for last, use in sums if any(use))


def schedule(
    states: StateGame, instance: Instance, s: int, choose: Callable[[State], int], formulation: str
) -> Solution:
    """What a pure policy does in a future."""
    game, rows = states.game, dict[str, list[Assignment]]()
    waiting = list(zip(instance.jobs, game.told[s], strict=True))
    for before, after in states.path(s, choose):
        kind = next(k for k in before.waiting if before.waiting.count(k) > after.waiting.count(k))
        at = next(n for n, (_, (reveal, _, k)) in enumerate(waiting)
                  if k == kind and reveal <= before.slot)  # fmt: skip
        job, _ = waiting.pop(at)
        if held := held_more(before.held, after.held):
            rows[job.name] = [dict(row) for row in game.rules.rows(before.slot, kind, held)]
    return build_solution(instance, rows, formulation)

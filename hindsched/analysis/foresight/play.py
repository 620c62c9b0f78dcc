"""Policies of a game played: rows of a solution for each decision, and an online algorithm.

The best randomised policy of a game is one that any simulator runs: it draws a move in every state,
by the flows of the linear program, and knows no more than what has been told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hindsched.analysis.foresight.states import Moves, StateGame
from hindsched.instances.base import Instance, JobRecord
from hindsched.kernel.games import Game, State, frozen
from hindsched.kernel.rules import Held
from hindsched.online.protocol import NOTHING, Decision, Environment, OnlineAlgorithm, draws
from hindsched.solutions.base import Assignment, Solution, build_solution


def held_more(before: Held, after: Held) -> Held:
    """What is held besides."""
    old = dict(before)
    sums = ((last, tuple(a - b for a, b in zip(use, old.get(last, (0,) * len(use)), strict=True)))
            for last, use in after)  # fmt: skip
    return tuple((last, use) for last, use in sums if any(use))


def transition_rows(game: Game, kind: int, before: State, after: State) -> list[Assignment]:
    """Rows of the job of a kind that is decided between two states; none if it stays out."""
    held = held_more(before.held, after.held)
    return [dict(row) for row in game.rules.rows(before.slot, kind, held)] if held else []


def decided_kind(before: State, after: State) -> int:
    """The kind of the job that is decided between two states."""
    return next(k for k in before.waiting if before.waiting.count(k) > after.waiting.count(k))


def schedule(
    states: StateGame, instance: Instance, s: int, choose: Callable[[State], int], formulation: str
) -> Solution:
    """What a pure policy does in a future."""
    game, rows = states.game, dict[str, list[Assignment]]()
    waiting = list(zip(instance.jobs, game.told[s], strict=True))
    for before, after in states.path(s, choose):
        kind = decided_kind(before, after)
        at = next(n for n, (_, (told, _, k)) in enumerate(waiting)
                  if k == kind and told <= before.slot)  # fmt: skip
        job, _ = waiting.pop(at)
        if made := transition_rows(game, kind, before, after):
            rows[job.name] = made
    return build_solution(instance, rows, formulation)


class GamePolicy(OnlineAlgorithm):
    """A policy of a game as an online algorithm: it draws a move in every state."""

    randomised = True

    def __init__(self, states: StateGame, moves: Moves) -> None:
        self.states, self.moves = states, moves

    def start(self, environment: Environment) -> None:
        """Begin a run."""
        self.cluster, self.seed = environment.cluster, environment.seed
        self.open: list[State] = self.states.graph[self.states.game.root()][0][1]
        self.jobs: list[JobRecord] = []
        self.waiting: list[tuple[JobRecord, int]] = []

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Follow what is told, and draw moves up to the next slot that matters."""
        game, rows = self.states.game, dict[str, Any]()
        self.jobs += arrivals
        if not self.open or self.open[0].slot > slot:
            return NOTHING
        known = self.cluster.with_fields(jobs=tuple(self.jobs)).exact.data["jobs"]
        told = [game.records[frozen(job)] for job in known]
        state = next(
            state for state in self.open
            if [r for at, r, _ in game.told[state.futures[0]] if at <= slot] == told
        )  # fmt: skip
        kinds = {record: kind for _, record, kind in game.told[state.futures[0]]}
        fresh = zip(self.jobs, told, strict=True)
        self.waiting += [(job, kinds[r]) for job, r in list(fresh)[-len(arrivals) or len(told) :]]
        while True:
            moves = self.states.choices(self.moves, state)
            random = draws(self.seed, str(state.slot), str(len(state.waiting)))
            at, _ = moves[int(random.choice(len(moves), p=[share for _, share in moves]))]
            after = self.states.graph[state][at][1]
            if not after or after[0].slot > slot:
                self.open = after
                return Decision(assignments=rows)
            kind = decided_kind(state, after[0])
            place = next(n for n, (_, own) in enumerate(self.waiting) if own == kind)
            job, _ = self.waiting.pop(place)
            if made := transition_rows(game, kind, state, after[0]):
                rows[job.name] = made
            state = after[0]

    def wake_up(self) -> int | None:
        """The next slot that matters."""
        return self.open[0].slot if self.open else None

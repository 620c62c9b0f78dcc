"""The value of a game of a few futures: a linear program over its states.

Policies are flows on the states of `kernel.games`. Nature chooses whatever a policy does, so the
flow of a move enters every state that may follow. The value of a future is the sum of flow times
payoff over the states that may hold it; the best guarantee of a randomised policy is then a program
without integers, whose duals weigh the futures (Yao). Where one future alone is left, nothing is
unknown: the state has the value of the best schedule from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from hindsched.errors import SolveFailed
from hindsched.kernel.games import STATES, Game, State, fronts
from hindsched.limits import time_left

Moves = Mapping[State, Sequence[tuple[int, float]]]
"""What a policy does in a state: moves by place, and how likely they are."""


@dataclass(frozen=True)
class PolicyValue:
    """A policy, and its guarantee: a share of hindsight, or a factor of it."""

    value: float
    weights: tuple[float, ...]  # of the futures' values: with these nobody has more
    moves: Moves


class StateGame:
    """The states that a policy may reach, `most` at most, and the best that it can do there."""

    def __init__(self, game: Game, up: bool, most: int = STATES) -> None:
        self.game, self.up, self.graph = game, up, game.graph(most)
        self.scale, self.size = game.rules.scale, len(game.told)

    def best(self, weights: Sequence[float]) -> tuple[dict[State, float], dict[State, int]]:
        """Value to come of every state for weights of the futures, and the best move there."""
        values, chosen, pick = dict[State, float](), dict[State, int](), max if self.up else min
        for state in reversed(list(self.graph)):
            weight = sum(weights[s] for s in state.futures)
            if not weight:
                values[state] = 0.0
                continue
            ends = [weight * pays / self.scale + sum(map(values.__getitem__, after))
                    for pays, after in self.graph[state]]  # fmt: skip
            values[state] = pick(ends)
            chosen[state] = ends.index(values[state])
        return values, chosen

    def alone(self, s: int) -> tuple[float, dict[State, int]]:
        """The optimum of a future, and what who sees it does."""
        values, chosen = self.best([float(other == s) for other in range(self.size)])
        return values[self.game.root()], chosen

    @cached_property
    def known(self) -> tuple[dict[State, float], dict[State, int]]:
        """`best` of the states where one future is left."""
        values, chosen = self.best([1.0] * self.size)
        kept = [state for state in self.graph if len(state.futures) == 1]
        return {state: values[state] for state in kept}, {state: chosen[state] for state in kept}

    def deterministic(self, optima: Sequence[float], limit: float = inf) -> float:
        """The best guarantee of a pure policy; `limit` where, minimising, none is below it."""
        ends = [limit * value * self.scale for value in optima]
        inner, outer = (min, max) if self.up else (max, min)
        return outer(
            (inner(v / self.scale / best for v, best in zip(values, optima, strict=True) if best)
             for values in fronts(self.game, self.graph, ends, self.up)),
            default=limit,
        )  # fmt: skip

    def randomised(self, optima: Sequence[float]) -> PolicyValue:
        """The best guarantee of any policy, and the policy."""
        root = self.game.root()
        open_states = [s for s in self.graph if len(s.futures) > 1 or s == root]
        nodes = {state: n for n, state in enumerate(open_states)}
        sign, tails = -1.0 if self.up else 1.0, self.known[0]
        flow, value, edges = _Cells(), _Cells(), list[tuple[State, int]]()
        for state, node in nodes.items():
            for at, (pays, after) in enumerate(self.graph[state]):
                flow.add(node, len(edges), 1.0)
                payments = dict.fromkeys(state.futures, pays / self.scale)
                for child in after:
                    if child in nodes:
                        flow.add(nodes[child], len(edges), -1.0)
                    else:
                        payments[child.futures[0]] += tails[child]
                for s, paid in payments.items():
                    value.add(s, len(edges), sign * paid)
                edges.append((state, at))
        for s, best in enumerate(optima):
            value.add(s, len(edges), -sign * best)
        size = len(edges) + 1
        right, cost = np.zeros(len(nodes)), np.zeros(size)
        right[nodes[root]], cost[-1] = 1.0, sign
        solved = cast("Any", linprog)(
            cost, value.matrix(self.size, size), np.zeros(self.size),
            flow.matrix(len(nodes), size), right, method="highs",
            options={"time_limit": time_left(inf)},
        )  # fmt: skip
        if solved.status:
            raise SolveFailed(f"linear program over {len(nodes)} states: {solved.message}")
        weights = np.maximum(0.0, -solved.ineqlin.marginals)
        amounts: dict[State, list[tuple[int, float]]] = {}
        for (state, at), amount in zip(edges, solved.x, strict=False):
            if amount > 1e-9:
                amounts.setdefault(state, []).append((at, float(amount)))
        moves = {
            state: [(at, amount / sum(a for _, a in chosen)) for at, amount in chosen]
            for state, chosen in amounts.items()
        }
        return PolicyValue(float(solved.x[-1]), tuple(map(float, weights)), moves)

    def choices(self, moves: Moves, state: State) -> Sequence[tuple[int, float]]:
        """What a policy does; where it does not say, the best where nothing is unknown."""
        return moves.get(state) or [(self.known[1].get(state, 0), 1.0)]

    def path(self, s: int, choose: Callable[[State], int]) -> list[tuple[State, State]]:
        """Decisions on jobs in a future: the state before and after each of them."""
        pairs, state = list[tuple[State, State]](), self.game.root()
        while True:
            _, after = self.graph[state][choose(state)]
            if not after:
                return pairs
            following = next(child for child in after if s in child.futures)
            if following.slot == state.slot:
                pairs.append((state, following))
            state = following


class _Cells:
    """A sparse matrix, cell by cell."""

    def __init__(self) -> None:
        self.rows, self.columns, self.amounts = list[int](), list[int](), list[float]()

    def add(self, row: int, column: int, amount: float) -> None:
        """A cell more."""
        self.rows.append(row)
        self.columns.append(column)
        self.amounts.append(amount)

    def matrix(self, height: int, width: int) -> Any:
        """The cells' sums."""
        return sp.csr_array((self.amounts, (self.rows, self.columns)), (height, width))

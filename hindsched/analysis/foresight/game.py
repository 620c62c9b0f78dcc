"""Futures as a game that is solved exactly: optima, the best policies, certificates.

Where a family's rules can be played and the states are few, nothing is left open: the values are
those of dynamic programming over the states, which the exact kernel does again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from hindsched.analysis.bounds import Bounds
from hindsched.analysis.foresight.certificates import EXPECTED, FORMAT, GUARANTEE
from hindsched.analysis.foresight.mixed import mean_values
from hindsched.analysis.foresight.play import schedule
from hindsched.analysis.foresight.search import Guarantee, Strategy, no_better_than
from hindsched.analysis.foresight.states import PolicyValue, StateGame
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.kernel import RefusedFile, nonanticipative
from hindsched.kernel.games import Game, State
from hindsched.kernel.reading import limited
from hindsched.limits import time_limit
from hindsched.models.futures import Futures
from hindsched.solutions.base import Solution
from hindsched.solvers.door.work import is_counted

DETERMINISTIC = "deterministic"
STEPS, STEPS_A_SECOND = 6_000_000, 600_000
"""Of the kernel for a game: two seconds at least, and a fifth of the time limit."""
LEAST_SHARE = 1e-7  # of a mixture: pure policies that are less likely are left out


def game_of(instances: Sequence[Instance], policies: str, formulation: str) -> StateGame:
    """The states of the futures' game; `RefusedFile` if it is none, or too large."""
    game = Game([instance.exact for instance in instances], formulation, policies)
    return StateGame(game, instances[0].sense == "max")


def is_playable(instance: Instance, formulation: str, policies: str) -> bool:
    """Whether the kernel plays the rules of a family's problem, for a class of policies."""
    try:
        Game([instance.exact], formulation, policies)
    except (RefusedFile, AttributeError):
        return False
    return True


def hindsight_of(
    states: StateGame, futures: Futures, formulation: str
) -> tuple[list[float], tuple[Solution, ...]]:
    """Optima of the futures, and schedules that reach them."""
    optima, schedules = list[float](), list[Solution]()
    for s, instance in enumerate(futures.instances):
        optimum, chosen = states.alone(s)
        optima.append(optimum)
        schedules.append(schedule(states, instance, s, chosen.__getitem__, formulation))
    return optima, tuple(schedules)


def pure_policy(
    states: StateGame, futures: Futures, formulation: str, chosen: dict[State, int]
) -> Strategy:
    """What a pure policy does in every future."""
    made = [schedule(states, instance, s, chosen.__getitem__, formulation)
            for s, instance in enumerate(futures.instances)]  # fmt: skip
    return Strategy(tuple(solution.objective() for solution in made), made)


def mixture_of(
    states: StateGame, futures: Futures, formulation: str, value: PolicyValue
) -> tuple[tuple[float, Strategy], ...]:
    """A randomised policy as pure ones, each with its share: the flows taken apart."""
    left: dict[tuple[State, int], float] = {}
    likely = {states.game.root(): 1.0}
    for state in states.graph:
        share = likely.pop(state, 0.0)
        for at, probability in states.choices(value.moves, state) if share else ():
            left[state, at] = share * probability
            for child in states.graph[state][at][1]:
                likely[child] = likely.get(child, 0.0) + share * probability
    mixture, whole = list[tuple[float, Strategy]](), 1.0
    while whole > LEAST_SHARE:
        chosen, open_states, share = dict[State, int](), [states.game.root()], whole
        while open_states:
            state = open_states.pop()
            moves = range(len(states.graph[state]))
            chosen[state] = max(moves, key=lambda at: left.get((state, at), 0.0))
            share = min(share, left.get((state, chosen[state]), 0.0))
            open_states += states.graph[state][chosen[state]][1]
        if share <= LEAST_SHARE / 100:
            break
        for move in chosen.items():
            left[move] -= share
        whole -= share
        mixture.append((share, pure_policy(states, futures, formulation, chosen)))
    total = math.fsum(share for share, _ in mixture)
    return tuple((share / total, policy) for share, policy in mixture)


def graph_certificate(
    futures: Futures, policies: str, formulation: str, claim: str, states: StateGame,
    value: PolicyValue, schedules: Sequence[Solution],
) -> JsonObject:  # fmt: skip
    """The kernel's proof of a bound by its own dynamic programming over the states."""
    objectives, up = [solution.objective() for solution in schedules], states.up
    weights, stated = list(futures.probabilities), 1e300 if up else -1e300
    if claim == GUARANTEE:
        worth = math.fsum(w * v for w, v in zip(value.weights, objectives, strict=True))
        weights = [float(f"{w / worth:.12g}") for w in value.weights]
    elif claim == DETERMINISTIC:
        weights = [1.0] * len(objectives)
        stated = states.deterministic(objectives)
        stated = math.nextafter(stated, math.inf if up else 0.0)
    rows: list[Any] = [
        {"instance": instance.name, "instance_sha256": instance.sha256(), "weight": weight,
         "schedule": None if claim == EXPECTED else solution.to_dict()}
        for instance, weight, solution in zip(futures.instances, weights, schedules, strict=True)
    ]  # fmt: skip
    data: dict[str, Any] = {
        "format": FORMAT, "family": futures.instances[0].family, "formulation": formulation,
        "kind": "policy-graph", "policies": policies, "sense": futures.sense, "bound": stated,
        "claim": claim, "scenarios": rows,
    }  # fmt: skip
    proven = nonanticipative.prove([instance.exact for instance in futures.instances], data)
    end = float(proven.high if up else proven.low)
    data["bound"] = math.nextafter(end, math.inf if up else -math.inf)
    return data


@dataclass(frozen=True)
class PolicyAnswers:
    """What is known of the policies of given futures."""

    best_online: Bounds
    policy: Strategy | None  # with the best expected value
    guarantee: Guarantee
    deterministic: Guarantee  # of a pure policy
    certificates: dict[str, JsonObject]


def solve_game(
    futures: Futures, policies: str, formulation: str, seconds: float
) -> tuple[list[Bounds], tuple[Solution, ...], PolicyAnswers] | None:
    """Optima, schedules that reach them, and the rest; None where it is no game, or too large."""
    up = futures.sense == "max"
    try:
        clock = time_limit(None if is_counted() else seconds)
        with limited({"steps": max(STEPS, int(STEPS_A_SECOND * seconds))}), clock:
            states = game_of(futures.instances, policies, formulation)
            optima, schedules = hindsight_of(states, futures, formulation)
            if min(optima) <= 0:
                return None
            value, certificates = states.randomised(optima), dict[str, JsonObject]()
            share = None
            for claim in (EXPECTED, GUARANTEE):
                certificates[claim] = graph_certificate(
                    futures, policies, formulation, claim, states, value, schedules
                )
            with suppress(RefusedFile):  # too many vectors of values
                share = states.deterministic(optima)
                certificates[DETERMINISTIC] = graph_certificate(
                    futures, policies, formulation, DETERMINISTIC, states, value, schedules
                )
    except (RefusedFile, AttributeError, SolveFailed):
        return None
    _, chosen = states.best(futures.probabilities)
    policy = pure_policy(states, futures, formulation, chosen)
    mixture = mixture_of(states, futures, formulation, value)

    def between(reached: float, claim: str) -> Bounds:
        bound = float(cast("float", certificates[claim]["bound"]))
        return Bounds(reached, max(reached, bound)) if up else Bounds(min(reached, bound), reached)

    promised = mean_values(mixture, len(futures))
    shares = [v / best for v, best in zip(promised, optima, strict=True)]
    mixed = between(min(shares) if up else max(shares), GUARANTEE)
    ends = [Bounds(best, best) for best in optima]
    if share is None or DETERMINISTIC not in certificates:
        pure = no_better_than(Bounds(), mixed, [policy, *(own for _, own in mixture)], ends, up)
    else:
        pure = Guarantee(between(share, DETERMINISTIC))
    answers = PolicyAnswers(
        between(policy.expected(futures.probabilities), EXPECTED), policy,
        Guarantee(mixed, value.weights, mixture), pure, certificates,
    )  # fmt: skip
    return ends, schedules, answers

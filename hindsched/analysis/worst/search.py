"""The search: a population that is changed by structured moves, annealed and polished.

Generation by generation every member has one neighbour; it takes the neighbour's place if that is
worse for the algorithm, or better by a little while the search is hot. Every draw is keyed by
(seed, generation, member): the same seed looks at the same candidates in the same order whatever
the number of workers, and a limit only says where it stops.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from hindsched.analysis.worst.evaluate import EXACT, FAILED, INVALID, Evaluation
from hindsched.analysis.worst.moves import few_kinds, neighbour
from hindsched.analysis.worst.polish import Polish, can_polish, is_late_to_load, numbers_of
from hindsched.analysis.worst.pool import Candidate, Evaluate
from hindsched.instances.base import canonical_json
from hindsched.instances.search.space import SearchSpace, copied
from hindsched.json_types import Draft, JsonObject
from hindsched.limits import counted_time

MEMBERS = 16
HOT = 0.2
"""Loss of ratio, as a share of its distance from 1, accepted by chance in the first generation."""
COOLING = 0.96
CYCLE = 80
"""Generations after which the search is hot again."""
PATIENCE = 40
"""Generations without a better neighbour after which a member is replaced."""
POLISH_EVERY = 25
"""Generations between two polishings of the best candidate."""
NOTHING_NEW = 60
"""Generations without a candidate that was not known after which the search ends."""


@dataclass
class Member:
    """A member of the population: a candidate, its score and how long it has not got worse."""

    data: Draft
    score: float
    age: int = 0


@dataclass
class Search:
    """A search and everything that going on with it needs.

    Parameters
    ----------
    space : SearchSpace
        The instances.
    seed : int
        Of all draws.
    starts : list of (str, Draft)
        Candidates to begin from, and what each is: a gadget, a file.
    evolve : bool
        False for plain random search: nothing but draws.
    polish : bool
        Whether numbers are polished by CMA-ES.
    draw : bool
        Whether random instances are among the starts, and take the place of members that rest.
    """

    space: SearchSpace
    seed: int
    starts: Sequence[tuple[str, Draft]] = ()
    evolve: bool = True
    polish: bool = True
    draw: bool = True
    members: list[Member] = field(default_factory=list)
    best: Member | None = None
    best_from: str = ""
    generation: int = 0
    polished: float = -math.inf
    known: dict[str, tuple[str, float]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    trace: list[JsonObject] = field(default_factory=list)
    seconds: float = 0.0
    failure: str | None = None

    def run(
        self,
        evaluate: Evaluate,
        *,
        seconds: float = math.inf,
        evaluations: float = math.inf,
        target: float = math.inf,
        stop: Callable[[], bool] = lambda: False,
        on_generation: Callable[[Search], None] | None = None,
    ) -> str:
        """Search until a limit; says which: ``time``, ``work``, ``target``, ...

        Parameters
        ----------
        evaluate : callable
            See ``pool``.
        seconds, evaluations : float
            Limits on everything since the search's begin, resumed runs included.
        target : float
            A ratio that is enough.
        stop : callable
            Whether the search was interrupted.
        on_generation : callable, optional
            Told after every generation.
        """
        begin, before, idle = counted_time(), self.seconds, 0
        self._limit, self._target, self._is_late = evaluations, target, False

        def is_over() -> bool:
            self.seconds = before + counted_time() - begin
            return stop() or self.seconds >= seconds

        while True:
            if self.best is not None and self.best.score >= target:
                return "unbounded" if self.best.score == math.inf else "target"
            if self.counts["evaluations"] >= evaluations:
                return "work"
            if idle >= NOTHING_NEW:
                return "nothing new"
            fresh = self.counts["evaluations"]
            done = self._step(evaluate, is_over)
            idle = idle + 1 if self.counts["evaluations"] == fresh else 0
            if not done:
                late = is_over() or self._is_late
                return "interrupted" if stop() else "time" if late else "work"
            self.generation += 1
            if on_generation is not None:
                on_generation(self)

    def _step(self, evaluate: Evaluate, is_over: Callable[[], bool]) -> bool:
        """One generation; False if a limit cut it, so that its members do not count."""
        if not self.evolve or not self.members:
            return self._first(evaluate, is_over)
        if self.generation % POLISH_EVERY == 0 and not self._polish(evaluate, is_over):
            return False
        proposals, names = [], []
        for index, member in enumerate(self.members):
            random = self._random(index)
            other = self.members[int(random.integers(len(self.members)))]
            if member.age >= PATIENCE and member is not self._best_member():
                data, name = self._replacement(random)
                threshold = -math.inf
            else:
                data, name = neighbour(self.space, member.data, other.data, random)
                heat = HOT * COOLING ** (self.generation % CYCLE)
                loss = heat * float(random.exponential()) * abs(member.score - 1)
                threshold = member.score - loss if math.isfinite(loss) else member.score
            proposals.append((data, threshold))
            names.append(name)
        found = self._evaluate(evaluate, proposals, names, is_over)
        if any(item is None for item in found):
            return False
        for member, (data, threshold), item in zip(self.members, proposals, found, strict=True):
            assert item is not None
            accepted = item.stage == EXACT and item.score >= threshold
            better = item.score > member.score or threshold == -math.inf
            member.age = 0 if accepted and better else member.age + 1
            if accepted:
                member.data, member.score = data, item.score
        return True

    def _first(self, evaluate: Evaluate, is_over: Callable[[], bool]) -> bool:
        """Evaluate the starts and draws; the worst for the algorithm become the population."""
        proposals = [(data, -math.inf) for _, data in self.starts] if not self.generation else []
        names = [name for name, _ in self.starts] if not self.generation else []
        if self.draw or not proposals:
            draws = [self._drawn(self._random(index)) for index in range(MEMBERS)]
            least = self.best.score if self.best is not None and not self.evolve else -math.inf
            proposals += [(data, least) for data in draws]
            names += ["random"] * len(draws)
        found = self._evaluate(evaluate, proposals, names, is_over)
        if any(item is None for item in found):
            return False
        made = [
            Member(data, item.score)
            for (data, _), item in zip(proposals, found, strict=True)
            if item is not None and item.stage == EXACT
        ]
        made.sort(key=lambda member: -member.score)
        if self.evolve and made:
            self.members = [
                Member(copied(made[index % len(made)].data), made[index % len(made)].score)
                for index in range(MEMBERS)
            ]
        return True

    def _polish(self, evaluate: Evaluate, is_over: Callable[[], bool]) -> bool:
        """Polish the best candidate's numbers if there is one that was not polished."""
        best = self.best
        if not self.polish or best is None or best.score <= self.polished or not can_polish():
            return True
        if len(numbers_of(self.space, best.data)) < 2:
            return True
        if is_late_to_load():  # what comes next must not depend on the clock: the search ends here
            self._is_late = True
            return False
        strategy = Polish(self.space, best.data, self.seed * 1_000_003 + self.generation)
        slot = max(range(len(self.members)), key=lambda index: self.members[index].score)
        for candidates in strategy.rounds():
            proposals = [(data, -math.inf) for data in candidates]
            found = self._evaluate(evaluate, proposals, ["polish"] * len(proposals), is_over)
            complete = [item for item in found if item is not None]
            if len(complete) < len(found):
                return False
            strategy.tell(complete)
            if self.best is not None and self.best.score >= self._target:
                break
        assert self.best is not None
        self.polished = self.best.score
        self.members[slot] = Member(copied(self.best.data), self.best.score)
        return True

    def _evaluate(
        self,
        evaluate: Evaluate,
        proposals: Sequence[Candidate],
        names: Sequence[str],
        is_over: Callable[[], bool],
    ) -> list[Evaluation | None]:
        """Results of candidates: known ones are not evaluated again, and the best one is kept."""
        keys = [digest(data) for data, _ in proposals]
        found: list[Evaluation | None] = [None] * len(proposals)
        fresh: dict[str, int] = {}
        for index, (key, (_, threshold)) in enumerate(zip(keys, proposals, strict=True)):
            stage, score = self.known.get(key, ("", math.inf))
            if stage == EXACT or score < threshold:
                found[index] = Evaluation(stage, score)
            elif key not in fresh:
                fresh[key] = index
        room = self._limit - self.counts["evaluations"]
        chosen = list(fresh.values())[: int(min(room, len(fresh)))]
        results = evaluate([proposals[index] for index in chosen], is_over)
        for index, result in zip(chosen, results, strict=True):
            found[index] = result
            if result is not None:
                self._note(keys[index], proposals[index][0], names[index], result)
        for index, key in enumerate(keys):
            if found[index] is None and key in self.known:  # twice among these candidates
                found[index] = Evaluation(*self.known[key])
        return found

    def _note(self, key: str, data: Draft, name: str, result: Evaluation) -> None:
        self.known[key] = (result.stage, result.score)
        if result.stage == INVALID:
            self.counts[INVALID] += 1
        else:
            self.counts["evaluations"] += 1
            self.counts[result.stage] += 1
        self.counts["limited"] += result.limited
        if result.stage == FAILED and self.failure is None:
            self.failure = result.message
        best = self.best
        if result.stage == EXACT and (best is None or result.score > best.score):
            self.best, self.best_from = Member(copied(data), result.score), name
            self.trace.append(
                {
                    "evaluations": self.counts["evaluations"],
                    "seconds": round(self.seconds, 3),
                    "ratio": result.score if math.isfinite(result.score) else str(result.score),
                    "by": name,
                }
            )

    def _best_member(self) -> Member:
        return max(self.members, key=lambda member: member.score)

    def _replacement(self, random: np.random.Generator) -> tuple[Draft, str]:
        """What takes the place of a member that rests: the best, a draw, or a start."""
        draw = random.random()
        assert self.best is not None
        if self.draw and draw < 0.5:
            return self._drawn(random), "random"
        if self.starts and draw < 0.7:
            name, data = self.starts[int(random.integers(len(self.starts)))]
            return copied(data), name
        return copied(self.best.data), "best"

    def _drawn(self, random: np.random.Generator) -> Draft:
        """A random instance; where the search evolves, half of them of few kinds of jobs."""
        data = self.space.draw(random)
        if self.evolve and random.random() < 0.5:
            data = few_kinds(self.space, data, random)
        return data

    def _random(self, index: int) -> np.random.Generator:
        keys = np.random.SeedSequence([self.seed, self.generation, index])
        return np.random.Generator(np.random.PCG64(keys))


def digest(data: Draft) -> str:
    """A short name of a candidate: equal ones have the same."""
    return sha256(canonical_json(data).encode()).hexdigest()[:16]

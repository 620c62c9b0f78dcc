"""``hindsched.adversary``: futures on which every online algorithm is bad, and the proof.

Trees of futures are drawn and changed; each is a game whose value is a linear program over its
states. What is found is made simpler, and written with what the exact kernel can check: weights of
the futures at which the best pure policy, found by dynamic programming, bounds every policy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from hindsched.analysis.adversary.shapes import Shapes
from hindsched.analysis.bounds import written_down
from hindsched.analysis.foresight.certificates import GUARANTEE
from hindsched.analysis.foresight.game import (
    DETERMINISTIC,
    game_of,
    graph_certificate,
    hindsight_of,
    playable,
)
from hindsched.analysis.foresight.play import GamePolicy
from hindsched.analysis.foresight.states import PolicyValue, StateGame
from hindsched.analysis.local_search import Found, improve, shrink
from hindsched.analysis.sweep import check_workers
from hindsched.analysis.tables import jsonable
from hindsched.errors import HindschedError, InputError, SolveFailed
from hindsched.instances.base import Instance, whole_number
from hindsched.instances.io import read_json, write, write_json
from hindsched.instances.search_space import find_space
from hindsched.json_types import Draft, JsonObject
from hindsched.kernel import RefusedFile
from hindsched.kernel.reading import limited
from hindsched.models.futures import Futures
from hindsched.solutions.base import Solution, write_solution

FORMAT, RESULT, STATE, POLICY = (
    "hindsched-adversary/1", "adversary.json", "search.json", "policy.json"
)  # fmt: skip
DEFAULT_SECONDS, SEARCH_SHARE = 60.0, 0.7
STEPS = 1_500_000  # of the kernel for a candidate's states: a limit that no clock sets
MOST_SHRUNK = 600
CLAIMS = GUARANTEE, DETERMINISTIC


@dataclass(frozen=True)
class GameSettings:
    """Which policies of which problem, and where futures are drawn."""

    shapes: Shapes
    policies: str
    formulation: str
    deterministic: bool  # whether policies that randomise do not count

    def evaluate(self, tree: Draft) -> tuple[float, str]:
        """The ratio below which no online algorithm is on a tree; why there is none."""
        try:
            with limited({"steps": STEPS}):
                states = game_of(self.shapes.instances(tree), self.policies, self.formulation)
                optima = [states.alone(s)[0] for s in range(states.size)]
                if min(optima) <= 0:
                    return -math.inf, "a future is worth nothing"
                if self.deterministic:
                    value = states.deterministic(optima)
                else:
                    value = states.randomised(optima).value
        except (HindschedError, RefusedFile) as error:
            return -math.inf, str(error)
        return ratio_of(value, states.up), ""


def ratio_of(share: float, up: bool) -> float:
    """The competitive ratio of who promises a share of hindsight, or a factor of it."""
    return (1 / share if share > 0 else math.inf) if up else share


def adversary(
    family: str,
    policies: str | None = None,
    *,
    preset: str = "small",
    ranges: Mapping[str, object] | None = None,
    jobs: int = 8,
    futures: int = 8,
    deterministic: bool = False,
    formulation: str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    work_limit: int | None = None,
    workers: int = 0,
    folder: str | Path | None = None,
    resume: bool = False,
    on_progress: Callable[[int, float], None] | None = None,
) -> Adversary:
    """Search futures on which every online algorithm is bad.

    Parameters
    ----------
    family, preset : str
        The family's name and the preset of its generator near which to search.
    policies : {"run", "commit"}, optional
        Which online algorithms: slot by slot, or all of a job at its arrival; by default the class
        whose games the family can play.
    ranges : mapping, optional
        Ranges in place of the generator's, as for `worst`.
    jobs, futures : int
        Most jobs of a future, most futures.
    deterministic : bool
        Whether futures are searched on which policies that do not randomise are bad.
    formulation : str, optional
        Which of the family's problems; None for its default.
    seed, time_limit, work_limit, workers, folder, resume, on_progress
        As for `worst`: the same seed and number of candidates give the same futures.

    Returns
    -------
    Adversary
        Ctrl-C ends the search early and gives what was found.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.adversary("gang", ranges={"gpus": 1}, work_limit=40)
    >>> found.ratio > 1
    True
    """
    from hindsched.solvers.door.work import catch_interrupt

    if not ranges or "jobs" not in ranges:
        ranges = {**(ranges or {}), "jobs": [1, 2]}
    space = find_space(family, preset).with_ranges(ranges)
    check_workers(workers)
    for name, number, least in (("seed", seed, 0), ("jobs", jobs, 1), ("futures", futures, 2)):
        whole_number(name, number, least)
    if work_limit is not None:
        whole_number("work_limit", work_limit, 1)
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise InputError("time_limit", time_limit, "must be a number of seconds above 0")
    shapes = Shapes(space, jobs, futures)
    first = space.instance(space.candidate(np.random.default_rng(seed)))
    formulation = first.check_formulation(formulation)
    policies = policies or playable(first, formulation)
    question = GameSettings(shapes, policies, formulation, deterministic)
    asked = jsonable(
        [family, preset, policies, formulation, ranges, jobs, futures, deterministic, seed]
    )
    place = None if folder is None else Path(folder)
    known = Found[Draft]()
    if resume:
        if place is None:
            raise InputError("resume", True, "needs the folder of the search")
        before = read_json(place / STATE)
        if not isinstance(before, dict) or before.get("asked") != asked:
            raise InputError("resume", str(asked), "must be as before")
        known = Found(before["done"], before["best"], float(before["score"]))
    elif place is not None and (place / STATE).exists():
        raise InputError("out", str(place), "holds results already: resume them or go elsewhere")

    def save(found: Found[Draft]) -> None:
        if place is not None:
            kept = {"asked": asked, "done": found.done, "best": found.best}
            write_json({**kept, "score": str(found.score)}, place / STATE)
        if on_progress is not None:
            on_progress(found.done, found.score)

    seconds = DEFAULT_SECONDS if work_limit is None else math.inf
    seconds = seconds if time_limit is None else SEARCH_SHARE * time_limit
    begun = time.monotonic()
    with catch_interrupt() as stop:
        found = improve(
            partial(_propose, shapes, seed), question.evaluate, known, workers=workers,
            most=math.inf if work_limit is None else work_limit, seconds=seconds,
            stop=stop.is_set, save=save,
        )  # fmt: skip
        searched, best = time.monotonic() - begun, found.best
        if best is None:
            raise SolveFailed(f"no futures of {family} are a game: {found.message}")

        def over(tried: int) -> bool:
            return stop.is_set() or tried > MOST_SHRUNK or time.monotonic() > begun + 1.3 * seconds

        best = shrink(
            best, found.score, shapes.variants, shapes.complexity, question.evaluate, over
        )
    facts = {"seed": seed, "ended": found.ended, "found": found.score, "seconds": searched,
             "evaluations": found.done}  # fmt: skip
    made = Adversary.of(shapes.instances(best), policies, formulation, facts)
    if place is not None:
        made.write(place)
    return made


def _propose(shapes: Shapes, seed: int, best: Draft | None, number: int) -> Draft:
    return shapes.propose(best, seed, number)


@dataclass(frozen=True)
class Adversary:
    """Futures, what nobody can do on them, and the best that can be done.

    Examples
    --------
    >>> import hindsched as hs
    >>> game = hs.Adversary.of(hs.tree("gang", at=[2], branches=2, jobs=3), "run")
    >>> round(game.ratio, 6) >= 1
    True
    """

    futures: Futures
    policies: str
    formulation: str
    optima: tuple[float, ...]
    hindsight: tuple[Solution, ...] = field(repr=False)  # optimal schedules
    certificates: Mapping[str, JsonObject] = field(repr=False)
    best: PolicyValue = field(repr=False)  # the best randomised policy
    states: StateGame = field(repr=False)
    search: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(
        cls, instances: Sequence[Instance], policies: str, formulation: str | None = None,
        search: Mapping[str, Any] | None = None,
    ) -> Adversary:  # fmt: skip
        """The game of given futures, with its proofs."""
        futures = Futures.of(instances)
        formulation = futures.instances[0].check_formulation(formulation)
        states = game_of(futures.instances, policies, formulation)
        optima, schedules = hindsight_of(states, futures, formulation)
        best = states.randomised(optima)
        certificates = {
            claim: graph_certificate(futures, policies, formulation, claim, states, best, schedules)
            for claim in CLAIMS
        }
        return cls(futures, policies, formulation, tuple(optima), schedules, certificates, best,
                   states, search or {})  # fmt: skip

    @property
    def ratio(self) -> float:
        """No online algorithm, randomised or not, has a competitive ratio below this."""
        return ratio_of(float(self.certificates[GUARANTEE]["bound"]), self.states.up)  # type: ignore[arg-type]

    @property
    def ratio_deterministic(self) -> float:
        """None that does not randomise has one below this."""
        return ratio_of(float(self.certificates[DETERMINISTIC]["bound"]), self.states.up)  # type: ignore[arg-type]

    @cached_property
    def policy(self) -> GamePolicy:
        """The best randomised policy, as an online algorithm for `simulate`."""
        return GamePolicy(self.states, self.best.moves)

    @property
    def expected(self) -> list[float]:
        """What it reaches in every future, in expectation."""
        return self.states.expected(self.best.moves)

    def sentences(self) -> list[str]:
        """What was found, in words."""
        first = self.futures.instances[0]
        return [
            f"No online algorithm of {first.family} ({self.formulation}) that decides "
            f"{'all of a job at its arrival' if self.policies == 'commit' else 'slot by slot'}, "
            f"randomised or not, has a competitive ratio below {written_down(self.ratio)} "
            f"(proven); none that does not randomise below "
            f"{written_down(self.ratio_deterministic)}."
        ]

    def to_dict(self) -> JsonObject:
        """What ``adversary --json`` prints."""
        return {
            "family": self.futures.instances[0].family,
            "formulation": self.formulation,
            "policies": self.policies,
            "futures": [
                {"instance": instance.name, "sha256": instance.sha256(),
                 "jobs": len(instance.jobs), "optimum": own.objective(), "reached": value}
                for instance, own, value in zip(
                    self.futures.instances, self.hindsight, self.expected, strict=True)
            ],
            "ratio": self.ratio,
            "ratio_deterministic": self.ratio_deterministic,
            "sentences": self.sentences(),
            "search": dict(self.search),
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def write(self, folder: str | Path) -> None:
        """Write a folder that ``hindsched verify`` recomputes."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for old in [*place.glob("future-*.json"), *place.glob("hindsight-*.json")]:
            old.unlink()
        for n, instance in enumerate(self.futures.instances):
            write(instance, place / f"future-{n}.json")
            write_solution(self.hindsight[n], place / f"hindsight-{n}.json", {"method": "states"})
        for name, certificate in self.certificates.items():
            write_json(certificate, place / f"certificate-{name}.json")
        order = {state: n for n, state in enumerate(self.states.graph)}
        write_json(
            {str(order[state]): [list(move) for move in moves]
             for state, moves in self.best.moves.items()}, place / POLICY,
        )  # fmt: skip
        write_json({"format": FORMAT, **self.to_dict()}, place / RESULT)

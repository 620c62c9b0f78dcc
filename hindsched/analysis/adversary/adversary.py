"""``hindsched.adversary``: futures on which every online algorithm is bad, and the proof.

Trees of futures are drawn and changed; each is a game whose value is a linear program over its
states. What is found is made simpler, and written with what the exact kernel can check: weights of
the futures at which the best pure policy, found by dynamic programming, bounds every policy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from hindsched.analysis.adversary.shapes import Shapes
from hindsched.analysis.bounds import Bounds, written_down, written_up
from hindsched.analysis.foresight.foresight import DECIDES, Foresight, foresight
from hindsched.analysis.foresight.game import game_of, is_playable
from hindsched.analysis.foresight.mixed import (
    Choice,
    MixedPolicy,
    mean_values,
    policy_tree,
    replayed,
    tree_lines,
)
from hindsched.analysis.foresight.search import all_futures
from hindsched.analysis.local_search import DEFAULT_SECONDS, SearchQuestion, search
from hindsched.analysis.tasks import theorem_of
from hindsched.errors import HindschedError, InputError
from hindsched.instances.base import Instance, whole_number
from hindsched.instances.io import write_json
from hindsched.instances.search_space import find_space
from hindsched.json_types import Draft, JsonObject
from hindsched.kernel import RefusedFile
from hindsched.kernel.reading import limited
from hindsched.models.base import POLICIES, RUN
from hindsched.models.futures import Futures
from hindsched.online.protocol import unmet
from hindsched.online.registry import algorithms
from hindsched.solvers.door.work import counting

FORMAT, RESULT = "hindsched-adversary/1", "adversary.json"
STEPS = 8_000_000  # of the kernel for a candidate's states: a limit that no clock sets
COLUMN_SECONDS = 4.0  # of work for a candidate by columns, which no clock sets either
MOST_SHRUNK = 600
MOST = 1000  # jobs of a future, and futures
BEST = "best policy"


@dataclass(frozen=True)
class GameSettings(SearchQuestion[Draft]):
    """Which policies of which problem, and where futures are drawn."""

    shapes: Shapes
    policies: str
    formulation: str
    deterministic: bool  # whether policies that randomise do not count

    def propose(self, best: Draft | None, seed: int, number: int) -> Draft:
        """A tree of futures."""
        return self.shapes.propose(best, seed, number)

    def variants(self, candidate: Draft) -> Iterable[Draft]:
        """Simpler trees."""
        return self.shapes.variants(candidate)

    def complexity(self, candidate: Draft) -> tuple[float, ...]:
        """How hard a tree is to read."""
        return self.shapes.complexity(candidate)

    def evaluate(self, candidate: Draft) -> tuple[float, str]:
        """The ratio below which no online algorithm is on a tree."""
        try:
            futures = self.shapes.instances(candidate)
            if not self.shapes.playable:
                with counting():
                    found = foresight(
                        futures, algorithms=[], policies=self.policies,
                        formulation=self.formulation, time_limit=COLUMN_SECONDS,
                    )  # fmt: skip
                chosen = found.guarantee_deterministic if self.deterministic else found.guarantee
                return ratio_of(chosen, found.is_maximised), ""
            with limited({"steps": STEPS}):
                states = game_of(futures, self.policies, self.formulation)
                optima = [states.alone(s)[0] for s in range(states.size)]
                if min(optima) <= 0:
                    return -math.inf, "a future is worth nothing"
                if self.deterministic:
                    value = states.deterministic(optima)
                else:
                    value = states.randomised(optima).value
        except (HindschedError, RefusedFile) as error:
            return -math.inf, str(error)
        return ratio_of(Bounds(value, value), states.up), ""


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
    if not ranges or "jobs" not in ranges:
        ranges = {**(ranges or {}), "jobs": [1, 2]}
    space = find_space(family, preset).with_ranges(ranges)
    for name, number, least in (("seed", seed, 0), ("jobs", jobs, 1), ("futures", futures, 2)):
        if whole_number(name, number, least) > MOST and name != "seed":
            raise InputError(name, number, f"must be at most {MOST}")
    first = space.instance(space.candidate(np.random.default_rng(seed)))
    formulation = first.check_formulation(formulation)
    if policies not in (None, *POLICIES):
        raise InputError("policies", policies, f"must be {' or '.join(POLICIES)}")
    played = [p for p in POLICIES if is_playable(first, formulation, p)]
    policies = policies or next(iter(played), RUN)
    shapes = Shapes(space, jobs, futures, policies in played)
    question = GameSettings(shapes, policies, formulation, deterministic)
    asked = [family, preset, policies, formulation, ranges, jobs, futures, deterministic, seed]
    begun = time.monotonic()
    best, facts = search(
        question, asked, seed=seed, time_limit=time_limit, work_limit=work_limit, workers=workers,
        folder=folder, resume=resume, on_progress=on_progress, most_shrunk=MOST_SHRUNK,
        nothing=f"no futures of {family} are a game",
    )  # fmt: skip
    left = math.inf if time_limit is None else begun + time_limit - time.monotonic()
    seconds = max(1.0, min(left, DEFAULT_SECONDS)) if shapes.playable else COLUMN_SECONDS
    with nullcontext() if shapes.playable else counting():
        made = Adversary.of(shapes.instances(best), policies, formulation, seconds)
    made = replace(made, search=facts)
    if folder is not None:
        made.write(folder)
    return made


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

    found: Foresight  # what is known of the futures
    search: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, instances: Sequence[Instance], policies: str, formulation: str | None = None,
        time_limit: float = DEFAULT_SECONDS,
    ) -> Adversary:  # fmt: skip
        """The game of given futures, with its proofs, and the paper's own algorithm on them."""
        return cls(foresight(
            instances, policies=policies, formulation=formulation, time_limit=time_limit
        ))  # fmt: skip

    @property
    def futures(self) -> Futures:
        """The futures."""
        return self.found.futures

    @property
    def policies(self) -> str:
        """The class of online policies."""
        return self.found.policies

    @property
    def ratio(self) -> float:
        """No online algorithm, randomised or not, has a competitive ratio below this."""
        return ratio_of(self.found.guarantee, self.found.is_maximised)

    @property
    def ratio_deterministic(self) -> float:
        """None that does not randomise has one below this."""
        return ratio_of(self.found.guarantee_deterministic, self.found.is_maximised)

    @property
    def optima(self) -> list[float | None]:
        """What who sees the future reaches in each of them; None where no schedule is known."""
        known = self.found.clairvoyant
        return [None if own is None else own.objective() for own in known]

    @property
    def expected(self) -> list[float]:
        """What the best randomised policy reaches in each of them, in expectation."""
        return mean_values(self.found.mixture, len(self.futures))

    @property
    def policy(self) -> MixedPolicy:
        """The best randomised policy, as an online algorithm for `simulate`."""
        return MixedPolicy(self.futures, self.found.mixture, self.policies)

    @property
    def replayed(self) -> list[float]:
        """What the simulator says of it: as `expected`."""
        found = self.found
        return replayed(found.futures, found.mixture, found.policies, found.formulation)

    @property
    def tree(self) -> tuple[Choice, ...]:
        """What it does, choice by choice; `str` of an adversary draws it."""
        return policy_tree(self.futures, self.found.mixture, self.policies)

    def rows(self) -> list[JsonObject]:
        """Each future: what hindsight, the best policy and the paper's algorithm make of it."""
        found, made, expected = self.found, list[JsonObject](), self.expected
        for s, instance in enumerate(self.futures.instances):
            row: JsonObject = {"future": instance.name, "jobs": len(instance.jobs)}
            row |= {"hindsight": self.optima[s], BEST: expected[s]}
            for name, runs in found.runs.items():
                row[name] = fmean(run.values[s] for run in runs)
            made.append(row)
        return made

    @property
    def theorem(self) -> JsonObject | None:
        """The largest ratio that the paper's theorem promises here, and what it lacks."""
        first = self.futures.instances[0]
        name = next(iter(algorithms(first.family)))
        stated = [theorem_of(each, name) for each in (*self.futures.instances,
                                                      all_futures(self.futures))]  # fmt: skip
        known = [each for each in stated if each and each["kind"] == "ratio" and each["value"]]
        if not known:
            return None
        lacking = {name for each in known for name in unmet(each)}
        value = max(float(each["value"]) for each in known)
        return {"algorithm": name, "value": value, "lacking": sorted(lacking)}

    def sentences(self) -> list[str]:
        """What was found, in words."""
        first, found, theorem = self.futures.instances[0], self.found, self.theorem
        rows: list[Any] = self.rows()
        known, up = found.unproven, found.is_maximised
        far = "upper" if up else "lower"
        by = {name: "proven by solver" if f"{name}: {far}" in known else "proven"
              for name in ("guarantee", "guarantee_deterministic")}  # fmt: skip
        lines = [
            f"No online algorithm of {first.family} ({found.formulation}) that "
            f"{DECIDES[self.policies]}, randomised or not, has a competitive ratio below "
            f"{written_down(self.ratio)} ({by['guarantee']}); none that does not randomise below "
            f"{written_down(self.ratio_deterministic)} ({by['guarantee_deterministic']})."
        ]
        if theorem is None:
            lines.append(f"No theorem of {first.family}'s paper promises a ratio here.")
        else:
            lacking = "; ".join(theorem["lacking"])  # type: ignore[arg-type]
            lines.append(
                f"The theorem of `{theorem['algorithm']}` promises at most "
                f"{written_up(theorem['value'])}"  # type: ignore[arg-type]
                + (f", where what it assumes holds, which here does not: {lacking}." if lacking
                   else ", and all that it assumes holds here.")
            )  # fmt: skip
        optima = [value for value in self.optima if value]
        if found.mixture and len(optima) == len(rows):
            reached = {name: worst_ratio([float(row[name]) for row in rows], optima, up)
                       for name in [BEST, *found.runs]}  # fmt: skip
            words = [f"{'the ' * (name == BEST)}{name} {written_up(value)}"
                     for name, value in reached.items()]  # fmt: skip
            lines.append(f"On these futures the worst ratio of {', of '.join(words)}.")
        return lines

    def result(self) -> JsonObject:
        """What the folder's file says, all of which follows from the others."""
        first = self.futures.instances[0]
        return {
            "format": FORMAT, "family": first.family, "formulation": self.found.formulation,
            "policies": self.policies, "ratio": self.ratio,
            "ratio_deterministic": self.ratio_deterministic, "theorem": self.theorem,
            "futures": self.rows(), "sentences": self.sentences(),
            "policy": tree_lines(self.futures, self.tree),
        }  # fmt: skip

    def to_dict(self) -> JsonObject:
        """What ``adversary --json`` prints."""
        return {**self.result(), "search": dict(self.search)}

    def __str__(self) -> str:
        return "\n".join([*self.sentences(), *tree_lines(self.futures, self.tree)])

    def write(self, folder: str | Path) -> None:
        """Write a folder that ``hindsched verify`` recomputes."""
        place = Path(folder)
        for kind in ("future", "hindsight", "policy", "pure", "mixture", "run", "certificate"):
            for old in place.glob(f"{kind}-*.json"):
                old.unlink()
        self.found.write(place)
        write_json(self.result(), place / RESULT)


def ratio_of(guarantee: Bounds, up: bool) -> float:
    """The competitive ratio that a bound on the promised share, or factor, of hindsight means."""
    end = guarantee.upper if up else guarantee.lower
    if end is None:
        return 1.0
    return max(1.0, (1 / end if end > 0 else math.inf) if up else end)


def worst_ratio(values: Sequence[float], optima: Sequence[float], up: bool) -> float:
    """The largest ratio of hindsight and values reached."""
    pairs = zip(values, optima, strict=True)
    return max((best / v if v else math.inf) if up else v / best for v, best in pairs)

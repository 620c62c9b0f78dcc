"""Randomised policies of given futures: mixtures of pure ones, played, replayed, and as a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from typing import Any

from hindsched.analysis.foresight.search import Strategy
from hindsched.errors import InputError
from hindsched.models.base import COMMIT
from hindsched.models.futures import Futures, record_text
from hindsched.online.base import family_online
from hindsched.online.protocol import Decision, Environment, OnlineAlgorithm, draws
from hindsched.online.simulator import simulate
from hindsched.solutions.base import Assignment

Mixture = Sequence[tuple[float, Strategy]]
NAMES_SHOWN = 3  # of the jobs that begin in a slot


class MixedPolicy(OnlineAlgorithm):
    """A randomised policy as an online algorithm: it draws a pure policy and follows it.

    It knows no more than what has been told, and plays the futures that it was made for alone.

    Examples
    --------
    >>> import hindsched as hs
    >>> game = hs.Adversary.of(hs.tree("gang", at=[2], branches=2, jobs=3), "run")
    >>> hs.simulate(game.futures.instances[0], game.policy, seed=3).violations
    []
    """

    randomised = True

    def __init__(self, futures: Futures, mixture: Mixture, policies: str) -> None:
        self.futures, self.mixture, self.policies = futures, mixture, policies
        first = futures.instances[0]
        self.committed_rows = family_online(first.family).committed_rows
        self.records = {futures.record(s, at) for s, instance in enumerate(futures.instances)
                        for at in range(len(instance.jobs))}  # fmt: skip

    def start(self, environment: Environment) -> None:
        """Draw which pure policy to follow."""
        self.cluster, self.slot = environment.cluster, 0
        shares, random = [share for share, _ in self.mixture], draws(environment.seed, "policy")
        self.drawn = self.mixture[int(random.choice(len(shares), p=shares))][1]
        self.known: list[tuple[str, str]] = []  # record and name of what was told
        self.settled: set[str] = set()
        self.plan: dict[str, list[Assignment]] = {}

    def step(self, slot: int, arrivals: tuple[Any, ...]) -> Decision:
        """What the drawn policy does where the futures begin as what was told."""
        for job in arrivals:
            record = self.cluster.with_fields(jobs=(job,)).to_dict()["jobs"][0]
            self.known.append((record_text(record), job.name))
        self.plan = self._plan(slot)
        self.slot, rows = slot, dict[str, list[Assignment]]()
        for name in sorted(self.plan.keys() - self.settled):
            made, is_settled = self.plan[name], True
            if self.policies != COMMIT:
                made, is_settled = self.committed_rows(made, slot)
            if made:
                rows[name] = made
            if is_settled:
                self.settled.add(name)
        return Decision(rows, tuple(rows))

    def wake_up(self) -> int | None:
        """The next slot in which the plan's next row begins, or another future would tell more."""
        left = (row["from"] for name in self.plan.keys() - self.settled for row in self.plan[name])
        events = chain(left, self.futures.classes())
        return min((slot for slot in events if slot > self.slot), default=None)

    def _plan(self, slot: int) -> dict[str, list[Assignment]]:
        """Rows of the jobs that were told, as of the first future that is like this up to now."""
        for s, instance in enumerate(self.futures.instances):
            jobs = sorted((self.futures.revealed(s, at), at) for at in range(len(instance.jobs)))
            own = [at for told, at in jobs if told <= slot]
            if len(own) == len(self.known) and all(
                self._is_told_of(s, at, *each) for at, each in zip(own, self.known, strict=True)
            ):
                rows, names = planned_rows(self.drawn, s), [instance.jobs[at].name for at in own]
                return {name: rows[name] for name in names if name in rows}
        raise InputError("jobs", f"those told up to slot {slot}", "must be of one of the futures")

    def _is_told_of(self, s: int, at: int, record: str, name: str) -> bool:
        """Whether a job is this one: by its name where the simulator tells a part of it alone."""
        if record in self.records:
            return self.futures.record(s, at) == record
        return bool(self.futures.instances[s].jobs[at].name == name)


def planned_rows(pure: Strategy, s: int) -> dict[str, list[Assignment]]:
    """What runs in a future, given up or not."""
    solution = pure.schedules[s]
    every: Mapping[str, Any] = {**solution.assignments(), **solution.given_up}
    return {name: [dict(row) for row in rows] for name, rows in every.items()}


def mean_values(mixture: Mixture, size: int) -> list[float]:
    """Expected value of a mixture in each of so many futures."""
    return [fsum(share * pure.values[s] for share, pure in mixture) for s in range(size)]


def replayed(futures: Futures, mixture: Mixture, policies: str, formulation: str) -> list[float]:
    """Expected value in each future by the simulator, which plays every pure policy."""
    plays = [(share, MixedPolicy(futures, [(1.0, pure)], policies)) for share, pure in mixture]
    return [
        fsum(share * simulate(instance, play, formulation=formulation, estimates={}).objective
             for share, play in plays)
        for instance in futures.instances
    ]  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """What a policy does in a slot, where some futures are still possible."""

    slot: int
    futures: tuple[int, ...]
    share: float  # how likely it is, whatever nature does
    odds: float  # among what may be done there
    does: str
    after: tuple[Choice, ...]


def policy_tree(futures: Futures, mixture: Mixture, policies: str) -> tuple[Choice, ...]:
    """A mixture as choices, each before those that follow; empty where nothing is left to know."""
    slots = set(futures.classes()) | {
        slot for _, pure in mixture for s in range(len(futures))
        for slot in _begins(futures, pure, s, policies)
    }  # fmt: skip
    times = sorted(slots)

    def following(members: tuple[int, ...], group: Mixture, at: int) -> tuple[Choice, ...]:
        if at == len(times) or (len(members) == 1 and at):
            return ()
        parts = dict.fromkeys(futures.members(s, times[at]) for s in members)
        found, total = list[Choice](), fsum(share for share, _ in group)
        for own in parts:
            by_deed: dict[str, list[tuple[float, Strategy]]] = {}
            for share, pure in group:
                names = _begins(futures, pure, own[0], policies).get(times[at], [])
                by_deed.setdefault(_begun_words(names), []).append((share, pure))
            for does, chosen in sorted(by_deed.items()):
                share = fsum(each for each, _ in chosen)
                after = following(own, chosen, at + 1)
                found.append(Choice(times[at], own, share, share / total, does, after))
        found = [choice for choice in found if choice.does or choice.after]
        is_idle = len(found) == 1 and found[0].futures == members and not found[0].does
        return found[0].after if is_idle else tuple(found)

    return following(tuple(range(len(futures))), mixture, 0)


def tree_lines(futures: Futures, tree: Sequence[Choice], depth: int = 0) -> list[str]:
    """A tree of choices in words, a line each."""
    lines = list[str]()
    for choice in tree:
        name = futures.instances[choice.futures[0]].name
        many = f"{len(choice.futures)} futures" if len(choice.futures) > 1 else name
        odds = "" if choice.odds > 1 - 1e-9 else f"with {choice.odds:.1%} "
        does = choice.does or "nothing new"
        lines.append(f"{'  ' * depth}slot {choice.slot}, {many}: {odds}{does}")
        lines += tree_lines(futures, choice.after, depth + 1)
    return lines


def _begins(futures: Futures, pure: Strategy, s: int, policies: str) -> dict[int, list[str]]:
    """What is decided in a future, by slot: jobs that begin, or get slots."""
    found: dict[int, list[str]] = {}
    rows = planned_rows(pure, s)
    for at, job in enumerate(futures.instances[s].jobs):
        spans = [(int(row["from"]), int(row["to"])) for row in rows.get(job.name, ())]
        first, last = min(spans, default=(0, 0))[0], max(chain([0], (end for _, end in spans)))
        if spans and policies == COMMIT:
            text = f"{job.name} in {first} to {last}"
            found.setdefault(futures.revealed(s, at), []).append(text)
        elif spans:
            found.setdefault(first, []).append(f"{job.name} begins")
    return found


def _begun_words(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more

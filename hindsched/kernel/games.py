"""Games of a few futures: what no policy can beat, by dynamic programming over their states.

A state is a slot, the futures that cannot be told apart in it, what is held and until when, and the
jobs that wait, by kind: equal jobs are decided once. In a state a job that waits begins, in any way
that its family allows, or time goes on to the next slot in which something ends or the futures may
part; then nature chooses among classes of futures, and a policy has a state in each of them. A
policy may be taken to begin jobs in such slots alone: between two of them nothing is told and
nothing becomes free, so that a job which begins later could begin at the first, with all after it
as before, and values never fall when jobs end earlier. Who commits decides all of a job in the slot
in which it is told.

For weights of the futures the best pure policy follows backwards from the states; a randomised one
is a mixture of pure ones, and no better. What pure policies reach in all futures at once are the
vectors that no other one is as good as everywhere.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import lcm
from typing import Any, NamedTuple

from . import reading
from .exact import Data, Interval, point
from .reading import require
from .rules import GAMES, Held, Rules

Classes = tuple[int, ...]
UNSEEN = ("name", "user", "tenant")  # of a job's record: no rule of a game depends on them
STATES = 100_000


class State(NamedTuple):
    """Where a policy decides."""

    slot: int
    futures: Classes
    held: Held
    waiting: tuple[int, ...]  # kinds, in order


Moves = list[tuple[int, list[State]]]  # what each pays, and the states of nature's choices


class Game:
    """States and moves of the futures' instances, read by the kernel."""

    def __init__(self, instances: Sequence[Any], formulation: Any, policies: str) -> None:
        kinds: dict[Any, int] = {}
        self.records: dict[Any, int] = {}
        jobs, self.told = list[Any](), list[list[tuple[int, int, int]]]()
        for instance in instances:
            problem, rows = instance.problem(formulation), list[tuple[int, int, int]]()
            for data, job in zip(instance.data["jobs"], problem.listed(), strict=True):
                seen = frozen({key: data[key] for key in data if key not in UNSEEN})
                if seen not in kinds:
                    kinds[seen] = len(kinds)
                    jobs.append(job)
                record = self.records.setdefault(frozen(data), len(self.records))
                rows.append((instance.family.reveal_slot(instance.data, data), record, kinds[seen]))
            self.told.append(rows)
        self.slots = [sorted({slot for slot, _, _ in rows}) for rows in self.told]
        name, *facts = instances[0].problem(formulation).game(policies)
        self.rules: Rules = GAMES[name](*facts, jobs)

    def split(self, futures: Classes, slot: int) -> list[tuple[Classes, tuple[int, ...]]]:
        """Classes of futures in a slot, each with the kinds of the jobs that are told in it."""
        groups: dict[Any, list[int]] = defaultdict(list)
        for s in futures:
            groups[tuple(r for time, r, _ in self.told[s] if time <= slot)].append(s)
        return [
            (tuple(members), tuple(k for time, _, k in self.told[members[0]] if time == slot))
            for members in groups.values()
        ]

    def root(self) -> State:
        """Before anything is told."""
        return State(0, tuple(range(len(self.told))), (), ())

    def moves(self, state: State) -> Moves:
        """What may be done, and what follows."""
        slot, futures, held, waiting = state
        rules, moves = self.rules, Moves()
        for kind in waiting[:1] if rules.commits else sorted(set(waiting)):
            at = waiting.index(kind)
            rest = waiting[:at] + waiting[at + 1 :]
            for pays, more in rules.options(slot, kind, held):
                moves.append((pays, [State(slot, futures, added(held, more), rest)]))
        if waiting and rules.commits:
            return moves
        later = [next((t for t in self.slots[s] if t > slot), None) for s in futures]
        events = [t for t in later if t is not None]
        if waiting and held:
            events.append(held[0][0] + 1)
        if not events:
            is_bound = waiting and not rules.optional
            require(moves or not is_bound, "the game has no policy")
            return moves if is_bound else [*moves, (0, [])]
        after = min(events)
        kept = tuple(part for part in held if part[0] >= after)
        children = [
            State(after, members, kept, tuple(sorted((*waiting, *new))))
            for members, new in self.split(futures, after)
        ]
        return [*moves, (0, children)]

    def graph(self, most: int = STATES) -> dict[State, Moves]:
        """All states with their moves, in an order in which what follows is behind."""
        graph, open_states = dict[State, Moves](), [self.root()]
        while open_states:
            state = open_states.pop()
            if state in graph:
                continue
            require(len(graph) < most, f"the game has more than {most} states")
            graph[state] = moves = self.moves(state)
            reading.spend(100 + 40 * len(moves))
            open_states += [after for _, states in moves for after in states]
        return {s: graph[s] for s in sorted(graph, key=lambda s: (s.slot, -len(s.waiting)))}


def added(held: Held, more: Held) -> Held:
    """What is held of both."""
    sums = dict(held)
    for last, amounts in more:
        old = sums.get(last)
        sums[last] = amounts if old is None else tuple(map(sum, zip(old, amounts, strict=True)))
    return tuple(sorted(sums.items()))


def best(game: Game, graph: Mapping[State, Moves], weights: Sequence[Any], up: bool) -> Fraction:
    """The best weighted sum of a pure policy's values."""
    below = lcm(*(Fraction(weight).denominator for weight in weights))
    whole = [int(weight * below) for weight in weights]
    values, pick = dict[State, Any](), max if up else min
    for state in reversed(list(graph)):
        weight = sum(whole[s] for s in state.futures)
        values[state] = pick(weight * pays + sum(values[after] for after in states)
                             for pays, states in graph[state])  # fmt: skip
    return Fraction(values[game.root()], game.rules.scale * below)


def fronts(
    game: Game, graph: Mapping[State, Moves], limits: Sequence[Any], up: bool
) -> list[tuple[int, ...]]:
    """Vectors of values by future of pure policies, of which no other one is as good everywhere.

    Minimising, those that reach the limit of a future are left out.
    """
    known = dict[State, list[tuple[int, ...]]]()
    for state in reversed(list(graph)):
        vectors = set[tuple[int, ...]]()
        for pays, states in graph[state]:
            place = {s: at for at, s in enumerate(s for after in states for s in after.futures)}
            order = [place[s] for s in state.futures] if states else []
            parts = [known[after] for after in states]
            reading.spend(20 * len(order))
            for chosen in product(*parts):
                joined = [value for part in chosen for value in part]
                reading.spend(10 + len(joined))
                vector = tuple(pays + joined[at] for at in order) if states else (
                    (pays,) * len(state.futures))  # fmt: skip
                if up or all(v < limits[s] for v, s in zip(vector, state.futures, strict=True)):
                    vectors.add(vector)
        known[state] = list(undominated(vectors, up))
    return known[game.root()]


def undominated(vectors: Iterable[tuple[int, ...]], up: bool) -> Iterator[tuple[int, ...]]:
    """Those that no other one is as good as everywhere."""
    kept = list[tuple[int, ...]]()
    for vector in sorted(vectors, reverse=up):
        reading.spend(10 * len(kept))
        pairs = (zip(other, vector, strict=True) for other in kept)
        better = (all(a >= b if up else a <= b for a, b in each) for each in pairs)
        if not any(better):
            kept.append(vector)
            yield vector


def bound_of_game(
    instances: Sequence[Any], data: Data, worth: Sequence[Interval], up: bool
) -> Interval:
    """What a certificate's weights prove of any policy, or its stated bound of a pure one's share.

    `worth` is what the futures' schedules reach: without a proof that they are optimal their share
    is on the safe side.
    """
    game = Game(instances, data["formulation"], data["policies"])
    graph, rows = game.graph(), data["scenarios"]
    if data["claim"] != "deterministic":
        return point(best(game, graph, [row["weight"] for row in rows], up))
    known = [(value.low if up else value.high) * game.rules.scale for value in worth]
    require(min(known) > 0, "schedules: must have values above 0")
    front = fronts(game, graph, [data["bound"] * value for value in known], up)
    inner, outer = (min, max) if up else (max, min)
    pairs = (zip(vector, known, strict=True) for vector in front)
    shares = (inner(Fraction(v) / by for v, by in each) for each in pairs)
    return point(outer(shares, default=Fraction(data["bound"])))


def frozen(value: Any) -> Any:
    """A record to compare: the number 1/2 is not the word "1/2", null is what is not there."""
    if isinstance(value, dict):
        return dict, frozenset((k, frozen(v)) for k, v in value.items() if v is not None)
    if isinstance(value, list):
        return list, tuple(map(frozen, value))
    return isinstance(value, bool), value

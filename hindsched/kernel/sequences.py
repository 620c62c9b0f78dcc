"""Certificates of kind ``sequences``: an enumeration, with the prices that keep it short.

Jobs in one piece whose costs rise with their completions: some optimal schedule starts them in a
sequence, each as early as its placement and the start of the one in front of it allow. All that
those behind need to know is when each GPU becomes free. A job stands on GPUs of one of its kinds.
The judge makes all sequences, a job longer in each layer, and drops

- a job that starts when another could be complete that is not begun: this one goes in front;
- what prices prove to cost as much as is stated: what the begun jobs cost, the best responses of
  the others from when they may begin, less the worth of the GPUs that are left;
- what another sequence of the same jobs can replace: its GPUs are free at most d later and it costs
  at least d x the others' weights less, and they can all be put off by d.

The first drops no optimal schedule, the last none but for another that is as good and longer in
its place. So if all that is left in the end costs as much as is stated, every schedule does. Prices
decide how much work that is, never what is true.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from operator import itemgetter, sub
from typing import Any, NamedTuple

from .reading import require, spend

Row = tuple[tuple[int, ...], ...]
"""When the GPUs of each server become free, in order; a pool (of a kind) is one server."""
Placement = tuple[tuple[int, int], ...]  # servers by position, GPUs on each
Steps = tuple[Sequence[int], Callable[[int], int]]  # cuts and running integral of prices
ByKind = Mapping[str, Sequence[Placement]]
Server = tuple[int, str]  # GPUs and their kind
State = tuple[int, int, Row]  # the begun jobs as bits, what they cost, when GPUs become free


class RigidTask(NamedTuple):
    """A job: submitted at s, p slots on g GPUs, with its cost of a slot."""

    s: int
    p: int
    g: int
    cost: int


class Memory(dict[int, int]):
    """A function of time that remembers its values."""

    def __init__(self, value: Callable[[int], int]) -> None:
        super().__init__()
        self.value = value

    def __missing__(self, time: int) -> int:
        self[time] = value = self.value(time)
        return value


def placements(gpus: int, servers: Placement, largest: int) -> Iterator[Placement]:
    """All on one server; where none is so large (`largest` is), whole ones and part of one."""
    if gpus <= largest:
        yield from (((at, gpus),) for at, size in servers if size >= gpus)
        return
    behind = [*accumulate((size for _, size in reversed(servers)), initial=0)][::-1]
    stack: list[tuple[int, int, Placement]] = [(0, gpus, ())]
    while stack:
        place, rest, whole = stack.pop()
        if place == len(servers) or rest - behind[place] >= largest:
            continue  # what is left never holds the rest
        spend(20)
        stack.append((place + 1, rest, whole))
        if (left := rest - servers[place][1]) >= 0:
            taken = (*whole, servers[place])
            stack.append((place + 1, left, taken))
            if left == 0:
                yield taken
            elif left < largest:
                others = sorted({*servers} - {*taken})
                yield from ((*taken, (at, left)) for at, size in others if size > left)


def by_kind(gpus: int, servers: Sequence[Server], kinds: Sequence[str]) -> ByKind:
    """Placements of a job on each of its kinds that has any."""
    on = {k: tuple((at, n) for at, (n, kind) in enumerate(servers) if kind == k) for k in kinds}
    largest = max(size for listed in on.values() for _, size in listed)
    found = {kind: list(placements(gpus, listed, largest)) for kind, listed in on.items()}
    return {kind: listed for kind, listed in found.items() if listed}


def responses(task: RigidTask, cuts: Sequence[int], paid: Callable[[int], int]) -> Memory:
    """Least cost of a job that may begin from a time on, prices included.

    It is linear between starts where it begins or ends at a cut, and rises behind them.
    """

    def cost(start: int) -> int:
        end = start + task.p
        return task.cost * (end - task.s) + task.g * (paid(end) - paid(start))

    points = sorted({*cuts, *(cut - task.p for cut in cuts if cut >= task.p)})
    least = [cost(point) for point in points]
    for k in range(len(points) - 2, -1, -1):
        least[k] = min(least[k], least[k + 1])

    def best(first: int) -> int:
        k = bisect_left(points, first)
        return min([cost(first), *least[k : k + 1]])

    return Memory(best)


def left_of(paid: Callable[[int], int], last: int) -> Memory:
    """What prices pay up to a time, less all that they pay: below 0."""
    return Memory(lambda time: paid(time) - paid(last))


def after(
    servers: Sequence[Server], row: Row, placement: Placement, start: int, end: int
) -> Row:  # fmt: skip
    """When GPUs become free once a job runs; servers that are alike in order of that."""
    held, made = dict(placement), list[tuple[Server, tuple[int, ...]]]()
    for at, free in enumerate(row):
        count = held.get(at, 0)
        left = [time if time > start else start for time in free[count:]]
        made.append((servers[at], tuple(sorted(left + [end] * count))))
    return tuple(free for _, free in sorted(made))


def thin(states: list[State], weights: Sequence[int]) -> list[State]:
    """The states that no other of the same jobs, of no higher cost, can replace."""
    kept: list[State] = []
    for begun, group in groupby(sorted(states), key=itemgetter(0)):
        others = sum(cost for j, cost in enumerate(weights) if not begun >> j & 1)
        least: list[State] = []
        for state in group:
            _, cost, row = state
            for _, less, free in least:
                spend(2)
                spare, first, last = cost - less, free[0][0] - row[0][0], free[-1][-1] - row[-1][-1]
                if others * first > spare or others * last > spare:
                    continue
                spend(2 + sum(map(len, row)))
                late = max(max(map(sub, a, b)) for a, b in zip(free, row, strict=True))
                if late * others <= spare:
                    break
            else:
                least.append(state)
        kept += least
    return kept


def require_none_below(
    tasks: Sequence[RigidTask], servers: Sequence[Server], places: Sequence[ByKind],
    priced: Sequence[Mapping[str, Steps]], least: int,
) -> None:  # fmt: skip
    """Refuse unless every schedule costs at least `least`.

    `priced` are the prices of each kind by layer, free of charge from the last cut on; `servers`
    are in order, and `places` are each job's placements.
    """
    weights, everything = [task.cost for task in tasks], range(len(tasks))
    anywhere = [[at for listed in on.values() for at in listed] for on in places]
    gpus = sum(size for size, _ in servers)
    spend(100 * gpus)
    row: Row = tuple((0,) * size for size, _ in servers)
    layer: list[State] = [(0, 0, row)]
    known: Any = None
    for prices in priced:
        if known is not prices:
            known = prices
            best = [
                {kind: responses(task, *prices[kind]) for kind in on}
                for task, on in zip(tasks, places, strict=True)
            ]
            worth = {kind: left_of(paid, cuts[-1]) for kind, (cuts, paid) in prices.items()}
            spend(20 * len(tasks) * sum(len(cuts) for cuts, _ in prices.values()))
        states: list[State] = []
        for begun, cost, row in layer:
            rest = [j for j in everything if not begun >> j & 1]
            placed = sum(len(anywhere[j]) for j in rest)
            spend(10 + len(tasks) + placed)
            begins = {j: [earliest(tasks[j], row, at) for at in anywhere[j]] for j in rest}
            soonest = min(min(begins[j]) + tasks[j].p for j in rest)
            for j in rest:
                others = [i for i in rest if i != j]
                for at, start in zip(anywhere[j], begins[j], strict=True):
                    if start >= soonest:
                        continue
                    spend(20 + placed + gpus)
                    end = start + tasks[j].p
                    spent = cost + weights[j] * (end - tasks[j].s)
                    bound, free = spent, after(servers, row, at, start, end)
                    if others:
                        for (_, kind), times in zip(servers, free, strict=True):
                            bound += sum(map(worth[kind].__getitem__, times))
                    for i in others:
                        bound += min(
                            best[i][kind][min(earliest(tasks[i], free, each) for each in listed)]
                            for kind, listed in places[i].items()
                        )
                    if bound < least:
                        states.append((begun | 1 << j, spent, free))
        layer = thin(states, weights)
    require(not layer, "bound: a schedule costs less than what is stated")


def earliest(task: RigidTask, row: Row, placement: Placement) -> int:
    """First start on a placement."""
    if len(placement) == 1:
        ((at, count),) = placement
        return max(task.s, row[at][count - 1])
    return max(task.s, *(row[at][count - 1] for at, count in placement))

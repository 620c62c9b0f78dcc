"""Certificates of kind ``sequences``: an enumeration, with the prices that keep it short.

Jobs in one piece whose costs rise with their completions: some optimal schedule starts them in a
sequence, each as early as its placement and the start of the one in front of it allow. All that
those behind need to know is when each GPU becomes free. The judge makes all sequences, a job longer
in each layer, and drops

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
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter, sub
from typing import Any, NamedTuple

from .reading import Progress, require, spend

Row = tuple[tuple[int, ...], ...]
"""When the GPUs of each server become free, in order; a pool is one server."""
Placement = tuple[tuple[int, int], ...]  # servers by position, GPUs on each
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


def placements(gpus: int, sizes: Sequence[int]) -> Iterator[Placement]:
    """All on one server; where none is so large, whole servers and part of one at most."""
    if gpus <= max(sizes):
        yield from (((at, gpus),) for at, size in enumerate(sizes) if size >= gpus)
        return
    largest, behind = max(sizes), [*accumulate(reversed(sizes), initial=0)][::-1]
    stack: list[tuple[int, int, Placement]] = [(0, gpus, ())]
    while stack:
        at, rest, whole = stack.pop()
        if at == len(sizes) or rest - behind[at] >= largest:
            continue  # what is left never holds the rest
        spend(20)
        stack.append((at + 1, rest, whole))
        if (left := rest - sizes[at]) >= 0:
            taken = (*whole, (at, sizes[at]))
            stack.append((at + 1, left, taken))
            if left == 0:
                yield taken
            elif left < largest:
                others = set(range(len(sizes))) - {server for server, _ in taken}
                yield from ((*taken, (o, left)) for o in sorted(others) if sizes[o] > left)


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


def after(row: Row, placement: Placement, start: int, end: int) -> Row:
    """When GPUs become free once a job runs; servers of one size in order of that."""
    held = dict(placement)
    servers = []
    for at, free in enumerate(row):
        count = held.get(at, 0)
        left = [time if time > start else start for time in free[count:]]
        servers.append(tuple(sorted(left + [end] * count)))
    return tuple(servers if len(servers) == 1 else sorted(servers, key=lambda s: (len(s), s)))


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
    tasks: Sequence[RigidTask], sizes: Sequence[int], places: Sequence[Sequence[Placement]],
    priced: Sequence[tuple[Sequence[int], Callable[[int], int]]], least: int, tell: Progress,
) -> None:  # fmt: skip
    """Refuse unless every schedule costs at least `least`.

    `priced` are cuts and running integral of the prices by layer, free of charge from the last cut
    on; `sizes` rise, and `places` are each job's placements.
    """
    weights, everything = [task.cost for task in tasks], range(len(tasks))
    spend(100 * sum(sizes))
    row: Row = tuple((0,) * size for size in sizes)
    layer: list[State] = [(0, 0, row)]
    known: Any = None
    for depth, prices in enumerate(priced):
        tell(depth, len(tasks), "layer")
        if known is not prices:
            known, (cuts, paid) = prices, prices
            best = [responses(task, cuts, paid) for task in tasks]
            worth = left_of(paid, cuts[-1])
            spend(20 * len(tasks) * len(cuts))
        states: list[State] = []
        for begun, cost, row in layer:
            rest = [j for j in everything if not begun >> j & 1]
            placed = sum(len(places[j]) for j in rest)
            spend(10 + len(tasks) + placed)
            begins = {j: [earliest(tasks[j], row, at) for at in places[j]] for j in rest}
            soonest = min(min(begins[j]) + tasks[j].p for j in rest)
            for j in rest:
                others = [i for i in rest if i != j]
                for at, start in zip(places[j], begins[j], strict=True):
                    if start >= soonest:
                        continue
                    spend(20 + placed + sum(sizes))
                    end = start + tasks[j].p
                    spent, free = cost + weights[j] * (end - tasks[j].s), after(row, at, start, end)
                    bound = spent
                    if others:
                        bound += sum(sum(map(worth.__getitem__, server)) for server in free)
                    for i in others:
                        place = min(earliest(tasks[i], free, each) for each in places[i])
                        bound += best[i][place]
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

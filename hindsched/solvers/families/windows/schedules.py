"""Best schedules of single jobs against prices and what is left of the servers."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import loosened
from hindsched.instances.modes import Modes, WindowInstance
from hindsched.limits import check_memory
from hindsched.solutions.window_solution import WindowRow, row_use
from hindsched.solvers.kernels.placement import UNLIMITED, Kinds, Range, no_limits
from hindsched.solvers.kernels.windows.cheapest_window import cheapest_window


def cheapest_row(
    instance: WindowInstance, table: Modes, base: Floats, starts: tuple[int, int],
    ends: tuple[int, int], free: Floats, prices: Floats, *, quota: Ints | None = None,
    on_worker: Range | None = None, on_ps: Range | None = None, limit: float = np.inf,
    greedy: bool = False, least: Floats | None = None,
) -> tuple[float, WindowRow] | None:  # fmt: skip
    """Least cost and a schedule of it, up to ties, below `limit`; see `cheapest_window`.

    `starts` and `ends` are the first and last slots of each, `least` what `unit_prices_by_slot`
    says of these prices, where it is known.
    """
    servers = len(instance.server_capacity)
    worker, server = map(np.ascontiguousarray, (instance.worker_demand, instance.ps_demand))
    kinds = Kinds(worker, server, np.ascontiguousarray(instance.ps_ratio), instance.has_ps)
    anywhere = no_limits(servers)
    sums = np.zeros((*prices.shape[:2], prices.shape[2] + 1))
    np.cumsum(prices, axis=2, out=sums[:, :, 1:])
    least = unit_prices_by_slot(instance, prices) if least is None else least
    floor = np.zeros((len(least), sums.shape[2]))
    np.cumsum(least, axis=1, out=floor[:, 1:])
    if quota is None:
        quota = np.full((len(floor), prices.shape[2]), UNLIMITED)
    workers, ps = np.zeros((2, servers), dtype=np.int64)
    cost, mode, start = cheapest_window(
        base, starts, ends, table.columns, tuple(kinds), free, sums, floor, quota,
        tuple(on_worker or anywhere), tuple(on_ps or anywhere), limit, greedy, workers, ps,
    )  # fmt: skip
    if mode < 0:
        return None
    m, p, _, _, length = (int(column[mode]) for column in table.columns)
    p = p if instance.has_ps else -1
    return float(cost), WindowRow(int(start), int(start) + length - 1, m, p, workers, ps)


def unit_prices_by_slot(instance: WindowInstance, prices: Floats) -> Floats:
    """What the cheapest unit of each slot costs, (types, slots), workers before PSs."""
    demands = np.concatenate((instance.worker_demand, instance.ps_demand))
    least: Floats = (demands @ prices).min(axis=0)
    return least


class ScheduleSearch:
    """Cheapest schedules in slots 1 .. `slots` of a cluster whose free capacity and prices change.

    The instance is the cluster; its jobs do not matter.
    """

    def __init__(self, instance: WindowInstance, slots: int) -> None:
        self.instance, self.slots = instance, slots
        capacity: Floats = instance.server_capacity
        check_memory(f"a search over {slots} slots", 8.0 * slots * capacity.size * 3)
        self.residual: Floats = np.repeat(loosened(capacity, capacity)[:, :, None], slots, axis=2)
        """Free capacity, `loosened`, shape (servers, resources, slots)."""
        self.prices: Floats = np.zeros_like(self.residual)  # changed by `post` alone
        self._least = unit_prices_by_slot(instance, self.prices)

    def post(self, first: int, prices: Floats) -> None:
        """Change the prices of the slots from `first` on, shape as `residual`."""
        changed = slice(first - 1, first - 1 + prices.shape[2])
        self.prices[:, :, changed] = prices
        self._least[:, changed] = unit_prices_by_slot(self.instance, prices)

    def cheapest(
        self, table: Modes, *, rate: float = 0.0, limit: float = np.inf, earliest: int = 1,
        last: int | None = None, greedy: bool = False,
    ) -> WindowRow | None:  # fmt: skip
        """Cheapest schedule of a job below `limit` that fits what is free; None if there is none.

        It costs its resources and `rate` a slot of completion, and runs in the slots `earliest` ..
        `last`. `greedy` places by Algorithm 4 of batchsched as printed (with its repairs) instead
        of exactly.
        """
        stop = self.slots if last is None else min(last, self.slots)
        base = rate * np.arange(1.0, self.slots + 2)
        best = cheapest_row(
            self.instance, table, base, (earliest, stop), (1, stop), self.residual, self.prices,
            limit=limit, greedy=greedy, least=self._least,
        )  # fmt: skip
        return None if best is None else best[1]

    def price(self, row: WindowRow) -> float:
        """What a schedule's resources cost."""
        paid = self.prices[:, :, row.first - 1 : row.last].sum(axis=2)
        return float((paid * row_use(self.instance, row)).sum())

    def book(self, row: WindowRow, sign: float = 1.0) -> None:
        """Take a schedule's resources from what is free (``sign=-1`` gives them back)."""
        used = sign * row_use(self.instance, row)
        self.residual[:, :, row.first - 1 : row.last] -= used[:, :, None]

"""``central``: each job goes as a whole to the one data centre that is cheapest for it alone."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.online.mlbroker.dynamics import Broker


class Central(Broker):
    """PS and all workers in the centre of least full price, transfer and launch, anew each slot.

    Data that may not leave its centre keeps its workers there, the rest is brought together
    (C4 = 0 without pinned data).
    """

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Choose each job's centre by itself."""
        workers = np.zeros(view.data.shape, dtype=np.int64)
        ps = np.zeros(len(view.jobs), dtype=np.int64)
        for j in range(len(view.jobs)):
            stays = view.pinned[j]
            reach = np.where(np.isinf(view.arc[j]), 0.0, view.arc[j])
            best = np.inf
            for r in range(view.num_centers):
                placed = stays.copy()
                placed[r] = max(placed[r], view.needed[j] - (stays.sum() - stays[r]))
                price = view.unit[r] @ (view.worker[j] * placed[r] + view.server[j])
                moved = np.where(stays > 0, 0.0, view.data[j]) @ reach[:, r]
                cost = price + moved + launch[j, r]
                if cost < best:
                    best, workers[j], ps[j] = cost, placed, r
        return workers, ps

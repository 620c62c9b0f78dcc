"""``local``: data is trained where it is collected; the PS stands in a random data centre."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.mlbroker.instance import workers_for
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.online.mlbroker.dynamics import Broker
from hindsched.online.protocol import draws


class Local(Broker):
    """ceil(D / P) workers in every centre; the PS is drawn uniformly once, at arrival (C1 = 0)."""

    randomised = True

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Workers where the data is."""
        workers = workers_for(view.data[:, :, None], view.capacity[:, None])
        ps = [int(draws(self.seed, name, "ps").integers(view.num_centers)) for name in view.jobs]
        return workers, np.array(ps, dtype=np.int64)

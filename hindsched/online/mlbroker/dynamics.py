"""What mlbroker's decisions do: what the simulator keeps, and the frame of a per-slot broker.

Every live job must be placed in every slot of its life, the data of the slot must fit on its
workers, and a slot that was placed is never placed again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.mlbroker.instance import MlbrokerInstance, MlbrokerJob
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.online.cluster_state import ClusterState
from hindsched.online.protocol import (
    NOTHING,
    Capabilities,
    Decision,
    Environment,
    JobUpdates,
    OnlineAlgorithm,
)
from hindsched.solutions.base import Assignment
from hindsched.solutions.mlbroker.solution import used_by
from hindsched.solutions.rows import write_counts


class MlbrokerState(ClusterState[MlbrokerJob]):
    """Placements slot by slot; what a slot brings is told in it."""

    instance: MlbrokerInstance

    def shown(self, job: MlbrokerJob, card: Capabilities) -> MlbrokerJob:
        """A job's data of later slots is a forecast: only algorithms whose card says so get it."""
        if card.clairvoyant or card.forecasts is not None:
            return super().shown(job, card)  # type: ignore[no-any-return]
        return job.model_copy(update={"data_gb": job.data_gb[:1]}, deep=True)

    def news(self, slot: int) -> dict[str, dict[str, list[float]]]:
        """Data of every live job in `slot`."""
        return {
            job.name: {"data_gb": list(job.data_gb[slot - job.arrival])}
            for job in self.instance.jobs
            if job.arrival <= slot <= job.departure
        }


class Broker(OnlineAlgorithm):
    """Frame of the algorithms that place all live jobs slot by slot.

    Subclasses give `place`. Of a job's data only the present slot's is handed to them; its record
    holds no later one unless the algorithm's card says that it has forecasts.
    """

    def start(self, environment: Environment) -> None:
        """Begin without jobs."""
        cluster: MlbrokerInstance = environment.cluster
        self.environment, self.cluster, self.seed = environment, cluster, environment.seed
        self.names = [center.name for center in cluster.datacenters]
        self.live: list[MlbrokerJob] = []
        self.present: dict[str, Bools] = {}

    def told(self, slot: int, news: JobUpdates) -> None:
        """Keep the live jobs' data of this slot."""
        self.data_now = {name: facts["data_gb"] for name, facts in news.items()}

    def step(self, slot: int, arrivals: tuple[MlbrokerJob, ...]) -> Decision:
        """Place all live jobs for this slot."""
        self.live = [job for job in (*self.live, *arrivals) if job.departure >= slot]
        if not self.live:
            self.present = {}
            return NOTHING
        now = []
        for job in self.live:
            today = {"arrival": slot, "departure": slot, "data_gb": (self.data_now[job.name],)}
            now.append(job.model_copy(update=today))
        view = SlotData.at(self.cluster.with_jobs(tuple(now)), slot)
        workers, ps = self.place(slot, view, view.deployment[:, None] * ~self.held())
        self.present = dict(zip(view.jobs, used_by(workers, ps), strict=True))
        rows: dict[str, Sequence[Assignment]] = {}
        for name, counts, center in zip(view.jobs, workers, ps.tolist(), strict=True):
            placed = {"workers": write_counts(counts, self.names), "ps": self.names[center]}
            rows[name] = [{"from": slot, "to": slot, **placed}]
        return Decision(rows, tuple(job.name for job in arrivals))

    def held(self) -> Bools:
        """Where each live job ran in the slot before, (J, R)."""
        nowhere = np.zeros(len(self.names), dtype=bool)
        return np.array([self.present.get(job.name, nowhere) for job in self.live], dtype=bool)

    @abstractmethod
    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Workers (J, R) and PS positions (J,) of the live jobs in `slot`."""

"""``dual-price`` in the edgecloud family: every job must finish, so the horizon can grow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import Refused, SolveFailed
from hindsched.instances.decimals import loosened
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.edgecloud.resources import place_name
from hindsched.online.engines.dual_price import DualPrice
from hindsched.online.protocol import Environment
from hindsched.solutions.base import Assignment
from hindsched.solvers.families.edgecloud.oracle import EdgecloudOracle
from hindsched.solvers.oracles.base import BlockOracle, build_oracle

DOUBLINGS = 12
"""How often the horizon is doubled before a job counts as impossible to place."""


class EdgecloudDualPrice(DualPrice):
    """Best responses to the duals of the relaxed program without migration.

    A job that finds no room within the horizon makes the horizon twice as long instead of being
    refused. Once placed, a job keeps its slots: this algorithm does not preempt. It places a job
    where workers, storage and parameter servers (PSs) are left.
    """

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster, prices 0 and all PSs free."""
        super().start(environment)
        self._ps_use: dict[tuple[int, str, int], int] = {}  # (place, type, slot) -> PSs taken

    def _respond(self, oracle: BlockOracle, block: int) -> list[Assignment] | None:
        cluster = self._environment.cluster
        assert isinstance(oracle, EdgecloudOracle)
        assert isinstance(cluster, EdgecloudInstance)
        job = oracle.instance.jobs[block]
        if not cluster.has_cloud(job) and not self._can_be_stored(job):
            detail = "no server has room, and the cloud has no worker for it"
            raise Refused("(7b)", f"job {job.name}", detail)
        for _ in range(DOUBLINGS):
            if oracle.rows.size != self._residual.size:
                longer = self._environment.cluster.with_jobs(oracle.instance.jobs)
                formulation = self._environment.formulation
                oracle = build_oracle(longer, formulation, rows="servers")
            rows = super()._respond(oracle, block)
            if rows is not None:
                return self._with_ps(oracle, job, rows)
            self._lengthen()
        raise SolveFailed(f"dual-price finds no place for {oracle.block_name(block)}")

    def _can_be_stored(self, job: EdgecloudJob) -> bool:
        """Whether the edge has room for all chunks, if it has it from the arrival on."""
        cluster = self._environment.cluster
        assert isinstance(cluster, EdgecloudInstance)
        if not job.chunk_gb:
            return True
        left = self._layout.unpack(self._residual).get("storage")
        limited = np.flatnonzero(np.isfinite(cluster.storage_gb)).tolist()
        room = 0.0
        for s, _ in cluster.places(job):
            if s not in limited or left is None:
                return True
            free = loosened(left[limited.index(s), job.arrival - 1], cluster.storage_gb[s])
            room += float(free // job.chunk_gb)
        return room >= job.chunks

    def _with_ps(
        self, oracle: BlockOracle, job: EdgecloudJob, rows: list[Assignment]
    ) -> list[Assignment]:
        """The same rows with PSs that are free where they are numbered, at the edge if possible."""
        cluster = self._environment.cluster
        assert isinstance(oracle, EdgecloudOracle)
        assert isinstance(cluster, EdgecloudInstance)
        kind = job.ps_type
        in_cloud = cluster.cloud_ps(kind)
        if in_cloud is None:
            return rows
        cloud = len(cluster.servers)
        counts = {s: n for (s, k), n in cluster.ps_counts.items() if k == kind}
        spans = [(row["from"], row["to"]) for row in rows if "ps" in row]
        slots = [t for first, last in spans for t in range(first, last + 1)]
        taken = [self._ps_use.get((cloud, kind, t), 0) for t in slots]
        if all("worker" not in row for row in rows) and max(taken) < in_cloud:
            counts = {}
        found = [row for row in rows if "ps" not in row]
        base = oracle.priced.ps_row("cloud_parameter_servers", kind) - 1
        for t in slots:
            free = (s for s, n in counts.items() if self._ps_use.get((s, kind, t), 0) < n)
            place = next(free, cloud)
            self._ps_use[place, kind, t] = self._ps_use.get((place, kind, t), 0) + 1
            self._residual[base + t] = in_cloud - self._ps_use.get((cloud, kind, t), 0)
            name = place_name(cluster, place)
            if found[-1].get("ps") == name and found[-1]["to"] == t - 1:
                found[-1]["to"] = t
            else:
                found.append({"ps": name, "from": t, "to": t})
        return found

    def _lengthen(self) -> None:
        """Double the horizon; the new slots are free and cost nothing."""
        cluster = self._environment.cluster
        longer = cluster.model_copy(update={"horizon": 2 * cluster.horizon})
        self._environment = replace(self._environment, cluster=longer)
        self._rolling.move_to(longer)
        layout = build_oracle(longer, self._environment.formulation, rows="servers").rows
        self._prices = layout.pack(_widened(self._layout.unpack(self._prices), cluster.horizon))
        used = self._layout.capacity - self._residual
        wide = layout.pack(_widened(self._layout.unpack(used), cluster.horizon))
        self._residual = layout.capacity - wide
        self._layout = layout


def _widened(arrays: dict[str, Floats], width: int) -> dict[str, Floats]:
    return {name: np.pad(array, ((0, 0), (0, width))) for name, array in arrays.items()}

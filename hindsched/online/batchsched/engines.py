"""The shared engines for batchsched: slots without end, programs without presolve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.base import Instance
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.batchsched.modes import modes
from hindsched.online.engines.dual_price import DualPrice
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.protocol import Decision, Environment
from hindsched.solutions.base import Assignment
from hindsched.solvers.families.batchsched.oracle import ServerOracle
from hindsched.solvers.oracles.base import BlockOracle


class BatchschedReoptimise(Reoptimise):
    """`Reoptimise`; HiGHS' presolve takes most of the time of programs of modes on real servers."""

    solver_options: ClassVar[Mapping[str, object]] = {"presolve": "off"}


class BatchschedDualPrice(DualPrice):
    """Best responses to the capacity duals of the relaxation over the jobs seen so far.

    The relaxation is that of the mode-based program over real servers, so this is for small
    clusters: its size grows with modes x starts x servers.

    Parameters
    ----------
    iterations : int
        Simplex iterations a relaxation; see `DualPrice`.
    """

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster and prices 0."""
        self._slots = max(8, environment.cluster.horizon)
        self._last = 0
        super().start(environment)

    def build_oracle(self, cluster: Instance, formulation: str) -> BlockOracle:
        """Oracle over as many slots as are laid out now."""
        assert isinstance(cluster, BatchschedInstance)
        return ServerOracle(cluster, formulation, self._slots)

    def step(self, slot: int, arrivals: tuple[BatchschedJob, ...]) -> Decision:
        """Lay out enough slots for the arrivals to run one after the other behind all others."""
        cluster = self._environment.cluster
        assert isinstance(cluster, BatchschedInstance)
        last = self._last
        longest = sum(int(modes(cluster, job).duration.max()) for job in arrivals)
        self._grow(max(slot, last + 1) + longest)
        return super().step(slot, arrivals)

    def _respond(self, oracle: BlockOracle, block: int) -> list[Assignment] | None:
        """Best response; every job must run, so slots are added until one fits."""
        while True:
            rows = super()._respond(oracle, block)
            if rows is not None:
                self._last = max([self._last, *(row["to"] for row in rows)])
                return rows
            self._grow(2 * self._slots)
            oracle = self.build_oracle(oracle.instance, oracle.formulation)

    def _grow(self, slots: int) -> None:
        if slots <= self._slots:
            return
        old = self._layout.sets[0].shape
        more = max(slots, 2 * self._slots) - self._slots
        self._slots += more
        environment = self._environment
        self._layout = self.build_oracle(environment.cluster, environment.formulation).rows
        wide = ((0, 0), (0, 0), (0, more))
        self._prices = np.pad(self._prices.reshape(old), wide).ravel()
        residual = self._layout.capacity.reshape(self._layout.sets[0].shape).copy()
        residual[:, :, : old[2]] = self._residual.reshape(old)
        self._residual = residual.ravel()

    def lay_out(self, prices: Mapping[str, Floats]) -> Floats:
        """Lay the program's slots out on the oracle's, which may be more or fewer."""
        found = prices["capacity"]
        common = min(found.shape[-1], self._slots)
        spread = np.zeros(self._layout.sets[0].shape)
        spread[:, :, :common] = found[..., :common]
        return spread.ravel()

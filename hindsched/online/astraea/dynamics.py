"""What astraea's decisions do, and the cluster as gang schedulers see it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob, private_units
from hindsched.instances.modes import minibatch_times, most_workers
from hindsched.online.baselines.cluster import (
    Counts,
    Gang,
    GangCluster,
    Placement,
    drawn_gang,
    fill,
    gang_width,
)
from hindsched.online.cluster_state import OptionalJobsState
from hindsched.online.protocol import Environment


class AstraeaState(OptionalJobsState[AstraeaJob]):
    """Rows of windows; jobs that did not do their work in time were given up."""

    def reveal_slot(self, job: AstraeaJob) -> int:
        """A job that arrives at time r is told in slot r + 1, the first it may use."""
        return job.arrival + 1


class AstraeaCluster(GangCluster):
    """Gangs of a fixed number of workers around one PS host.

    A job uses the pair of types with the least time per mini-batch over several servers among those
    of which its gang fits the empty cluster. `place` is first fit, blind to locality: workers on
    the first servers with room, the PSs that (3i) then needs on the first server with room for
    them; where none has, on the first that has when it is filled first. `place_at_home` is HiveD's:
    a tenant's own servers are virtual, and while guaranteed jobs use one it is bound to a server of
    its shape, that where others occupy least when it is bound.
    """

    instance: AstraeaInstance

    def __init__(self, environment: Environment) -> None:
        instance: AstraeaInstance = environment.cluster
        super().__init__(environment, instance.server_capacity.copy())
        units_by_tenant = private_units(instance).astype(float)
        names = [tenant.name for tenant in instance.tenants]
        self._empty_homes = dict(zip(names, units_by_tenant, strict=True))
        self._homes = {name: units.copy() for name, units in self._empty_homes.items()}
        self._bound: dict[int, int] = {}
        self._users: dict[int, int] = {}
        self._alike = [
            np.flatnonzero((self.empty == shape).all(axis=1)).tolist() for shape in self.empty
        ]

    # Gangs

    def choose_gang(self, job: AstraeaJob) -> Gang:
        """The widest gang up to the width wished for that fits at all."""
        most = most_workers(self.instance, job)
        width = gang_width(self.gangs, lambda: self.drawn_workers(job), most)
        times = minibatch_times(self.instance, job)[:, :, 0, 0]
        for count in range(width, 0, -1):
            for pair in np.argsort(times, axis=None, kind="stable"):
                w, p = (int(k) for k in np.unravel_index(pair, times.shape))
                gang = Gang(w, p, count)
                if self.find(self.empty, gang, count) is not None:
                    return gang
        return Gang(0, 0, 0)

    def drawn_workers(self, job: AstraeaJob) -> int:
        """Requested in the file, else drawn from 1..min(8, chunks) by (seed, job name)."""
        return drawn_gang(job, self.environment, job.chunks, at_most=8)

    fixed_workers = GangCluster.max_workers  # the gang is what the empty cluster holds of it

    def ps_needed(self, job: AstraeaJob, workers: int) -> int:
        """PSs that (3i) asks for beside a host with one worker."""
        return self.num_ps(self.gang(job), workers - 1)

    # Placement

    def _by_server(self, free: Floats, gang: Gang) -> tuple[Floats, Floats]:
        """What is free of workers and of PSs of the gang's types, (servers,)."""
        return free[:, gang.worker_type], free[:, len(self.instance.worker_types) + gang.ps_type]

    def find(self, free: Floats, gang: Gang, workers: int) -> tuple[Counts, Counts] | None:
        """First fit in the order of the servers."""
        room, ps = self._by_server(free, gang)
        if workers < 1 or room.sum() < workers or not ps.any():
            return None
        servers = range(len(room))
        spread = fill(room, servers, workers)
        for host in servers:
            needed = self.num_ps(gang, workers - spread.get(host, 0))
            if ps[host] >= needed:
                return spread, {host: needed} if needed else {}
        return self._around_hosts(free, gang, workers, servers)

    def _best_fit(self, free: Floats, gang: Gang) -> tuple[Counts, Counts] | None:
        """The smallest server that takes all of a gang, else the fullest servers."""
        (room, ps), count = self._by_server(free, gang), gang.workers
        if count < 1 or room.sum() < count or not ps.any():
            return None
        whole = np.flatnonzero((room >= count) & (ps >= 1))
        if whole.size:
            host = int(whole[np.argmin(room[whole])])
            needed = self.num_ps(gang, 0)
            return {host: count}, {host: needed} if needed else {}
        return self._around_hosts(free, gang, count, np.argsort(-room, kind="stable").tolist())

    def _around_hosts(
        self, free: Floats, gang: Gang, count: int, order: Sequence[int]
    ) -> tuple[Counts, Counts] | None:
        """First host in order that has the PSs needed once it is filled with workers first."""
        room, ps = self._by_server(free, gang)
        for host in order:
            spread = fill(room, (host, *(s for s in order if s != host)), count)
            needed = self.num_ps(gang, count - spread.get(host, 0))
            if ps[host] >= needed:
                return spread, {host: needed} if needed else {}
        return None

    def place_at_home(self, job: AstraeaJob, occupied: Counts) -> Placement | None:
        """Book the job's gang on what is free of its tenant's own servers, where they are bound.

        `occupied` are the workers that give way for it, by server.
        """
        virtual = self._best_fit(self._homes[job.tenant], self.gang(job))
        if virtual is None:
            return None
        for v in sorted(virtual[0].keys() | virtual[1].keys()):
            if v not in self._bound:
                taken = set(self._bound.values())
                free = [(occupied.get(s, 0), s != v, s) for s in self._alike[v] if s not in taken]
                self._bound[v] = min(free)[-1]
        real = ({self._bound[v]: n for v, n in counts.items()} for counts in virtual)
        return self.booked(job, *real, home=virtual)

    def ever_fits_home(self, job: AstraeaJob) -> bool:
        """Whether the job's gang fits its tenant's own servers while they are empty."""
        return self._best_fit(self._empty_homes[job.tenant], self.gang(job)) is not None

    def change(self, job: AstraeaJob, placement: Placement, sign: int) -> None:
        """Add `sign` times a placement's resources to what is free, also of its virtual servers."""
        super().change(job, placement, sign)
        virtual = placement.facts.get("home", ({}, {}))
        for role, counts in zip(("workers", "ps"), virtual, strict=True):
            for v, count in counts.items():
                self._homes[job.tenant][v] += sign * count * self.unit(job, role)
        for v in virtual[0].keys() | virtual[1].keys():
            self._users[v] = self._users.get(v, 0) - sign
            if not self._users[v]:
                del self._bound[v]

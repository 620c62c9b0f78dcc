"""What astraea's decisions do: rows on servers, refused where they break a constraint.

What rivals see of the cluster stands in `astraea_cluster` (gangs) and `astraea_private` (tenants'
own servers).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hindsched.errors import Refused
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.base import Instance
from hindsched.instances.modes import in_pieces
from hindsched.online.astraea.cluster import AstraeaCluster, build_cluster
from hindsched.online.astraea.private import private_clusters
from hindsched.online.cluster_state import TruthOfWhole, read_or_refuse, whole_window
from hindsched.online.protocol import Environment
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.astraea.solution import read_row, row_progress, row_violations
from hindsched.solutions.base import Assignment
from hindsched.solutions.capacity_timeline import Room

ALL = slice(None)


class Truth(TruthOfWhole[AstraeaJob]):
    """Books rows on servers and refuses those that break a constraint of (3).

    An algorithm outside the feasible set may break (3i) and may pause, resize or move a job; its
    solution says so in its violations. A placement past the horizon is always refused.
    """

    instance: AstraeaInstance

    def __init__(self, instance: Instance, environment: Environment) -> None:
        super().__init__(instance, environment)
        self._free = {
            "(3c)": Room(self.instance.worker_count), "(3d)": Room(self.instance.ps_count),
        }  # fmt: skip
        self._rows: dict[str, list[AstraeaRow]] = {}
        self._left = {job.name: Fraction(job.total_minibatches) for job in self.instance.jobs}

    def reveal_slot(self, job: AstraeaJob) -> int:
        """A job that arrives at time r is told in slot r + 1, the first it may use."""
        return job.arrival + 1

    def check_row(self, slot: int, job: AstraeaJob, row: Assignment) -> None:
        """Check one more row against all rows so far and book its use."""
        read, where = read_or_refuse(read_row, self.instance, job.name, row)
        for broken in row_violations(self.instance, job, read):
            if broken.constraint != "(3i)" or self.environment.in_feasible_set:
                raise Refused(broken.constraint, broken.where, f"by {broken.amount:.6g}")
        earlier = self._rows.setdefault(job.name, [])
        if any(old.first <= read.last and read.first <= old.last for old in earlier):
            raise Refused("(3l)", where, "the job already runs then")
        in_one_piece = not in_pieces(self.environment.formulation)
        if earlier and in_one_piece and self.environment.in_feasible_set:
            if read.first != earlier[-1].last + 1:
                raise Refused("(3l)", where, "the job paused")
            if not read.same_placement(earlier[-1]):
                raise Refused("(3f)", where, "the placement changed")
        uses = {"(3c)": (read.workers, read.worker_type), "(3d)": (read.ps, read.ps_type)}
        for number, (counts, kind) in uses.items():
            left = self._free[number].window(read.first, read.last, ALL, kind) - counts
            if (left < 0).any():
                at, server = np.unravel_index(int(np.argmin(left)), left.shape)
                name = self.instance.servers[int(server)].name
                place = f"{where}, server {name}, slot {read.first + int(at)}"
                raise Refused(number, place, f"lacks {-int(left.min())}")
        for number, (counts, kind) in uses.items():
            self._free[number].book(read.first, read.last, counts, ALL, kind)
        earlier.append(read)
        self._left[job.name] -= read.slots * row_progress(self.instance, job, read)

    def is_finished(self, job: AstraeaJob) -> bool:
        """Whether its minibatches are done."""
        return self._left[job.name] <= 0


promised_rows = whole_window


__all__ = ["AstraeaCluster", "Truth", "build_cluster", "private_clusters", "promised_rows"]

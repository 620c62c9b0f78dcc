"""Problem (2) without migration as a mixed-integer program: what A_online is allowed to do.

============  ==================================================================================
``x[j,w]``    chunks of job j on edge worker w
``xc[j]``     chunks of job j in the cloud while zeta = 0
``zeta[j]``   1 if the whole job, with its PS, is in the cloud (2g), (2h)
``y[j,w,t]``  1 if worker w trains job j in slot t; which of its chunks does not matter
``C[j,t]``    1 while job j is unfinished in slot t; the objective is their sum
``s[j,z,t]``  chunks that start in the cloud in slot t, z = zeta; only where they may have to wait
``a[j,t]``    1 if job j needs a PS in slot t; only where PSs are finite
``S[j,s,t]``  chunks stored on server s; only where storage is limited (7)
============  ==================================================================================

Chunks of a job are identical and so is their order on a worker, so no chunk index is needed.
(2e) and (2f) bind only where the cloud's PSs are finite, because n_j for zeta = 0 does not depend
on where the PS stands. ``cut_mean_busy_time`` is implied by integrality and tightens the
relaxation: the job's time is at least the mean of ``mean busy time + p / 2`` over its chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from hindsched.arrays import Ints
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model, Row
from hindsched.models.edgecloud.builder import ProgramBuilder
from hindsched.models.edgecloud.side_rows import (
    add_parameter_servers,
    add_storage,
    has_limited_storage,
    jobs_with_finite_ps,
)
from hindsched.models.edgecloud.windows import lone_time
from hindsched.models.sums import Terms, distinct, ragged, sum_rows, variable


class NoMigrationBuilder(ProgramBuilder):
    """Builds the program group by group; one method a group of constraints."""

    name = "edgecloud_no_migration"

    def prepare(self) -> None:
        """Workers by job, and where its chunks have run."""
        instance, past = self.instance, self.past
        self.cloud = len(instance.worker_list)
        self.server = [s for s, _, _ in instance.worker_list]
        self.history = {j: past.done_on(j) for j in self.jobs}
        self.workers = {
            j: [w for _, workers in instance.places(instance.jobs[j]) for w in workers]
            for j in self.jobs
        }

    def constraints(self, m: Model) -> None:
        """Every group of rows."""
        self._dispatch_and_work(m)
        self._workers_one_job(m)
        self._completion(m)
        self._cloud(m)
        self._mean_busy_time(m)
        self._parameter_servers(m)
        self._storage(m)

    def slots(self, j: int, w: int) -> range:
        """Slots in which job j may run on worker w (2i)."""
        return range(self.first_slot(j, self.server[w]), self.last[j] + 1)

    def open_slots(self, j: int, w: int) -> Sequence[int]:
        """Those that no locked job has taken."""
        slots, busy = self.slots(j, w), self.past.busy.get(w)
        return slots if busy is None else [t for t in slots if t not in busy]

    def variables(self, m: Model) -> None:
        """x, xc and y."""
        self.y_slots = {(j, w): self.open_slots(j, w) for j in self.jobs for w in self.workers[j]}
        pairs = np.array(list(self.y_slots), dtype=np.int64).reshape(-1, 2)
        self.pair_of_y = np.repeat(np.arange(len(pairs)), [*map(len, self.y_slots.values())])
        self.y_job, self.y_worker = pairs[self.pair_of_y].T
        self.y_slot = np.array([*chain.from_iterable(self.y_slots.values())], dtype=np.int64)
        chunks = np.array(self.chunks, dtype=float)
        m.x = variable(pairs, self.whole, "(2c) chunks on an edge worker", chunks[pairs[:, 0]])
        m.xc = pyo.Var(
            self.jobs,
            domain=self.whole,
            bounds=lambda _, j: (0, self.chunks[j]),
            doc="(2c) chunks in the cloud while the PS is elsewhere",
        )
        self.y_cells = np.stack([self.y_job, self.y_worker, self.y_slot], axis=1)
        m.y = variable(self.y_cells, self.binary, "(2) the worker trains the job in this slot")
        for j in self.jobs:
            if not self.instance.has_cloud(self.instance.jobs[j]):
                m.xc[j].fix(0)

    def known_unfinished(self, j: int) -> int:
        """Last slot in which job j is unfinished whatever is done."""
        if not self.history[j]:
            ready = [self.first_slot(j, self.server[w]) for w in self.workers[j]]
            ends = [r + self.edge[j] - 1 for r in ready]
            if self.instance.has_cloud(self.instance.jobs[j]):
                ends.append(self.at_cloud[j] + self.all_cloud[j] - 1)
            alone = lone_time(self.instance, j, "no-migration")
            return max(min(ends), self.arrival[j] + alone - 1)
        last = [run.last for run in self.past.rows if run.job == j]
        return max(self.arrival[j] - 1, *last)

    def _dispatch_and_work(self, m: Model) -> None:
        """Every chunk has one home (2c); on it, it is trained for all epochs (2b)."""
        pairs, chunks = list(self.y_slots), np.array([float(self.chunks[j]) for j in self.jobs])
        job = np.arange(len(self.jobs))
        job_of_x = np.repeat(job, [len(self.workers[j]) for j in self.jobs])
        homes = [  # sum over w of x[j, w] + xc[j] + chunks zeta[j] == chunks
            Terms(m.x, job_of_x, np.arange(len(pairs)), np.ones(len(pairs))),
            Terms(m.xc, job, job, np.ones(len(job))),
            Terms(m.zeta, job, job, chunks),
        ]
        m.eq_2c = sum_rows(self.jobs, homes, "==", chunks, "(2c) every chunk has one home")
        epochs = np.array([self.edge[j] for j, _ in pairs], dtype=float)
        done = np.array([sum(self.history[j].get(w, ())) for j, w in pairs], dtype=float)
        each, own = np.arange(len(m.y)), np.arange(len(pairs))
        work = [  # sum over t of y[j, w, t] == epochs x[j, w] - done
            Terms(m.y, self.pair_of_y, each, np.ones(len(each))),
            Terms(m.x, own, own, -epochs),
        ]
        m.eq_2b = sum_rows(
            pairs, work, "==", -done, "(2b) on it, a chunk is trained for all epochs"
        )
        for j, w in self.y_slots:
            started = len(self.history[j].get(w, ()))
            if started:
                m.x[j, w].setlb(started)

        def started_in_cloud(m: Model, j: int) -> Expr:
            started = len(self.history[j].get(self.cloud, ()))
            if not started:
                return pyo.Constraint.Skip
            return m.xc[j] + self.chunks[j] * m.zeta[j] >= started

        m.no_migration = pyo.Constraint(
            self.jobs, rule=started_in_cloud, doc="(ours) what has started in the cloud stays there"
        )

    def _by_job(self, values: Mapping[int, int]) -> Ints:
        """Values of the open jobs at their positions in the instance; 0 elsewhere."""
        found = np.zeros(len(self.arrival), dtype=np.int64)
        found[list(values)] = list(values.values())
        return found

    def _workers_one_job(self, m: Model) -> None:
        """A worker trains at most one job in a slot (2d)."""
        keys, row = distinct(np.stack([self.y_worker, self.y_slot], axis=1))
        users = [Terms(m.y, row, np.arange(len(row)), np.ones(len(row)))]
        m.eq_2d = sum_rows(keys, users, "<=", 1.0, "(2d) a worker trains one job at a time")

    def _completion(self, m: Model) -> None:
        """A job is unfinished in a slot if it runs then or later (2j)."""
        after = self.y_slot - self._by_job(self.known_until)[self.y_job]
        y = np.flatnonzero(after > 0)
        c = (self._by_job(self.first_c)[self.y_job] + after - 1)[y]
        row, ones = np.arange(len(y)), np.ones(len(y))
        m.eq_2j = sum_rows(
            self.y_cells[y], [Terms(m.y, row, y, ones), Terms(m.C, row, c, -ones)], "<=", 0.0,
            "(2j) a job that runs is unfinished",
        )  # fmt: skip

    def _cloud(self, m: Model) -> None:
        """Chunks in the cloud: no preemption there, so a start fixes the end (2b), (2j)."""
        unlimited = [j for j in self.jobs if not self.finite[j]]
        m.eq_2j_cloud = pyo.ConstraintList(
            doc="(2j) a job is unfinished until its chunks in the cloud have ended"
        )
        for j in self.jobs:
            self._continue_in_cloud(m, j)
        for j in unlimited:
            started = len(self.history[j].get(self.cloud, ()))
            if started < self.chunks[j]:
                end = self.at_cloud[j] - 1
                self._add(m, self.unfinished_at(m, j, end + self.all_cloud[j], m.zeta[j]))
                fresh = (m.xc[j] - started) / self.chunks[j]
                self._add(m, self.unfinished_at(m, j, end + self.edge[j], fresh))
        self._finite_cloud(m, [j for j in self.jobs if self.finite[j]])

    def _add(self, m: Model, constraint: Row) -> None:
        if constraint is not pyo.Constraint.Skip:
            m.eq_2j_cloud.add(constraint)

    def _continue_in_cloud(self, m: Model, j: int) -> None:
        for done in self.history[j].get(self.cloud, ()):
            end = self.past.now - done - 1
            if self.all_cloud[j] > done:
                self._add(m, self.unfinished_at(m, j, end + self.all_cloud[j], m.zeta[j]))
            if self.edge[j] > done:
                self._add(m, self.unfinished_at(m, j, end + self.edge[j], 1 - m.zeta[j]))

    def _finite_cloud(self, m: Model, jobs: list[int]) -> None:
        """Where the cloud is finite, or its PSs, chunks may have to wait for one (2d), (2e)."""
        length = {(j, z): (self.edge, self.all_cloud)[z][j] for j in jobs for z in (0, 1)}
        starts = [
            (j, z, t)
            for j, z in length
            if self.instance.has_cloud(self.instance.jobs[j])
            for t in range(self.at_cloud[j], self.last[j] - length[j, z] + 2)
        ]
        m.s = pyo.Var(starts, domain=self.whole, doc="(2) chunks that start in the cloud")
        by_job: dict[tuple[int, int], list[int]] = {key: [] for key in length}
        for j, z, t in starts:
            by_job[j, z].append(t)

        def count(m: Model, j: int, z: int) -> Expr:
            started = len(self.history[j].get(self.cloud, ()))
            fresh = pyo.quicksum(m.s[j, z, t] for t in by_job[j, z])
            if z:
                return fresh == (self.chunks[j] - started) * m.zeta[j]
            return fresh == m.xc[j] - started * (1 - m.zeta[j])

        m.eq_2b_cloud = pyo.Constraint(
            list(by_job), rule=count, doc="(2b) every chunk in the cloud starts once"
        )

        def finish(m: Model, j: int, z: int, t: int) -> Expr:
            return self.unfinished_at(m, j, t + length[j, z] - 1, m.s[j, z, t] / self.chunks[j])

        m.eq_2j_start = pyo.Constraint(
            starts,
            rule=finish,
            doc="(2j) a job is unfinished until what starts in the cloud has ended",
        )
        self.cloud_load: dict[tuple[int, int], list[Expr]] = {}
        for j, z, t in starts:
            for slot in range(t, t + length[j, z]):
                self.cloud_load.setdefault((j, slot), []).append(m.s[j, z, t])
        for j in jobs:
            for done in self.history[j].get(self.cloud, ()):
                for z, share in ((0, 1 - m.zeta[j]), (1, m.zeta[j])):
                    for slot in range(self.past.now, self.past.now + length[j, z] - done):
                        self.cloud_load.setdefault((j, slot), []).append(share)
        kind = {j: self.instance.jobs[j].worker_type for j in jobs}
        by_type: dict[tuple[str, int], list[Expr]] = {}
        for (j, slot), parts in self.cloud_load.items():
            if self.instance.cloud_workers(kind[j]) is not None:
                by_type.setdefault((kind[j], slot), []).extend(parts)

        def capacity(m: Model, k: str, slot: int) -> Expr:
            taken = sum(
                first <= slot <= last
                for i, first, last in self.past.cloud_busy
                if self.instance.jobs[i].worker_type == k
            )
            limit = self.instance.cloud_workers(k)
            assert limit is not None
            return pyo.quicksum(by_type[k, slot]) <= limit - taken

        m.eq_2d_cloud = pyo.Constraint(
            sorted(by_type), rule=capacity, doc="(2d) the cloud's workers of a type"
        )

    def _mean_busy_time(self, m: Model) -> None:
        """A job's time is at least the mean over its chunks of mean busy time + p / 2."""
        jobs = [j for j in self.jobs if not self.history[j]]
        row = self._by_job({j: i + 1 for i, j in enumerate(jobs)}) - 1
        place = self._by_job({j: i for i, j in enumerate(self.jobs)})
        D, p, r = (np.array(values) for values in (self.chunks, self.edge, self.arrival))
        known, size = self._by_job(self.known_until), self._by_job(self.num_c)
        of_c, at = ragged(size[jobs])
        y = np.flatnonzero(row[self.y_job] >= 0)
        j = self.y_job[y]
        busy = ((self.y_slot[y] + 0.5 - r[j]) / p[j] + 0.5) / D[j]
        cloud = [j for j in jobs if not self.finite[j]]
        wait = self._by_job(self.at_cloud)[cloud] - r[cloud]
        together = wait + np.array(self.all_cloud)[cloud]
        terms = [  # sum of C >= what runs, each by its share of the mean, less the slots known
            Terms(m.C, of_c, self._by_job(self.first_c)[jobs][of_c] + at, np.ones(len(at))),
            Terms(m.y, row[j], y, -busy),
            Terms(m.xc, row[cloud], place[cloud], -(wait + p[cloud]) / D[cloud]),
            Terms(m.zeta, row[cloud], place[cloud], -together.astype(float)),
        ]
        if len(m.s):
            j, z, t = np.array(list(m.s), dtype=np.int64).T
            length = np.where(z > 0, np.array(self.all_cloud)[j], p[j])
            s = np.flatnonzero(row[j] >= 0)
            terms.append(Terms(m.s, row[j][s], s, (-(t + length - r[j]) / D[j])[s]))
        m.cut_mean_busy_time = sum_rows(
            jobs, terms, ">=", (r - known - 1)[jobs].astype(float),
            "(ours) a job takes the mean busy time of its chunks and half a chunk",
        )  # fmt: skip

    def _runs_at(self, m: Model, j: int) -> dict[int, list[tuple[Expr, float]]]:
        """Per slot: expressions that are positive if job j runs then, and their upper bounds."""
        found: dict[int, list[tuple[Expr, float]]] = {}
        for w in self.workers[j]:
            for t in self.y_slots[j, w]:
                found.setdefault(t, []).append((m.y[j, w, t], 1.0))
        D = float(self.chunks[j])
        if self.finite[j]:
            for (i, slot), parts in self.cloud_load.items():
                if i == j:
                    found.setdefault(slot, []).append((pyo.quicksum(parts), D))
            return found
        started = self.history[j].get(self.cloud, ())
        for z, length, part in ((0, self.edge[j], m.xc[j]), (1, self.all_cloud[j], D * m.zeta[j])):
            if len(started) < D:
                for t in range(self.at_cloud[j], self.at_cloud[j] + length):
                    found.setdefault(t, []).append((part, D))
            for done in started:
                share = m.zeta[j] if z else 1 - m.zeta[j]
                for t in range(self.past.now, self.past.now + length - done):
                    found.setdefault(t, []).append((share, 1.0))
        return found

    def _parameter_servers(self, m: Model) -> None:
        watched = jobs_with_finite_ps(self.instance, self.jobs, self.edge_ps_only)
        runs = {j: self._runs_at(m, j) for j in watched}
        at_edge = {
            (j, t): [m.y[j, w, t] for w in self.workers[j] if (j, w, t) in m.y]
            for j in watched
            for t in runs[j]
        }
        add_parameter_servers(
            m,
            self.instance,
            self.past,
            runs,
            at_edge if self.edge_ps_only else {},
            relax=self.relax,
        )

    def _storage(self, m: Model) -> None:
        if not has_limited_storage(self.instance):
            return
        here = {
            (j, s): pyo.quicksum(m.x[j, w] for w in workers)
            for j in self.jobs
            for s, workers in self.instance.places(self.instance.jobs[j])
        }
        add_storage(m, self.instance, self.past, self.last, here)

"""Problem (2) as printed, with one named constraint per equation number.

============  ==================================================================================
``y[j,g,t]``  workers of group g = (server, type) that train job j in slot t
``k[j,t]``    cloud workers that train it in slot t while zeta = 0
``k1[j,t]``   the same while zeta = 1; only where they may have to wait for a worker or a PS
``zeta[j]``   1 if every worker and the PS are in the cloud (2g), (2h)
``C[j,t]``    1 while job j is unfinished in slot t (2j)
``N[j,s]``    chunks of job j that server s stores; only where storage is limited (7)
============  ==================================================================================

Nothing in (2) names a chunk, so that work may move and split between workers from slot to slot;
identical workers are counted, which loses nothing. (2a) and (2i) are kept by the index sets.
"""

from __future__ import annotations

from collections import Counter

from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model
from hindsched.models.edgecloud.builder import ProgramBuilder
from hindsched.models.edgecloud.side_rows import (
    Parts,
    add_parameter_servers,
    add_storage,
    jobs_with_finite_ps,
)
from hindsched.models.edgecloud.windows import lone_time


class LiteralBuilder(ProgramBuilder):
    """Builds the program group by group; one method a group of constraints."""

    name = "edgecloud_literal"

    def prepare(self) -> None:
        """Groups of workers, and what is done of each job."""
        instance, past = self.instance, self.past
        self.groups = list(instance.groups.items())
        self.done = {j: sum(sum(d) for d in past.done_on(j).values()) for j in self.jobs}
        self.limit = {j: instance.cloud_workers(instance.jobs[j].worker_type) for j in self.jobs}

    def constraints(self, m: Model) -> None:
        """Every group of rows."""
        self._work(m)
        self._at_once(m)
        self._capacity(m)
        self._together(m)
        self._completion(m)
        self._mean_busy_time(m)
        self._side_rows(m)

    def variables(self, m: Model) -> None:
        """y, k and k1."""
        y_keys = []
        for j in self.jobs:
            for g, ((s, kind), _) in enumerate(self.groups):
                if kind == self.instance.jobs[j].worker_type:
                    slots = range(self.first_slot(j, s), self.last[j] + 1)
                    y_keys += [(j, g, t) for t in slots]
        m.y = pyo.Var(
            y_keys,
            domain=self.whole,
            bounds=lambda _, j, g, t: (0, min(self.chunks[j], len(self.groups[g][1]))),
            doc="(2) workers of a group that train the job",
        )
        self.y_by_slot: dict[tuple[int, int], list[Expr]] = {}
        for j, g, t in y_keys:
            self.y_by_slot.setdefault((j, t), []).append(m.y[j, g, t])
        k_keys = [
            (j, t)
            for j in self.jobs
            if self.limit[j] != 0
            for t in range(self.at_cloud[j], self.last[j] + 1)
        ]
        finite = [(j, t) for j, t in k_keys if self.finite[j]]
        m.k = pyo.Var(
            k_keys,
            domain=self.whole,
            bounds=lambda _, j, t: (0, self.chunks[j]),
            doc="(2) cloud workers that train it while the PS is elsewhere",
        )
        m.k1 = pyo.Var(
            finite,
            domain=self.whole,
            bounds=lambda _, j, t: (0, self.chunks[j]),
            doc="(2) cloud workers that train it while everything is there",
        )

    def known_unfinished(self, j: int) -> int:
        """Last slot in which job j is unfinished whatever is done."""
        if self.done[j]:
            return max(run.last for run in self.past.rows if run.job == j)
        return self.arrival[j] + lone_time(self.instance, j, "literal") - 1

    def unfinished(self, m: Model, j: int, t: int) -> Expr:
        """C[j, t], or 1 where it is known to be."""
        return 1.0 if t <= self.known_until[j] else m.C[j, t]

    def _work(self, m: Model) -> None:
        """All epochs over all chunks are trained (2b)."""

        def mixed(m: Model, j: int) -> Expr:
            need = float(self.chunks[j] * self.edge[j])
            parts = [part for (i, _), ys in self.y_by_slot.items() if i == j for part in ys]
            parts += [m.k[key] for key in m.k if key[0] == j]
            return pyo.quicksum(parts) + need * m.zeta[j] >= need - self.done[j]

        m.eq_2b = pyo.Constraint(
            self.jobs, rule=mixed, doc="(2b) all epochs over all chunks are trained"
        )

        def in_cloud(m: Model, j: int) -> Expr:
            need = float(self.chunks[j] * self.all_cloud[j])
            if not self.finite[j] or m.zeta[j].fixed:
                return pyo.Constraint.Skip
            done = pyo.quicksum(m.k1[key] for key in m.k1 if key[0] == j) + self.done[j]
            return done >= need * m.zeta[j]

        m.eq_2b_cloud = pyo.Constraint(
            self.jobs, rule=in_cloud, doc="(2b) all of them, where everything is in the cloud"
        )

    def _at(self, m: Model, j: int, t: int) -> list[Expr]:
        """Workers that train job j in slot t while zeta = 0."""
        return [*self.y_by_slot.get((j, t), ()), *([m.k[j, t]] if (j, t) in m.k else ())]

    def _at_once(self, m: Model) -> None:
        """At most one worker a chunk (2c); nothing runs after the completion (2j)."""
        slots = sorted({*self.y_by_slot, *m.k})

        def lanes(m: Model, j: int, t: int) -> Expr:
            return pyo.quicksum(self._at(m, j, t)) <= self.chunks[j] * self.unfinished(m, j, t)

        m.eq_2c = pyo.Constraint(
            slots, rule=lanes, doc="(2c) one worker a chunk at most, none after the completion"
        )
        m.eq_2c_cloud = pyo.Constraint(
            list(m.k1),
            rule=lambda m, j, t: m.k1[j, t] <= self.chunks[j] * self.unfinished(m, j, t),
            doc="(2c) the same in the cloud",
        )

    def _capacity(self, m: Model) -> None:
        """A worker trains one job at a time (2d)."""
        users: dict[tuple[int, int], list[int]] = {}
        for j, g, t in m.y:
            users.setdefault((g, t), []).append(j)

        def workers(m: Model, g: int, t: int) -> Expr:
            members = self.groups[g][1]
            taken = sum(t in self.past.busy.get(w, ()) for w in members)
            return pyo.quicksum(m.y[j, g, t] for j in users[g, t]) <= len(members) - taken

        m.eq_2d = pyo.Constraint(
            sorted(users), rule=workers, doc="(2d) a worker trains one job at a time"
        )
        at_cloud: dict[tuple[str, int], list[Expr]] = {}
        for j, t in m.k1:
            if self.limit[j] is not None:
                kind = self.instance.jobs[j].worker_type
                at_cloud.setdefault((kind, t), []).extend((m.k[j, t], m.k1[j, t]))

        def cloud(m: Model, kind: str, t: int) -> Expr:
            limit = self.instance.cloud_workers(kind)
            assert limit is not None
            taken = sum(
                first <= t <= last and self.instance.jobs[j].worker_type == kind
                for j, first, last in self.past.cloud_busy
            )
            return pyo.quicksum(at_cloud[kind, t]) <= limit - taken

        m.eq_2d_cloud = pyo.Constraint(
            sorted(at_cloud), rule=cloud, doc="(2d) the cloud's workers of a type"
        )

    def _together(self, m: Model) -> None:
        """Zeta = 1 only if nothing of the job runs at the edge (2g), (2h)."""
        m.eq_2g = pyo.Constraint(
            [key for key in sorted({*self.y_by_slot, *m.k}) if not m.zeta[key[0]].fixed],
            rule=lambda m, j, t: (
                pyo.quicksum(self._at(m, j, t)) <= self.chunks[j] * (1 - m.zeta[j])
            ),
            doc="(2g) nothing at the edge while everything is in the cloud",
        )
        m.eq_2h = pyo.Constraint(
            list(m.k1),
            rule=lambda m, j, t: m.k1[j, t] <= self.chunks[j] * m.zeta[j],
            doc="(2h) nothing of the kind unless everything is in the cloud",
        )

    def _completion(self, m: Model) -> None:
        """A job is unfinished in a slot if it runs then or later (2j)."""
        m.eq_2j = pyo.Constraint(
            [key for key in m.y if key[2] > self.known_until[key[0]]],
            rule=lambda m, j, g, t: (
                m.y[j, g, t] <= min(self.chunks[j], len(self.groups[g][1])) * m.C[j, t]
            ),
            doc="(2j) a job that runs is unfinished",
        )
        m.eq_2j_cloud = pyo.ConstraintList(
            doc="(2j) a job is unfinished until its work in the cloud has ended"
        )
        for j in self.jobs:
            if self.finite[j] or m.zeta[j].fixed:
                continue
            left = self.chunks[j] * self.all_cloud[j] - self.done[j]
            end = self.at_cloud[j] + -(-left // self.chunks[j]) - 1
            row = self.unfinished_at(m, j, end, m.zeta[j])
            if row is not pyo.Constraint.Skip:
                m.eq_2j_cloud.add(row)

    def _mean_busy_time(self, m: Model) -> None:
        """Implied: with rate at most 1 / p a slot, completion >= mean busy time + p / 2."""

        def cut(m: Model, j: int) -> Expr:
            if self.done[j]:
                return pyo.Constraint.Skip
            D, p, r = self.chunks[j], self.edge[j], self.arrival[j]
            parts = []
            for (i, t), ys in self.y_by_slot.items():
                if i == j:
                    parts += [(((t + 0.5 - r) / p + 0.5) / D) * y for y in ys]
            parts += [(((t + 0.5 - r) / p + 0.5) / D) * m.k[i, t] for i, t in m.k if i == j]
            p = self.all_cloud[j]
            if not self.finite[j]:
                parts.append((self.at_cloud[j] - r + p) * m.zeta[j])
            parts += [(((t + 0.5 - r) / p + 0.5) / D) * m.k1[i, t] for i, t in m.k1 if i == j]
            return self.job_time(m, j) >= pyo.quicksum(parts)

        m.cut_mean_busy_time = pyo.Constraint(
            self.jobs, rule=cut, doc="(ours) a job takes its mean busy time and half a chunk"
        )

    def _side_rows(self, m: Model) -> None:
        watched = jobs_with_finite_ps(self.instance, self.jobs, self.edge_ps_only)
        runs = {j: self._runs_at(m, j) for j in watched}
        at_edge = {(j, t): self.y_by_slot.get((j, t), []) for j in watched for t in runs[j]}
        add_parameter_servers(
            m,
            self.instance,
            self.past,
            runs,
            at_edge if self.edge_ps_only else {},
            relax=self.relax,
        )
        servers = {g: s for g, ((s, _), _) in enumerate(self.groups)}
        limited = {s for s, gb in enumerate(self.instance.storage_gb.tolist()) if gb < float("inf")}
        pairs = {
            (j, servers[g])
            for j, g, _ in m.y
            if servers[g] in limited and self.instance.chunk_gb[j] > 0
        }
        before = self._stored_before()
        m.N = pyo.Var(
            sorted(pairs),
            bounds=lambda _, j, s: (before.get((j, s), 0), self.chunks[j]),
            doc="(7) chunks that a server stores",
        )
        keys = [key for key in m.y if (key[0], servers[key[1]]) in pairs]
        # One group a server and type: a job's workers on a server are one group.
        m.eq_7a_peak = pyo.Constraint(
            keys,
            rule=lambda m, j, g, t: m.N[j, servers[g]] >= m.y[j, g, t],
            doc="(7a) a server stores what it trains",
        )
        add_storage(m, self.instance, self.past, self.last, {pair: m.N[pair] for pair in pairs})

    def _stored_before(self) -> dict[tuple[int, int], int]:
        """Most workers of a server that have trained a job at once so far, by (job, server)."""
        workers = self.instance.worker_list
        units = Counter(
            (j, workers[place][0], t)
            for j, _, place, first, last in self.past.rows
            if place < len(workers)
            for t in range(first, min(last, self.past.now - 1) + 1)
        )
        most: dict[tuple[int, int], int] = {}
        for (j, s, _), count in units.items():
            most[j, s] = max(most.get((j, s), 0), count)
        return most

    def _runs_at(self, m: Model, j: int) -> Parts:
        found: dict[int, list[tuple[Expr, float]]] = {}
        D = float(self.chunks[j])
        for (i, t), ys in self.y_by_slot.items():
            if i == j:
                found.setdefault(t, []).append((pyo.quicksum(ys), D))
        for variables in (m.k, m.k1):
            for i, t in variables:
                if i == j:
                    found.setdefault(t, []).append((variables[i, t], D))
        if not self.finite[j]:
            for t in range(self.at_cloud[j], self.at_cloud[j] + self.all_cloud[j]):
                found.setdefault(t, []).append((m.zeta[j], 1.0))
        return found

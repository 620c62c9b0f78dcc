"""edgecloud: problem (2), with the storage of (7), in both readings.

``no-migration``: a chunk stays on the worker that it was dispatched to. ``literal``: the printed
constraints, which name no chunk; what they leave open (the rounding of a chunk's work to whole
slots) is as in the other reading.

====  =====================================================================================
p     slots of a chunk's work where zeta = 0; p1 where zeta = 1, all of the job in the cloud
C_jt  job j has not completed before slot t: the objective counts these slots
====  =====================================================================================

Slots count from 1; a job with arrival a may run on server s from slot a + Delta_js on. A PS of the
cloud serves any job, so (2e) and (2f) bind only where the cloud's PSs are numbered; a PS needs no
upload. A cloud whose workers are numbered is like a server that does not interrupt a chunk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from .milp import Milp, ceil_div

FORMULATIONS = ("no-migration", "literal")


class Statement:
    """The program and where its decisions stand."""

    def __init__(self, instance: dict[str, Any], formulation: str) -> None:
        self.instance = instance
        self.formulation = formulation
        self.program = Milp("min")
        jobs = instance["jobs"]
        self.last = self.horizon()
        self.unfinished: list[dict[int, int]] = []
        self.zeta: list[int] = []
        self.edge: dict[tuple[int, int, int], dict[int, int]] = {}
        self.cloud: dict[tuple[int, int], dict[int, int]] = {}
        """Edge: (job, server, worker or -1 for all) -> slot -> units. Cloud: (job, zeta) -> slot
        -> chunks that begin then (``no-migration``) or units that work then (``literal``)."""
        for j, job in enumerate(jobs):
            slots = range(job["arrival"], self.last + 1)
            column = {t: self.program.variable(1, 1) for t in slots}
            for t in slots[1:]:
                self.program.row([(column[t], 1), (column[t - 1], -1)], at_most=0)
            self.unfinished.append(column)
            self.zeta.append(self.program.variable(1))
            if formulation == "literal":
                self.move_freely(j)
            else:
                self.stay(j)
        self.workers()
        self.parameter_servers()
        self.storage()

    # --- numbers of a job -----------------------------------------------------------------------

    def chunk_slots(self, job: dict[str, Any], zeta: int) -> int:
        """E B / n_j in whole slots, (1)."""
        batch = Fraction(job["minibatch_slots"]) + Fraction(job["update_slots"])
        if not zeta:
            seconds = 8 * Fraction(job["gradient_mb"]) / Fraction(job["bandwidth_mbps"])
            batch += 2 * seconds / Fraction(self.instance["slot_seconds"])
        return max(1, math.ceil(job["epochs"] * job["minibatches"] * batch))

    def first(self, job: dict[str, Any], place: dict[str, Any]) -> int:
        """First slot on a server or in the cloud, (2i)."""
        return job["arrival"] + job["upload_slots"][place["name"]]

    def limit(self, kind: str, name: str) -> int | None:
        """How many workers or PSs of a type the cloud has; None if unlimited."""
        return (self.instance["cloud"].get(kind) or {}).get(name)

    def horizon(self) -> int:
        """Return a slot by which some optimal schedule is over.

        After the last upload an idle slot could be cut out of a schedule, so that all work, done
        one chunk after the other, is the longest that it may take. Where no storage is limited
        jobs can run one after the other, and none takes longer than that costs in total, less
        what the others take at least.
        """
        jobs = self.instance["jobs"]
        places = [*self.instance["servers"], self.instance["cloud"]]
        last = max(self.first(job, place) for job in jobs for place in places)
        for job in jobs:
            last += job["chunks"] * max(self.chunk_slots(job, 0), self.chunk_slots(job, 1))
        if any(server.get("storage_gb") is not None for server in self.instance["servers"]):
            return last
        least, free, cost = [], 1, 0
        for job in sorted(jobs, key=lambda job: job["arrival"]):
            ends = list(self.ends_alone(job, free))
            if not ends:
                return last
            free = min(ends)
            cost += free - job["arrival"]
            first = min(self.first(job, place) for place in places)
            least.append(first + min(self.chunk_slots(job, z) for z in (0, 1)) - job["arrival"])
        longest = cost - sum(least) + max(least)
        return min(last, max(job["arrival"] for job in jobs) - 1 + longest)

    def ends_alone(self, job: dict[str, Any], free: int) -> Iterator[int]:
        """First slots after a job that begins at `free` and has the edge, or the cloud, alone."""
        cloud, chunks = self.instance["cloud"], job["chunks"]
        edge_ps = sum(s.get("ps", []).count(job["ps_type"]) for s in self.instance["servers"])
        cloud_ps = self.limit("ps", job["ps_type"])
        workers = list(self.places(job))
        if workers and (cloud_ps is None or edge_ps + cloud_ps > 0):
            first = max(self.first(job, self.instance["servers"][s]) for s, _ in workers)
            waves = ceil_div(chunks, len(workers))
            yield max(free, first) + waves * self.chunk_slots(job, 0)
        number = self.limit("workers", job["worker_type"])
        if number != 0 and cloud_ps != 0:
            waves = 1 if number is None else ceil_div(chunks, number)
            yield max(free, self.first(job, cloud)) + waves * self.chunk_slots(job, 1)

    # --- a job's own constraints ----------------------------------------------------------------

    def places(self, job: dict[str, Any]) -> Iterator[tuple[int, int]]:
        """Servers with workers of the job's type, (2a), and these workers."""
        for s, server in enumerate(self.instance["servers"]):
            for w, kind in enumerate(server["workers"]):
                if kind == job["worker_type"]:
                    yield s, w

    def stay(self, j: int) -> None:
        """Every chunk on one worker; in the cloud without interruption."""
        program, job = self.program, self.instance["jobs"][j]
        chunks, C = job["chunks"], self.unfinished[j]
        p, p1 = self.chunk_slots(job, 0), self.chunk_slots(job, 1)
        share: list[tuple[int, int]] = [(self.zeta[j], chunks)]
        for s, w in self.places(job):
            x = program.variable(chunks)
            share.append((x, 1))
            first = self.first(job, self.instance["servers"][s])
            y = {t: program.variable(1) for t in range(first, self.last + 1)}
            program.equal([*((column, 1) for column in y.values()), (x, -p)])
            for t, column in y.items():
                program.row([(column, 1), (C[t], -1)], at_most=0)  # (2j)
            self.edge[j, s, w] = y
        for zeta, length in ((0, p), (1, p1)):
            first = self.first(job, self.instance["cloud"])
            starts = {t: program.variable(chunks) for t in range(first, self.last - length + 2)}
            for t, column in starts.items():
                program.row([(column, 1), (C[t + length - 1], -chunks)], at_most=0)  # (2j)
            begun = [(column, 1) for column in starts.values()]
            if zeta:
                program.equal([*begun, (self.zeta[j], -chunks)])  # (2g)
            else:
                share += begun
            self.cloud[j, zeta] = starts
        program.equal(share, chunks)  # (2b), (2h)

    def move_freely(self, j: int) -> None:
        """Constraints (2b), (2c), (2i) and (2j) as printed."""
        program, job = self.program, self.instance["jobs"][j]
        chunks, C = job["chunks"], self.unfinished[j]
        p, p1 = self.chunk_slots(job, 0), self.chunk_slots(job, 1)
        for s, server in enumerate(self.instance["servers"]):
            number = sum(kind == job["worker_type"] for kind in server["workers"])
            if number:
                slots = range(self.first(job, server), self.last + 1)
                self.edge[j, s, -1] = {t: program.variable(min(number, chunks)) for t in slots}
        slots = range(self.first(job, self.instance["cloud"]), self.last + 1)
        for zeta in (0, 1):
            self.cloud[j, zeta] = {t: program.variable(chunks) for t in slots}
        together = self.cloud[j, 1]
        program.row(
            [*((column, 1) for column in together.values()), (self.zeta[j], -chunks * p1)],
            at_least=0,
        )  # (2b), zeta = 1
        for column in together.values():
            program.row([(column, 1), (self.zeta[j], -chunks)], at_most=0)  # (2g)
        apart = [self.cloud[j, 0], *(y for (i, _, _), y in self.edge.items() if i == j)]
        program.row(
            [*((column, 1) for y in apart for column in y.values()), (self.zeta[j], chunks * p)],
            at_least=chunks * p,
        )  # (2b), zeta = 0
        for t, unfinished in C.items():
            terms = [(y[t], 1) for y in [*apart, together] if t in y]
            program.row([*terms, (unfinished, -chunks)], at_most=0)  # (2c), (2j)
            for y in [*apart, together]:
                if t in y:  # implied; a tighter relaxation
                    most = int(program.upper[y[t]] or 0)
                    program.row([(y[t], 1), (unfinished, -most)], at_most=0)

    # --- what jobs share ------------------------------------------------------------------------

    def cloud_use(self, j: int, zeta: int, t: int) -> list[int]:
        """Columns that count workers of the cloud in slot t."""
        columns = self.cloud[j, zeta]
        length = 1
        if self.formulation == "no-migration":
            length = self.chunk_slots(self.instance["jobs"][j], zeta)
        return [columns[start] for start in range(t - length + 1, t + 1) if start in columns]

    def workers(self) -> None:
        """Let a worker serve one job in a slot, (2d)."""
        jobs = self.instance["jobs"]
        for t in range(1, self.last + 1):
            held: dict[tuple[int, Any], list[tuple[int, int]]] = {}
            for (j, s, w), y in self.edge.items():
                if t in y:
                    key = w if w >= 0 else jobs[j]["worker_type"]
                    held.setdefault((s, key), []).append((y[t], 1))
            for (s, key), terms in held.items():
                kinds = self.instance["servers"][s]["workers"]
                most = kinds.count(key) if isinstance(key, str) else 1
                self.program.row(terms, at_most=most)
            for kind in {job["worker_type"] for job in jobs}:
                most = self.limit("workers", kind)
                if most is not None:
                    own = [j for j, job in enumerate(jobs) if job["worker_type"] == kind]
                    terms = [(c, 1) for j in own for z in (0, 1) for c in self.cloud_use(j, z, t)]
                    self.program.row(terms, at_most=most)

    def parameter_servers(self) -> None:
        """One PS for a running job, (2e), and one job for a PS, (2f)."""
        program, jobs = self.program, self.instance["jobs"]
        for kind in sorted({job["ps_type"] for job in jobs}):
            cloud = self.limit("ps", kind)
            if cloud is None:
                continue
            edge = sum(server.get("ps", []).count(kind) for server in self.instance["servers"])
            for t in range(1, self.last + 1):
                busy, together = [], []
                for j, job in enumerate(jobs):
                    if job["ps_type"] != kind or t < job["arrival"]:
                        continue
                    runs, inside = program.variable(1), program.variable(1)
                    busy.append((runs, 1))
                    together.append((inside, 1))
                    units = [y[t] for (i, _, _), y in self.edge.items() if i == j and t in y]
                    for column in [*units, *self.cloud_use(j, 0, t), *self.cloud_use(j, 1, t)]:
                        most = program.upper[column] or 0
                        program.row([(column, 1), (runs, -most)], at_most=0)
                    for column in self.cloud_use(j, 1, t):
                        most = program.upper[column] or 0
                        program.row([(column, 1), (inside, -most)], at_most=0)
                program.row(busy, at_most=edge + cloud)
                program.row(together, at_most=cloud)  # (2g)

    def storage(self) -> None:
        """A chunk takes room on its server while its job is there, (7a)-(7d)."""
        program, jobs = self.program, self.instance["jobs"]
        for s, server in enumerate(self.instance["servers"]):
            if server.get("storage_gb") is None:
                continue
            stored: dict[int, list[tuple[int, Fraction]]] = {}
            for j, job in enumerate(jobs):
                size = Fraction(job.get("chunk_gb") or 0)
                own = [y for (i, k, _), y in self.edge.items() if (i, k) == (j, s)]
                if not size or not own:
                    continue
                chunks = job["chunks"]
                number = program.variable(chunks)
                p = self.chunk_slots(job, 0)
                if self.formulation == "no-migration":
                    terms = [(column, 1) for y in own for column in y.values()]
                    program.equal([*terms, (number, -p)])
                else:
                    for column in own[0].values():
                        program.row([(column, 1), (number, -1)], at_most=0)  # (7a)
                for t, unfinished in self.unfinished[j].items():
                    held = program.variable(chunks)
                    program.row(
                        [(number, 1), (held, -1), (unfinished, chunks)], at_most=chunks
                    )  # (7c), (7d)
                    stored.setdefault(t, []).append((held, size))
            for terms in stored.values():
                program.row(terms, at_most=server["storage_gb"])  # (7b)

    # --- the answer -----------------------------------------------------------------------------

    def jobs(self, point: list[Fraction]) -> list[dict[str, Any]]:
        """Jobs of the solution file."""
        servers, cloud = self.instance["servers"], self.instance["cloud"]
        runs: dict[int, list[list[tuple[str, int | None, int]]]] = {}
        taken: set[tuple[int, int, int]] = set()
        for j in range(len(self.instance["jobs"])):
            if self.formulation == "no-migration":
                runs[j] = list(self.staying(point, j))
            else:
                runs[j] = list(self.moving(point, j, taken))
        listed = []
        holders: dict[tuple[str, int], list[int]] = {}
        for j, chunks in runs.items():
            for t in sorted({t for chunk in chunks for _, _, t in chunk}):
                holders.setdefault((self.instance["jobs"][j]["ps_type"], t), []).append(j)
        ps: dict[int, list[tuple[str, int]]] = {j: [] for j in runs}
        for (kind, t), owners in holders.items():
            free = [s["name"] for s in servers for name in s.get("ps", []) if name == kind]
            most = self.limit("ps", kind)
            left = len(owners) if most is None else most
            for j in sorted(owners, key=lambda j: not point[self.zeta[j]]):
                if left and (point[self.zeta[j]] or most is None or not free):
                    place, left = cloud["name"], left - 1
                else:
                    place = free.pop()
                ps[j].append((place, t))
        for j, job in enumerate(self.instance["jobs"]):
            rows: list[dict[str, Any]] = []
            for number, chunk in enumerate(runs[j], 1):
                for place, worker, t in sorted(chunk, key=lambda run: run[2]):
                    row = {"chunk": number, "server": place, "worker": worker, "from": t, "to": t}
                    rows.append({key: value for key, value in row.items() if value is not None})
            rows += [{"ps": place, "from": t, "to": t} for place, t in ps[j]]
            last = max(t for chunk in runs[j] for _, _, t in chunk)
            listed.append({"name": job["name"], "completion": last, "assignments": rows})
        return listed

    def staying(self, point: list[Fraction], j: int) -> Iterator[list[tuple[str, int | None, int]]]:
        """Chunks of a job as lists of (place, worker, slot)."""
        job = self.instance["jobs"][j]
        p = self.chunk_slots(job, 0)
        for (i, s, w), y in self.edge.items():
            if i == j:
                name = self.instance["servers"][s]["name"]
                used = [(name, w + 1, t) for t, column in y.items() if point[column]]
                for k in range(0, len(used), p):
                    yield used[k : k + p]
        for zeta in (0, 1):
            length = self.chunk_slots(job, zeta)
            for start, column in self.cloud[j, zeta].items():
                for _ in range(int(point[column])):
                    cloud = self.instance["cloud"]["name"]
                    yield [(cloud, None, t) for t in range(start, start + length)]

    def moving(
        self, point: list[Fraction], j: int, taken: set[tuple[int, int, int]]
    ) -> Iterator[list[tuple[str, int | None, int]]]:
        """Chunks of a job that move: in each slot those with most work left are trained."""
        job = self.instance["jobs"][j]
        zeta = int(point[self.zeta[j]])
        left = [self.chunk_slots(job, zeta)] * job["chunks"]
        chunks: list[list[tuple[str, int | None, int]]] = [[] for _ in left]
        for t in range(job["arrival"], self.last + 1):
            units: list[tuple[str, int | None]] = []
            for (i, s, _), y in self.edge.items():
                if i == j and t in y and not zeta:
                    server = self.instance["servers"][s]
                    for w, kind in enumerate(server["workers"]):
                        wanted = point[y[t]] > sum(place == server["name"] for place, _ in units)
                        if wanted and kind == job["worker_type"] and (s, w, t) not in taken:
                            taken.add((s, w, t))
                            units.append((server["name"], w + 1))
            inside = int(point[self.cloud[j, zeta][t]]) if t in self.cloud[j, zeta] else 0
            units += [(self.instance["cloud"]["name"], None)] * inside
            order = sorted(range(len(left)), key=lambda d: -left[d])
            for d, (place, worker) in zip(order, units, strict=False):
                if left[d]:
                    left[d] -= 1
                    chunks[d].append((place, worker, t))
        yield from chunks

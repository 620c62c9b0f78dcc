"""Futures that a search may change: groups of equal jobs, and the futures that have them.

*Chains* are one list of jobs, of which future k has the first k: good where jobs compete for a
place. *Ambushes* are a base that all futures have, and a burst of equal jobs that comes after one
of several slots, or never: good where who begins early blocks, and who waits pays, most of all if
the burst's numbers are at the other ends than the base's. Where a value takes long, futures begin
as *meetings*: a job that stays, and another that comes while it is there, or never; the cluster's
records are alike, so that where the job goes matters for the other's sake alone, or not. A change
is one of a field, a count, a time, a future or a job, in groups that are alike or in one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.search_space import HORIZON, SearchSpace, leaves, lists
from hindsched.json_types import Draft

TIME = ("arrival", "submit")  # when a job comes
FOLLOWING = ("departure", "deadline")  # what else of it has a time, which moves along
TRIES, DRAFTS = 200, 64
FULL = 16  # of the first candidates: ambushes with as many futures and jobs as there may be


@dataclass(frozen=True)
class Shapes:
    """Futures near what a family's generator draws, at most so many and so large.

    A tree of futures is data: ``cluster``, ``groups`` (``job``: a record, ``count``: how many) and
    ``futures`` (the groups of each).
    """

    space: SearchSpace
    jobs: int
    futures: int
    playable: bool = True  # whether values are quick; else futures begin as meetings

    def instances(self, tree: Draft) -> list[Instance]:
        """The futures' instances; `InputError` where one breaks a rule of the family."""
        made = []
        for n, members in enumerate(tree["futures"]):
            jobs = [
                {**tree["groups"][g]["job"], "name": f"j{g + 1}" if c == 0 else f"j{g + 1}.{c + 1}"}
                for g in sorted(members) for c in range(tree["groups"][g]["count"])
            ]  # fmt: skip
            made.append(self.space.instance({**tree["cluster"], "jobs": jobs}, f"future-{n}"))
        return made

    def propose(self, best: Draft | None, seed: int, number: int) -> Draft:
        """A tree: drawn, or the best one with a few things changed; the same for a number."""
        random, wrong = np.random.default_rng((seed, number)), ""
        drawn = best is None or number < FULL or random.random() < (0.5 if number < 400 else 0.1)
        for tried in range(TRIES):
            if best is not None and not drawn:
                made = deepcopy(best)
            elif self.playable:  # numbers at their ends may fit into no cluster
                made = self._drawn(random, number < FULL and 2 * tried < TRIES)
            else:
                made = self._meeting(random)
            try:
                for _ in range(0 if drawn else 1 + int(random.geometric(0.6))):
                    self._change(made, random)
                self._check(made)
            except ValueError as error:
                wrong = str(error)
                continue
            return made
        if best is not None:
            return best
        raise InputError("ranges", self.space.preset, f"give no futures: {wrong}")

    def _check(self, tree: Draft) -> None:
        sizes = [sum(tree["groups"][g]["count"] for g in members) for members in tree["futures"]]
        if not 2 <= len(sizes) <= self.futures or not 1 <= min(sizes) <= max(sizes) <= self.jobs:
            raise ValueError(f"{len(sizes)} futures of {min(sizes, default=0)} jobs at least")
        if len(set(map(str, tree["futures"]))) < len(sizes):
            raise ValueError("two futures are the same")
        self.instances(tree)

    @cached_property
    def _drafts(self) -> list[tuple[list[Draft], Draft]]:
        """Jobs and clusters of the generator; what they are due is of other problems."""
        drafts = list[tuple[list[Draft], Draft]]()
        for number in range(DRAFTS):
            data = self.space.candidate(np.random.default_rng(number))
            jobs = [{k: v for k, v in job.items() if k != "deadline"} for job in data["jobs"]]
            cluster = {key: data[key] for key in data if key not in ("jobs", "name")}
            drafts.append((jobs, cluster))
        return drafts

    def _job(self, random: np.random.Generator, share: float | None = None) -> tuple[Draft, Draft]:
        """A record of the generator, some of its numbers at an end, and its cluster."""
        jobs, cluster = self._drafts[int(random.integers(DRAFTS))]
        job = deepcopy(jobs[int(random.integers(len(jobs)))])
        share = float(random.choice((0.0, 0.5, 1.0))) if share is None else share
        for path, holder, key in leaves(job, "jobs"):
            if self._is_free(path) and random.random() < share:
                span = self.space.spans[path]
                holder[key] = span.nearest((span.low, span.high)[int(random.integers(2))])
        return job, deepcopy(cluster)

    def _opposite(self, job: Draft) -> Draft:
        """Another job, whose numbers are at the other end than a job's."""
        made = deepcopy(job)
        for path, holder, key in leaves(made, "jobs"):
            if self._is_free(path):
                span = self.space.spans[path]
                is_high = holder[key] > (span.low + span.high) / 2
                holder[key] = span.nearest(span.low if is_high else span.high)
        return made

    def _is_free(self, path: str) -> bool:
        """Whether a number of a job may change; its times move together."""
        return self.space.varies(path) and path.split(".")[-1] not in (*TIME, *FOLLOWING)

    def _free_paths(self, job: Draft) -> list[str]:
        return [path for path, _ in _leaf_values(job) if self._is_free(path)]

    @cached_property
    def _start(self) -> int:
        """The first time at which jobs come."""
        lows = (
            self.space.spans[f"jobs.{key}"].low for key in TIME if self.space.has(f"jobs.{key}")
        )
        return int(next(lows) + 0.5)

    def _drawn(self, random: np.random.Generator, is_full: bool) -> Draft:
        """A chain or an ambush, of a burst that has another job's numbers or the opposite ones."""
        is_opposite = is_full or random.random() < 0.3
        first, cluster = self._job(random, 1.0 if is_opposite else None)
        other = self._opposite(first) if is_opposite else self._job(random)[0]
        _place(first, self._start)
        most = int(random.integers(2, self.futures, endpoint=True))
        if is_full or (is_opposite and random.random() < 0.5):
            most = self.futures
        slots = self.space.spans[HORIZON].nearest(max(cluster[HORIZON], most))  # to arrive in
        cluster[HORIZON], most = slots, min(most, int(slots))
        if not is_opposite and random.random() < 0.5:
            growing = [at for at in self._free_paths(first) if random.random() < 0.4]
            rate, groups = random.choice((0.5, 0.8, 1.25, 1.5, 2.0, 3.0)), [first]
            for k in range(1, min(most, self.jobs)):
                following = deepcopy(first)
                for path, holder, name in leaves(following, "jobs"):
                    if path in growing:
                        span = self.space.spans[path]
                        holder[name] = span.nearest(holder[name] * float(rate) ** k)
                _move(following, k)
                groups.append(following)
            futures = [list(range(k + 1)) for k in range(len(groups))]
            made = [{"job": job, "count": 1} for job in groups]
        else:
            count = int(random.integers(1, max(1, self.jobs - 1), endpoint=True))
            count = int(random.choice((1, count, max(1, self.jobs - 1))))
            count = max(1, self.jobs - 1) if is_full else count
            made, futures = [{"job": first, "count": 1}], [[0]]
            for k in range(1, most):
                burst = deepcopy(other)
                _place(burst, self._start + k)
                made.append({"job": burst, "count": count})
                futures.append([0, k])
        return {"cluster": cluster, "groups": made, "futures": futures}

    def _meeting(self, random: np.random.Generator) -> Draft:
        """The job of four that stays longest, and one that comes in its first slots, or never."""
        drawn = [self._job(random) for _ in range(4)]
        for job, _ in drawn:
            _place(job, self._start)
        first, cluster = max(drawn, key=lambda pair: pair[0].get("departure", 0))
        second = self._opposite(first) if random.random() < 0.5 else self._job(random)[0]
        for name in lists(cluster) if random.random() < 0.5 else ():
            cluster[name] = [cluster[name][0] | {"name": one["name"]} for one in cluster[name]]
        _place(second, self._start + int(random.integers(1, 3)))
        groups = [{"job": job, "count": 1} for job in (first, second)]
        return {"cluster": cluster, "groups": groups, "futures": [[0], [0, 1]]}

    def _change(self, tree: Draft, random: np.random.Generator) -> None:
        groups, futures, kind = tree["groups"], tree["futures"], random.random()
        g, f = int(random.integers(len(groups))), int(random.integers(len(futures)))
        alike = [g] if random.random() < 0.3 else _alike(groups, g)
        if kind < 0.45:  # a number, in all that are alike
            paths = self._free_paths(groups[g]["job"])
            path = paths[int(random.integers(len(paths)))]
            span, value = self.space.spans[path], dict(_leaf_values(groups[g]["job"]))[path]
            step = 1 if span.is_whole else 0.1 * (span.high - span.low)
            near = (span.low, span.high, value / 2, value * 2, value - step, value + step,
                    random.uniform(span.low, span.high))  # fmt: skip
            new = span.nearest(float(random.choice(near)))
            for at in alike:
                for where, holder, name in leaves(groups[at]["job"], "jobs"):
                    if where == path:
                        holder[name] = new
            if random.random() < 0.2:  # and futures up to the last that there may be
                _extend(tree, len(futures) - 1, False, self.futures - len(futures))
        elif kind < 0.6:
            count = groups[g]["count"] + int(random.choice((-1, 1)))
            for at in alike:
                groups[at]["count"] = max(1, count)
        elif kind < 0.7:
            _move(groups[g]["job"], int(random.choice((-1, 1))))
        elif kind < 0.82:  # futures more: like another, the last group slots later
            _extend(tree, f, random.random() < 0.3, int(random.choice((1, 2, 4))))
        elif kind < 0.88:
            del futures[f]
        elif kind < 0.94:  # another job, in one future or in all
            job = self._job(random)[0]
            groups.append({"job": job, "count": 1})
            for members in futures if random.random() < 0.5 else [futures[f]]:
                members.append(len(groups) - 1)
        else:  # one job fewer, in one future or in all
            for members in futures if random.random() < 0.5 else [futures[f]]:
                if g in members and len(members) > 1:
                    members.remove(g)
        tidy(tree)

    def variants(self, tree: Draft) -> Iterator[Draft]:
        """Simpler trees: one future, group or job fewer, one field fewer, one number plainer."""
        for f in range(len(tree["futures"]) if len(tree["futures"]) > 2 else 0):
            made = deepcopy(tree)
            del made["futures"][f]
            yield tidy(made)
        for g, group in enumerate(tree["groups"]):
            made = deepcopy(tree)
            made["futures"] = [[at for at in members if at != g] for members in tree["futures"]]
            if all(made["futures"]):
                yield tidy(made)
            alike = _alike(tree["groups"], g)
            if alike[0] < g:
                continue
            if group["count"] > 1:
                made = deepcopy(tree)
                for at in alike:
                    made["groups"][at]["count"] -= 1
                yield made
            for path, value in list(_leaf_values(group["job"])):
                for new in self._plainer(path, value):
                    made = deepcopy(tree)
                    for at in alike:
                        for where, holder, name in leaves(made["groups"][at]["job"], "jobs"):
                            if where == path and new is not None:
                                holder[name] = new
                            elif where == path and isinstance(holder, dict):
                                del holder[name]
                    yield made

    def _plainer(self, path: str, value: Any) -> list[Any]:
        if path.split(".")[-1] in TIME:
            return []
        if not self.space.varies(path):
            return [None]
        return [None, *self.space.spans[path].plainer(value)]

    def complexity(self, tree: Draft) -> tuple[float, ...]:
        """How hard it is to read: futures, jobs, different groups, fields, digits, size."""
        groups = [dict(_leaf_values(group["job"])) for group in tree["groups"]]
        timeless = {str({k: v for k, v in fields.items() if k.split(".")[-1] not in TIME})
                    for fields in groups}  # fmt: skip
        numbers = [v for fields in groups for v in fields.values() if isinstance(v, int | float)]
        return (
            len(tree["futures"]),
            sum(tree["groups"][g]["count"] for members in tree["futures"] for g in members),
            len(timeless),
            sum(map(len, groups)),
            sum(len(f"{value:.12g}".replace(".", "").strip("-0")) for value in numbers),
            sum(math.log1p(abs(value)) for value in numbers),
        )


def _extend(tree: Draft, f: int, keeps_last: bool, count: int) -> None:
    """Futures more, like one whose last group comes a slot later each time, or again."""
    groups, futures = tree["groups"], tree["futures"]
    kept, at = futures[f] if keeps_last else futures[f][:-1], futures[f][-1]
    for _ in range(count):
        last = deepcopy(groups[at])
        _move(last["job"], 1)
        at = len(groups)
        groups.append(last)
        futures.append([*kept, at])


def tidy(tree: Draft) -> Draft:
    """Without groups that no future has."""
    used = sorted({g for members in tree["futures"] for g in members})
    place = {g: at for at, g in enumerate(used)}
    tree["groups"] = [tree["groups"][g] for g in used]
    tree["futures"] = [sorted(place[g] for g in members) for members in tree["futures"]]
    return tree


def _leaf_values(job: Draft) -> Iterator[tuple[str, Any]]:
    return ((path, holder[key]) for path, holder, key in leaves(job, "jobs") if key != "name")


def _alike(groups: list[Draft], g: int) -> list[int]:
    """Groups that differ from one in times alone."""
    timed = {f"jobs.{name}" for name in (*TIME, *FOLLOWING)}

    def seen(group: Draft) -> str:
        fields = [(p, v) for p, v in _leaf_values(group["job"]) if p not in timed]
        return str((group["count"], fields))

    return [at for at, group in enumerate(groups) if seen(group) == seen(groups[g])]


def _move(job: Draft, slots: float) -> None:
    for name in (*TIME, *FOLLOWING):
        if job.get(name) is not None:
            job[name] += slots


def _place(job: Draft, time: float) -> None:
    """Move a job, so that it comes at a time."""
    _move(job, time - next(job[name] for name in TIME if name in job))

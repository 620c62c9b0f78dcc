"""Policies as one schedule a scenario: simulated ones, and one that commits greedily."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hindsched.errors import InputError, SolveFailed
from hindsched.json_types import JsonObject
from hindsched.models.base import Commitments, offline_program
from hindsched.models.futures import Futures
from hindsched.online.protocol import OnlineAlgorithm
from hindsched.online.registry import build_algorithm, declared_estimates
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program


def run_on(
    futures: Futures, algorithm: str, formulation: str | None, seeds: Sequence[int] = (0,)
) -> list[list[SimulationResult]]:
    """Runs of an algorithm on every scenario, by seed; randomised ones with all seeds."""
    family = futures.instances[0].family
    built: OnlineAlgorithm = build_algorithm(family, algorithm, {})
    told = tree_estimates(futures, built)
    seeds = seeds if built.randomised else (0,)
    return [
        [simulate(instance, algorithm, seed=seed, formulation=formulation, estimates=told)
         for instance in futures.instances] for seed in seeds
    ]  # fmt: skip


def tree_estimates(futures: Futures, algorithm: OnlineAlgorithm) -> JsonObject:
    """What an algorithm is told in advance, once for the tree: a scenario's own would tell.

    The estimates of one instance that has the jobs of all scenarios, each record once.
    """
    jobs: dict[str, Any] = {}
    for s, instance in enumerate(futures.instances):
        for at, job in enumerate(instance.jobs):
            name = f"{job.name}#{len(jobs)}" if futures.record(s, at) not in jobs else ""
            jobs.setdefault(futures.record(s, at), job.model_copy(update={"name": name}))
    everything = futures.instances[0].with_fields(name="all futures", jobs=tuple(jobs.values()))
    return declared_estimates(everything, algorithm.estimate_settings())


def commit_greedily(
    futures: Futures, formulation: str, options: SolveOptions
) -> list[Solution] | None:
    """Schedule what arrives as well as it can be, lock it, and go on; None where a solve ends.

    Whoever commits may decide the same as it runs, so it is a policy of either class.
    """
    decided: dict[tuple[tuple[int, ...], int], dict[str, Any]] = {}
    found = list[Solution]()
    for s, instance in enumerate(futures.instances):
        rows: dict[str, Any] = {}
        told = [futures.revealed(s, job) for job in range(len(instance.jobs))]
        for t in sorted(set(told)):
            node = futures.members(s, t), t
            known = tuple(job for job, at in zip(instance.jobs, told, strict=True) if at <= t)
            if node not in decided:
                part = instance.with_fields(jobs=known)
                fixed = Commitments(
                    now=t, assignments={name: own for name, own in rows.items() if own},
                    locked=frozenset(name for name, own in rows.items() if own),
                    rejected=frozenset(name for name, own in rows.items() if not own),
                )  # fmt: skip
                try:
                    program = offline_program(part, formulation, commitments=fixed)
                    if not solve_program(program.model, options).has_point:
                        return None
                    solution = program.extract()
                except (InputError, SolveFailed):
                    return None
                if solution is None or solution.violations():
                    return None
                new = solution.assignments()
                decided[node] = {job.name: list(new.get(job.name, ())) for job in known}
            rows = decided[node]
        kept = {name: own for name, own in rows.items() if own}
        made = build_solution(instance, kept, formulation)
        if made.violations():
            return None
        found.append(made)
    return found

"""A bound computed by several processes or machines, the same as by one."""

from __future__ import annotations

from dataclasses import replace

from hindsched.analysis.sweep import check_workers
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.json_types import Keywords
from hindsched.solvers.bounds.distributed import divided_over
from hindsched.solvers.door.api import methods, solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.progress import Progress
from hindsched.solvers.door.result import Result
from hindsched.solvers.methods import base

DIVIDED = {"bound": base.bound, "preemptive": base.preemptive}
"""The methods that divide their blocks."""


def divided_bound(
    instance: Instance,
    method: str = "bound",
    *,
    workers: int = 2,
    dask: str | None = None,
    formulation: str | None = None,
    options: SolveOptions | Keywords | None = None,
    on_progress: Progress | None = None,
) -> Result:
    """Bound an instance's optimum with its blocks divided over workers.

    Parameters
    ----------
    instance : Instance
        The instance.
    method : {"bound", "preemptive"}
        A method that asks a pricing oracle for all blocks at once.
    workers : int
        Local processes; 0 for none. Ignored with `dask`.
    dask : str, optional
        Address of a Dask scheduler, all of whose workers take part.
    formulation, options, on_progress
        As in `hindsched.solve`.

    Returns
    -------
    Result
        As of `hindsched.solve`; ``details`` tell how many ``shares`` there were, the bytes that
        moved in an evaluation, and how many shares were taken over from workers that died.

    Raises
    ------
    InputError
        If the method or the family does not divide its blocks, or there is no scheduler.
    SchedulerLost
        If the scheduler goes away.
    """
    known = methods(instance.family)
    if method in known and known[method] is not DIVIDED.get(method):
        rule = f"must be 0 or absent: {method} of {instance.family} does not divide its blocks"
        raise InputError("dask" if dask else "workers", dask or workers, rule)
    check_workers(workers)

    def run() -> Result:
        return solve(
            instance, method, formulation=formulation, options=options, on_progress=on_progress
        )

    if dask is None and workers == 0:
        return run()
    from hindsched.analysis.cluster_team import cluster_team
    from hindsched.analysis.local_team import local_team

    with local_team(workers) if dask is None else cluster_team(dask) as team, divided_over(team):
        found = run()
    details = {
        **found.details,
        "shares": team.size,
        "bytes_an_evaluation": team.bytes_moved // max(1, team.evaluations),
        "taken_over": team.taken_over,
    }
    return replace(found, details=details, backend=f"{found.backend}, {team.size} shares")

"""``solve``: the one door to the offline optimum of any instance, and the check at the door.

Whatever method ran, a `Result` leaves only with a solution that its own definition finds feasible,
an objective recomputed from the decisions, a bound that does not contradict it, and a status that
follows from the two.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance, check_instance
from hindsched.json_types import Keywords
from hindsched.limits import is_unlimited, time_limit
from hindsched.models.base import check_size
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.base import Method, build_oracle, family_solvers
from hindsched.solvers.compiling import compile_first
from hindsched.solvers.door import work
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import OBJECTIVE_TOLERANCE, within_gap
from hindsched.solvers.door.result import (
    CertainProgress,
    LineProgress,
    Progress,
    Reports,
    Result,
    Status,
    StoppedBy,
)
from hindsched.solvers.methods.auto import generic_methods
from hindsched.solvers.methods.base import better, certain
from hindsched.solvers.oracles.restricted import RestrictedOracle

ROUNDING = 1e-9
"""Relative rounding of an objective's sum, which is all that may beat a certificate's bound."""


def methods(family: str) -> dict[str, Method]:
    """Methods of `solve` by name: the family's, or the generic ones."""
    return family_solvers(family).methods() or generic_methods()


def solve(
    instance: Instance, method: str = "auto", *, formulation: str | None = None,
    options: SolveOptions | Keywords | None = None, start: Solution | None = None,
    on_progress: CertainProgress | None = None, **option_keywords: object,
) -> Result:  # fmt: skip
    """Solve an instance offline, or bound its optimum.

    Parameters
    ----------
    instance : Instance
        The instance.
    method : str
        One of ``methods(instance.family)``: ``auto``, ``milp``, ``relaxation``, ``bound``, ...
    formulation : str, optional
        Which of the family's problems; the default one if None.
    options : SolveOptions or mapping, optional
        How to solve.
    start : Solution, optional
        A feasible schedule to begin from; the result's is at least as good.
    on_progress : callable, optional
        ``on_progress(seconds, objective, bound)`` whenever one of them is better: the objective of
        a checked schedule, the bound of a certificate, None where there is none yet. What a solver
        claims on the way is not among them; ``progress=True`` in the options prints that too, as
        lines on standard error.
    **option_keywords
        Options by name, instead of or on top of `options`.

    Returns
    -------
    Result
        With a checked solution, a bound, or both. Ctrl-C ends the solve early and keeps them; where
        there is too little memory the result is what is certain without computing (nobody is
        served, `Instance.certain_bound`).

    Raises
    ------
    InputError
        For an unknown method, formulation or option, a solver that is not installed, or a start
        that breaks a rule.
    SolveFailed
        If a method returned a solution that breaks a constraint, or a bound that a checked
        solution contradicts.

    Examples
    --------
    >>> import hindsched as hs
    >>> result = hs.solve(hs.generate("oasis", seed=2, jobs=3), time_limit=5)
    >>> result.bound >= result.objective, result.solution.is_feasible()
    (True, True)
    """
    check_instance(instance)
    chosen = SolveOptions.of(options, **option_keywords)
    known = methods(instance.family)
    if method not in known:
        raise InputError("method", method, f"must be one of {', '.join(known)}")
    formulation = instance.check_formulation(formulation)
    if not (on_progress is None or callable(on_progress)):
        raise InputError("on_progress", on_progress, "must be callable")
    begun = None if start is None else checked_start(instance, formulation, start)
    if not instance.jobs:  # the empty solution is optimal
        solution = build_solution(instance, {}, formulation)
        result = Result(
            instance, formulation, method, Status.OPTIMAL, StoppedBy.GAP, solution,
            solution.objective(), backend="answered without a solver", options=chosen.to_dict(),
        )  # fmt: skip
        return check_result(result, chosen.gap)
    lines = LineProgress(limit=chosen.time_limit) if chosen.progress else None
    if method == "auto" and chosen.time_limit is chosen.work_limit is None and is_unlimited():
        check_size(instance)
    compile_solve(instance.family)
    started = time.perf_counter()
    reports = None if on_progress is None else Reports(lines, on_progress)
    with work.catch_interrupt():
        within = replace(chosen, start=begun)
        result = _counted(known[method], instance, formulation, method, within, reports or lines)
    seconds = time.perf_counter() - started
    result = replace(
        result, seconds=seconds, options=chosen.to_dict(), solution=better(result.solution, begun)
    )
    result = check_result(result, chosen.gap)
    if reports is not None:
        reports.tell(result)
    return result


def checked_start(instance: Instance, formulation: str, start: Solution) -> Solution:
    """A start as a feasible solution of the instance, or `InputError`."""
    if not isinstance(start, Solution):
        raise InputError("start", type(start).__name__, "must be a solution")
    begun = build_solution(instance, start.assignments(), formulation)
    if broken := begun.violations():
        raise InputError("start", str(broken[0]), "must be a feasible schedule of the instance")
    return begun


def compile_solve(family: str) -> None:
    """Compile the kernels that solving a family needs, before any clock starts.

    An interrupt is raised: there is no result yet that could be kept.
    """
    options = SolveOptions(work_limit=50)  # in which a method calls all kernels that it may need

    def run(tiny: Instance) -> None:
        formulation = tiny.check_formulation(None)
        _counted(methods(family)["auto"], tiny, formulation, "auto", options, None)
        for rows in family_solvers(family).tree_layouts(tiny, formulation):
            # the solve may have ended before any node
            oracle = RestrictedOracle(build_oracle(tiny, formulation, rows=rows), ())
            for block in range(oracle.oracle.num_decided):
                oracle.best_response(block, np.zeros(oracle.rows.size))

    compile_first(f"{family} solve", run, family)


def _counted(
    run: Method, instance: Instance, formulation: str, method: str, options: SolveOptions,
    on_progress: Progress | None,
) -> Result:  # fmt: skip
    """What the method finds within its limits, or what is certain where there is no memory."""
    units = options.work_limit
    if units is not None:
        options = replace(options, work_limit=None, threads=1).with_time(units * work.UNIT_SECONDS)
    counted = nullcontext() if units is None else work.counting()
    try:
        with counted, time_limit(None if work.is_counted() else options.time_limit):
            result = run(instance, formulation, options, on_progress)
    except MemoryError:
        known = certain(instance, formulation, method)
        return replace(known, stopped_by=StoppedBy.MEMORY_LIMIT)
    if result.stopped_by is not StoppedBy.TIME_LIMIT:
        return result
    if result.bound is None and result.status in (Status.FEASIBLE, Status.NO_SOLUTION):
        result = replace(result, bound=instance.certain_bound())
    return result if units is None else replace(result, stopped_by=StoppedBy.ITERATION_LIMIT)


def check_result(result: Result, gap: float) -> Result:
    """Check a method's result; its status follows from solution and bound.

    A bound beyond the objective by rounding is moved to it. `SolveFailed` if the solution breaks a
    constraint or the bound contradicts it.
    """
    name = f"{result.instance.name} by {result.method}"
    solution, bound = result.solution, result.bound
    if solution is None:
        claims_point = result.status in (Status.OPTIMAL, Status.FEASIBLE)
        return replace(result, status=Status.NO_SOLUTION) if claims_point else result
    broken = solution.violations()
    if broken:
        raise SolveFailed(f"{name}: the solution breaks {broken[0]}, {len(broken)} in all")
    if solution.formulation != result.formulation:
        raise SolveFailed(f"{name}: the solution is of formulation {solution.formulation}")
    if result.status is Status.INFEASIBLE:
        raise SolveFailed(f"{name}: called infeasible, but there is a checked solution")
    objective = solution.objective()
    if result.proof == "certificate":  # a solver's bound may be better by its tolerance
        bound = result.certified_bound
    if bound is not None:
        maximise = result.instance.sense == "max"
        beyond = objective - bound if maximise else bound - objective
        solvers = OBJECTIVE_TOLERANCE * max(1.0, abs(objective))
        if beyond > (ROUNDING * abs(bound) if result.proof == "certificate" else solvers):
            side = "above" if maximise else "below"
            raise SolveFailed(
                f"{name}: objective {objective!r} is {side} the bound {bound!r} ({result.proof})"
            )
        if beyond > 0:
            bound = objective
    optimal = within_gap(objective, bound, gap)
    status = Status.OPTIMAL if optimal else Status.FEASIBLE
    stopped_by = StoppedBy.GAP if optimal else result.stopped_by
    return replace(result, status=status, stopped_by=stopped_by, bound=bound)

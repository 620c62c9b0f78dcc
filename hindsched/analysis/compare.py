"""Comparing online algorithms with the offline optimum, on one instance or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from inspect import signature
from typing import Any

from hindsched.analysis.comparison import Comparison, InstanceComparison
from hindsched.analysis.plan import DEFAULT_SEEDS, Contender, plan_tasks
from hindsched.analysis.sweep import run_tasks
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.json_types import Keywords
from hindsched.solvers.door.options import SolveOptions


def compare(
    instances: Instance | Sequence[Instance],
    algorithms: Sequence[Contender] | None = None,
    *,
    seeds: int = DEFAULT_SEEDS,
    first_seed: int = 0,
    settings: Keywords | None = None,
    method: str = "auto",
    workers: int = 0,
    progress: bool = True,
    run_limit: float | None = None,
    **options: object,
) -> Comparison:
    """Solve or bound each instance, run the algorithms and compare.

    Parameters
    ----------
    instances : Instance or sequence of Instance
        What to compare on.
    algorithms : sequence of str, class or OnlineAlgorithm, optional
        Names (also ``path/to/file.py:Class`` and ``exec:command``), classes or objects of your own;
        None for all of the family.
    seeds : int
        Seeds of each randomised algorithm; the others run once.
    first_seed : int
        The first seed.
    settings : mapping, optional
        Settings, each handed to every algorithm that has it.
    method : str
        Method of the offline solves.
    workers : int
        Local processes; 0 for this one.
    progress : bool
        Whether to show a bar on standard error.
    run_limit : float, optional
        Seconds of each run of an algorithm. One that overruns it has failed; the others count.
    **options
        Options of the offline solves, for example ``time_limit=60``.

    Raises
    ------
    InputError
        For an unknown algorithm, setting, method or option.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.compare(
    ...     hs.generate("oasis", seed=2), ["oasis", "drf"], time_limit=1, progress=False
    ... )
    >>> list(found.to_frame()["algorithm"])
    ['oasis', 'drf']
    """
    check_options(options, compare)
    chosen = [instances] if isinstance(instances, Instance) else list(instances)
    tasks = plan_tasks(
        chosen,
        algorithms,
        seeds=seeds,
        first_seed=first_seed,
        settings=settings,
        offline={"method": method, **options},
    )
    stop = len(chosen) > 1
    if not progress:
        records = run_tasks(
            tasks, chosen, workers=workers, stop_when_interrupted=stop, run_limit=run_limit
        )
        return Comparison(records)
    from hindsched.analysis.progress import progress_bar

    with progress_bar(len(tasks), "comparing") as advance:
        records = run_tasks(
            tasks,
            chosen,
            workers=workers,
            on_record=lambda item: advance(item["task"]),
            stop_when_interrupted=stop,
            run_limit=run_limit,
        )
    return Comparison(records)


def check_options(options: Keywords, *functions: Callable[..., Any]) -> None:
    """Refuse options that neither functions nor solves have; the closest name is named."""
    own = (signature(function).parameters.values() for function in functions)
    known = [item.name for found in own for item in found if item.kind is item.KEYWORD_ONLY]
    known += [item.name for item in fields(SolveOptions) if item.name not in known]
    for name, value in options.items():
        if name not in known:
            raise InputError(name, value, f"must be an option: {', '.join(known)}")


def ratio(
    instance: Instance, algorithms: Sequence[Contender] | None = None, **arguments: Any
) -> InstanceComparison:
    """Competitive-ratio intervals on one instance; the arguments are those of `compare`.

    Raises
    ------
    SolveFailed
        If the offline solve failed, or a schedule is better than a proven bound.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.ratio(hs.generate("oasis", seed=2), ["oasis"], time_limit=1, progress=False)
    >>> found.algorithm("oasis").ratio.interval.lower >= 1
    True
    """
    comparison = compare(instance, algorithms, **arguments).instances[0]
    if "solve_status" not in comparison.offline:
        failure = SolveFailed(str(comparison.offline["error"]))
        failure.exit_code = comparison.offline.get("exit_code", failure.exit_code)
        raise failure
    if comparison.contradiction is not None:
        raise SolveFailed(comparison.contradiction)
    return comparison

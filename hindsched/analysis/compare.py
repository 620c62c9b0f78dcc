"""Comparing online algorithms with the offline optimum, on one instance or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindsched.analysis.comparison import Comparison, InstanceComparison
from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.plan import DEFAULT_SEEDS, Contender, plan_tasks
from hindsched.analysis.records import Record
from hindsched.analysis.sweep import run_tasks
from hindsched.analysis.tasks import Task
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.json_types import Keywords
from hindsched.solvers.door.options import SolveOptions

if TYPE_CHECKING:
    from rich.console import Console

    from hindsched.analysis.store import ResultStore


def compare(
    instances: Instance | Sequence[Instance],
    algorithms: Sequence[Contender] | None = None,
    *,
    seeds: int = DEFAULT_SEEDS,
    first_seed: int = 0,
    settings: Keywords | None = None,
    method: str = "auto",
    workers: int = 0,
    dask: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
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
    dask : str, optional
        Address of a Dask scheduler, in place of local processes.
    out : path, optional
        Folder of the results: a file a finished task, the tables and the HTML report, as `hindsched
        bench` writes it.
    resume : bool
        Whether `out` may hold part of the same comparison: only what is missing or damaged is run.
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
    if out is not None:
        store = _store(Path(out), chosen, tasks, run_limit, resume=resume)
        shown = "comparing" if progress else None
        return finish(store, tasks, workers=workers, dask=dask, title=shown)
    with _bar(len(tasks), "comparing" if progress else None) as advance:
        records = run_tasks(
            tasks,
            chosen,
            workers=workers,
            dask=dask,
            on_record=lambda item: advance(item["task"]),
            stop_when_interrupted=len(chosen) > 1,
            run_limit=run_limit,
        )
    return Comparison(records)


def finish(
    store: ResultStore,
    tasks: Sequence[Task] | None = None,
    *,
    workers: int = 0,
    dask: str | None = None,
    title: str | None = None,
    console: Console | None = None,
) -> Comparison:
    """Run what is missing of a folder of results, then write its tables and its report.

    Parameters
    ----------
    store : ResultStore
        The folder.
    tasks : sequence of Task, optional
        Its tasks with what no file holds: algorithms of the caller's own.
    workers, dask
        Where to run, as in `run_tasks`.
    title : str, optional
        Of the progress bar; None for no bar.
    console : rich.console.Console, optional
        Where the bar is drawn.
    """
    from hindsched.analysis.report.html import write_report

    store.remove_leftovers()
    instances, keys = store.instances(), {task.key for task in store.missing()}
    missing = [task for task in tasks or store.tasks if task.key in keys]
    total = len(store.tasks)
    with _bar(total, title, done=total - len(missing), console=console) as advance:

        def keep(record: Record) -> None:
            store.add(record)
            advance(record["task"])

        run_tasks(
            missing,
            instances,
            workers=workers,
            dask=dask,
            on_record=keep,
            run_limit=store.run_limit,
        )
    comparison = Comparison(store.records())
    store.write_tables(comparison)
    write_report(store, comparison)
    return comparison


def _store(
    folder: Path,
    instances: Sequence[Instance],
    tasks: Sequence[Task],
    run_limit: float | None,
    *,
    resume: bool,
) -> ResultStore:
    """A new folder, or one that holds part of the same comparison."""
    from hindsched.analysis.store import MANIFEST, ResultStore

    if not (resume and (folder / MANIFEST).is_file()):
        settings = {} if run_limit is None else {"run_limit": run_limit}
        return ResultStore.create(folder, instances, tasks, settings)
    store = ResultStore.open(folder)
    wanted = {instance.name: instance.sha256() for instance in instances}
    same_tasks = [task.to_dict() for task in store.tasks] == [
        Task.of(jsonable(task.to_dict())).to_dict() for task in tasks
    ]
    if wanted != store.manifest["instances"] or not same_tasks or run_limit != store.run_limit:
        raise InputError("out", str(folder), "holds another comparison: go elsewhere")
    return store


def _bar(total: int, title: str | None, *, done: int = 0, console: Console | None = None) -> Any:
    """A progress bar, or nothing without a title."""
    if title is None:
        return nullcontext(lambda text: None)
    from hindsched.analysis.progress import progress_bar

    return progress_bar(total, title, done=done, console=console)


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

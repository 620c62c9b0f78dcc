"""Comparing online algorithms with the offline optimum, on one instance or many."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from hindsched.analysis.comparison import Comparison, InstanceComparison
from hindsched.analysis.ratio import FASTER, AlgorithmRatio, optimum_of
from hindsched.analysis.store import ResultStore
from hindsched.analysis.sweep import run_tasks
from hindsched.analysis.tasks import OFFLINE, ONLINE, Contender, Entry, Record, Task, file_name
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance, check_instance, whole_number
from hindsched.json_types import Keywords
from hindsched.online.base import family_online
from hindsched.online.registry import algorithms, is_registered_name
from hindsched.solvers.door.options import SolveOptions

DEFAULT_SEEDS = 5
FASTEST = 1000  # times as fast: beyond, chunks take less time than is told apart
A_MOMENT, LONGEST_SILENCE = 1.0, 10.0  # seconds between lines about progress


def compare(
    instances: Instance | Sequence[Instance],
    algorithms: Sequence[Contender] | None = None,
    *,
    seeds: int = DEFAULT_SEEDS,
    settings: Keywords | None = None,
    method: str = "auto",
    workers: int = 0,
    dask: str | None = None,
    out: str | Path | None = None,
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
    settings : mapping, optional
        Settings, each handed to every algorithm that has it.
    method : str
        Method of the offline solves.
    workers, dask : int, and str, optional
        Local processes, 0 for this one; or the address of a Dask scheduler.
    out : path, optional
        Folder of the results, new or empty: a file a finished task, the tables and the HTML report,
        as `hindsched bench` writes it, which goes on with ``--resume --out FOLDER``.
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
    if isinstance(instances, str | Path):
        check_instance(instances, "instances")
    chosen = [instances] if isinstance(instances, Instance) else list(instances)
    for place, each in enumerate(chosen):
        check_instance(each, f"instances[{place}]")
    if isinstance(algorithms, str):
        raise InputError("algorithms", algorithms, f"must be a list: [{algorithms!r}]")
    offline = {"method": method, **options}
    tasks = plan_tasks(chosen, algorithms, seeds=seeds, settings=settings, offline=offline)
    shown = "comparing" if progress else None
    if out is not None:
        given = {} if run_limit is None else {"run_limit": run_limit}
        store = ResultStore.create(out, chosen, tasks, given)
        return finish(store, tasks, workers=workers, dask=dask, title=shown)
    with progress_bar(len(tasks), shown) as advance:
        records = run_tasks(
            tasks, chosen, workers=workers, dask=dask, run_limit=run_limit,
            on_record=lambda item: advance(item["task"]), stop_when_interrupted=len(chosen) > 1,
        )  # fmt: skip
    return Comparison(records)


def ratio(
    instance: Instance, algorithms: Sequence[Contender] | None = None, *,
    speed: float | None = None, **arguments: Any,
) -> InstanceComparison:  # fmt: skip
    """Competitive-ratio intervals on one instance; further arguments are those of `compare`.

    With a `speed`, 1.5 for instance, the paper's algorithm runs once more on machines so many times
    as fast, against optima at speed 1, where the paper's theorem is of that (edgecloud).

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
    if speed is not None:
        _check_speed(instance, speed)
    comparison = compare(instance, algorithms, **arguments).instances[0]
    if "solve_status" not in comparison.offline:
        failure = SolveFailed(str(comparison.offline["error"]))
        failure.exit_code = comparison.offline.get("exit_code", failure.exit_code)
        raise failure
    if comparison.contradiction is not None:
        raise SolveFailed(comparison.contradiction)
    if speed is None:
        return comparison
    rows = [*comparison.algorithms, *_rows_at_speed(comparison, instance, speed)]
    return replace(comparison, algorithms=rows)


def _check_speed(instance: Instance, speed: float) -> None:
    check_instance(instance)
    if not isinstance(speed, Real) or not 1 < float(speed) <= FASTEST:
        raise InputError("speed", speed, f"must be a number above 1 and at most {FASTEST}")
    if family_online(instance.family).measure_at_speed is None:
        raise InputError("speed", speed, f"no theorem of {instance.family} is of faster machines")


def _rows_at_speed(
    comparison: InstanceComparison, instance: Instance, speed: float
) -> Iterator[AlgorithmRatio]:
    """What the paper's algorithm reaches on faster machines, each against its optimum."""
    measure = family_online(instance.family).measure_at_speed
    assert measure is not None
    options = {name: v for name, v in comparison.offline["settings"].items() if name != "method"}
    for each in measure(instance, speed, SolveOptions.of(options)):
        optimum = comparison.optimum
        if (solved := each.solved) is not None:
            ends = solved.objective, solved.bound
            optimum = optimum_of(instance.sense, *ends, solved.status.value, proof="solver")
        record = {
            "algorithm": f"{instance.family} at speed {speed:.12g}: {each.quantity}", "seed": 0,
            "settings": {"speed": speed}, "status": "ok", "error": None, "objective": each.value,
            "in_feasible_set": False, "theorem": each.theorem,
        }  # fmt: skip
        row = AlgorithmRatio.of(instance.name, instance.family, [record], optimum)
        reason = f"{FASTER} {optimum.interval} ({optimum.proof})"
        yield replace(row, ratio=replace(row.ratio, reason=reason))


def finish(
    store: ResultStore,
    tasks: Sequence[Task] | None = None,
    *,
    workers: int = 0,
    dask: str | None = None,
    title: str | None = None,
    console: Console | None = None,
) -> Comparison:
    """Run what is missing of a folder of results, then write its tables and its report."""
    store.remove_leftovers()
    keys = {task.key for task in store.missing()}
    missing = [task for task in tasks or store.tasks if task.key in keys]
    total = len(store.tasks)
    with progress_bar(total, title, done=total - len(missing), console=console) as advance:

        def keep(record: Record) -> None:
            store.add(record)
            advance(record["task"])

        run_tasks(
            missing, store.instances, workers=workers, dask=dask, run_limit=store.run_limit,
            on_record=keep,
        )  # fmt: skip
    return write_all(store)


def write_all(store: ResultStore) -> Comparison:
    """Write tables and report of a folder of results from its records; what they say."""
    from hindsched.analysis.report.html import write_report

    comparison = Comparison(store.records())
    store.write_tables(comparison)
    write_report(store, comparison)
    return comparison


@contextmanager
def progress_bar(
    total: int, title: str | None, *, done: int = 0, console: Console | None = None
) -> Iterator[Callable[[str], None]]:
    """Show a bar; where standard error is no terminal, lines: one per tenth of the work.

    Something is said every ten seconds. The time so far is told and none that is left: the long
    tasks, offline solves, come first.
    """
    console, started, every = console or Console(stderr=True), time.monotonic(), max(1, total // 10)
    so_far, last, ended = done, started, threading.Event()

    def write_line(text: str) -> None:
        nonlocal last
        last = time.monotonic()
        line = f"{title}: {so_far}/{total} {text} ({last - started:.0f} s so far)"
        console.print(line, soft_wrap=True, highlight=False, markup=False)

    def count_line(text: str) -> None:
        nonlocal so_far
        so_far += 1
        is_due = so_far % every == 0 and time.monotonic() - last >= A_MOMENT
        if is_due or so_far in (done + 1, total):
            write_line(text)

    def keep_talking() -> None:
        while not ended.wait(LONGEST_SILENCE / 4):
            if time.monotonic() - last >= LONGEST_SILENCE:
                write_line("done, working")

    if title is None:
        yield lambda text: None
    elif console.is_terminal or console.is_jupyter:
        columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(title, total=total, completed=done)
            yield lambda text: bar.advance(task)
    else:
        threading.Thread(target=keep_talking, daemon=True).start()
        try:
            yield count_line
        finally:
            ended.set()


def plan_tasks(
    instances: Sequence[Instance],
    contenders: Sequence[Contender] | None = None,
    *,
    seeds: int = DEFAULT_SEEDS,
    settings: Keywords | None = None,
    offline: Keywords | None = None,
) -> list[Task]:
    """List the tasks of a comparison: offline solves first, because they take longest."""
    from hindsched.solvers.door.api import methods

    seeds = whole_number("seeds", seeds, 1)
    if not instances:
        raise InputError("instances", "(none)", "at least one instance is needed")
    names = [file_name(instance.name) for instance in instances]
    for name in names:
        if names.count(name) > 1:
            raise InputError("instances", name, "names must be unique as file names")
    families = list(dict.fromkeys(instance.family for instance in instances))
    options = dict(offline or {})
    method = options.pop("method", "auto")
    SolveOptions.of(options)
    for family in families:
        if method not in (known := methods(family)):
            raise InputError("method", method, f"must be one of {', '.join(known)}")
    entries = _all_entries(families, contenders, settings or {})
    solves: list[Task] = []
    runs: list[Task] = []
    for instance in instances:
        for contender, entry in entries[instance.family].items():
            custom = None if isinstance(contender, str) else contender
            for seed in range(seeds if entry.algorithm.randomised else 1):
                name, used = entry.label, entry.settings
                runs.append(Task(ONLINE, instance.name, name, seed, used, custom))
        solves.append(Task(OFFLINE, instance.name, settings=dict(offline or {})))
    return solves + runs


def _all_entries(
    families: Sequence[str], contenders: Sequence[Contender] | None, settings: Keywords
) -> dict[str, dict[Contender, Entry]]:
    """What runs on each family's instances; each name and setting is some family's."""
    entries: dict[str, dict[Contender, Entry]] = {}
    for family in families:
        known = algorithms(family)
        entries[family] = {
            item: Entry.of(family, item, settings)
            for item in (known if contenders is None else contenders)
            if not isinstance(item, str) or item in known or not is_registered_name(item)
        }
    every = [entry for listed in entries.values() for entry in listed.values()]
    for item in contenders or ():
        if isinstance(item, str) and not any(item in listed for listed in entries.values()):
            words = dict.fromkeys(word for family in families for word in algorithms(family))
            raise InputError("algorithm", item, f"must be one of {', '.join(words)}")
    objects = [item for item in contenders or () if not isinstance(item, str)]
    labels = [listed[item].label for listed in entries.values() for item in objects]
    for label in labels:
        if labels.count(label) > len(families):
            raise InputError("algorithm", label, "stands twice: objects differ by their settings")
    names = dict.fromkeys(name for entry in every for name in entry.has)
    for key, value in settings.items():
        if key not in names:
            rule = f"the algorithms have the settings: {', '.join(names) or 'none'}"
            raise InputError(f"set.{key}", value, rule)
    return entries

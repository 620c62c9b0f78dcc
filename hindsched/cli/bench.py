"""``hindsched bench``: the main job, on suites, files, folders and names."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindsched.cli import settings as opt
from hindsched.cli.output import console, say
from hindsched.cli.report import show
from hindsched.errors import INTERRUPTED, TERMINATED, InputError
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    from hindsched.analysis.store import ResultStore
    from hindsched.instances.base import Instance

DEFAULT_SUITE = "small"
DEFAULT_TIME_LIMIT, PROVING_TIME_LIMIT = 10.0, 60.0
"""Seconds of an offline solve; of the suite whose optima are all to be proven."""
RESULTS = Path("results")
FREE_ON_RESUME = ("workers", "dask", "output", "resume", "as_json")
"""Options that do not change a number, so that a resumed run may have others."""


def bench(
    context: typer.Context,
    suite: Annotated[
        list[str] | None,
        opt.argument("Suites (small if absent), as oasis/small; files, folders, names."),
    ] = None,
    algorithm: opt.Algorithms = None,
    seeds: Annotated[int, opt.option("Seeds of each randomised algorithm.")] = 5,
    settings: opt.Settings = None,
    method: opt.Method = "auto",
    time_limit: opt.TimeLimit = None,
    workers: opt.Workers = 2,
    dask: opt.Dask = None,
    output: opt.Folder = None,
    resume: opt.Resume = False,
    as_json: opt.Json = False,
) -> int:
    """Solve or bound each instance, run the algorithms, and report the ratio intervals.

    The time limit is that of each offline solve (10 s if absent), and if given of each run.
    """
    from hindsched.analysis.compare import finish, plan_tasks
    from hindsched.analysis.store import ResultStore
    from hindsched.analysis.sweep import SchedulerLost, check_workers, connect
    from hindsched.solvers.door.work import Terminated

    # The pool's tracker of semaphores would warn of those of workers that Ctrl-C ended.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    check_workers(workers)
    if dask is not None:
        connect(dask).close()  # before a folder is made for a run that nobody would do
    words, options = suite or [DEFAULT_SUITE], _given(context)
    title = Path(words[0]).name.split(".")[0]
    if resume:
        store = _reopen(output, title, options)
    else:
        chosen = [item for name in words for item in _instances_of(name)]
        proves = all(name.rpartition("/")[2] == DEFAULT_SUITE for name in words)
        default = PROVING_TIME_LIMIT if proves else DEFAULT_TIME_LIMIT
        offline = {"method": method, "time_limit": default if time_limit is None else time_limit}
        values = opt.parse_settings(settings)
        tasks = plan_tasks(chosen, algorithm, seeds=seeds, settings=values, offline=offline)
        recorded = {**options, **offline, "seeds": seeds}
        recorded |= {} if time_limit is None else {"run_limit": time_limit}
        folder = output or RESULTS / f"{title}-{time.strftime('%Y%m%d-%H%M%S')}"
        store = ResultStore.create(folder, chosen, tasks, recorded)
    try:
        for task, what in store.damages().items():
            say(f"damaged, made again: {task}: {what}")
        count, total = len(store.manifest["instances"]), len(store.tasks)
        done = total - len(store.missing())
        say(f"{count} instance{'s' * (count != 1)}, {total} tasks, {done} done: {store.folder}")
        screen = console("stderr")
        comparison = finish(store, workers=workers, dask=dask, title="bench", console=screen)
    except KeyboardInterrupt as reason:
        terminated = isinstance(reason, Terminated)
        _say_kept(store, "terminated" if terminated else "interrupted")
        return TERMINATED if terminated else INTERRUPTED
    except SchedulerLost as lost:
        _say_kept(store, f"error: {lost}", f" --dask {dask}")
        return 1
    show(comparison, store, as_json=as_json)
    return 1 if comparison.errors else 0


def _say_kept(store: ResultStore, what: str, options: str = "") -> None:
    records, total = store.records(), len(store.tasks)
    kept = total - len(store.missing(records))
    failed = sum(record["status"] != "ok" for record in records)
    again = f", {failed} more failed and are tried again" if failed else ""
    say(f"{what}: {kept} of {total} tasks are kept{again}; go on with")
    say(f"  hindsched bench --resume --out {shlex.quote(str(store.folder))}{options}")


def _instances_of(name: str) -> list[Instance]:
    """Instances of a suite, of one family's suite, of a file, a folder or a name."""
    from hindsched.instances.catalogue import families_or_all, is_library_name, suites
    from hindsched.online.registry import algorithms

    path = Path(name)
    every = {word: suites(word) for word in families_or_all(None) if algorithms(word)}
    makers = [
        make for word, suites_here in every.items() for suite, make in suites_here.items()
        if name == suite or (name == f"{word}/{suite}" and not path.exists())
    ]  # fmt: skip
    if makers:
        return [item for make in makers for item in make()]
    if path.is_dir():
        files = sorted(str(file) for file in path.iterdir() if ".json" in file.suffixes)
        if not files:
            raise InputError("folder", name, "must hold instance files (.json)")
        return [_of_folder(file) for file in files]
    if path.exists() or path.suffix == ".json" or is_library_name(name):
        return [opt.load_instance(name)]
    words = dict.fromkeys(suite for suites_here in every.values() for suite in suites_here)
    rule = f"must be one of {', '.join(words)}, a file, a folder or an instance's name"
    raise InputError("suite", name, rule)


def _of_folder(file: str) -> Instance:
    """An instance of a folder; what is wrong with it is said with its name."""
    try:
        return opt.load_instance(file)
    except InputError as error:
        where = error.where if error.where == file else f"{file}: {error.where}"
        raise InputError(where, error.value, error.rule, error.others) from None


def _given(context: typer.Context) -> JsonObject:
    """Options that the user gave, except those that change no number."""
    options: JsonObject = {}
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and name not in FREE_ON_RESUME:
            options[name] = list(value) if isinstance(value, tuple) else value
    return options


def _reopen(folder: str | None, suite: str, options: JsonObject) -> ResultStore:
    """Open the results to resume; options given again must be what they were."""
    from hindsched.analysis.store import MANIFEST, ResultStore
    from hindsched.solvers.door.result import versions

    folders = sorted(str(path.parent) for path in RESULTS.glob(f"{suite}-*/{MANIFEST}"))
    if folder is None and not folders:
        raise InputError("out", "(absent)", f"no results of {suite} to resume in {RESULTS}")
    store = ResultStore.open(folder or folders[-1])
    before = store.manifest["settings"]
    for name, value in options.items():
        if name not in before or before[name] != value:
            rule = f"the results to resume were made with {before.get(name, 'the default')}"
            raise InputError(name, value, rule)
    now, then = versions(), store.manifest["versions"]
    changed = [name for name in then if now.get(name) != then[name]]
    if changed:
        say(f"note: versions differ from those of the first part: {', '.join(changed)}")
    return store

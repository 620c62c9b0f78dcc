"""``hindsched bench``: the main job, on suites, files, folders or a trace."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindsched.cli.output import Json, errors, say
from hindsched.cli.report import show
from hindsched.cli.settings import (
    Algorithms,
    Engine,
    Gap,
    Jobs,
    Method,
    OneFamily,
    Settings,
    Solver,
    Threads,
    TraceFile,
    TraceFormat,
    WorkLimit,
    load,
    parse_settings,
    trace_instance,
)
from hindsched.errors import INTERRUPTED, TERMINATED, InputError
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    from hindsched.analysis.store import ResultStore
    from hindsched.instances.base import Instance

DEFAULT_SUITE = "small"
DEFAULT_TIME_LIMIT, PROVING_TIME_LIMIT = 10.0, 60.0
"""Seconds of an offline solve; of the suite whose optima are all to be proven."""
RESULTS = Path("results")
FREE_ON_RESUME = ("workers", "dask", "out", "resume", "as_json")
"""Options that do not change a number, so that a resumed run may have others."""


def bench(
    context: typer.Context,
    suite: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUITE|FILE|DIR...",
            help="Suites (small if absent; oasis/small for one family), files, folders, names.",
        ),
    ] = None,
    family: OneFamily = None,
    algorithm: Algorithms = None,
    seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    seeds: Annotated[int, typer.Option(help="Seeds of each randomised algorithm.")] = 5,
    settings: Settings = None,
    engine: Engine = None,
    from_trace: TraceFile = None,
    trace_format: TraceFormat = None,
    jobs: Jobs = None,
    method: Method = "auto",
    solver: Solver = "highs",
    time_limit: Annotated[
        float, typer.Option(help="Seconds for each offline solve; if given, for each run too.")
    ] = DEFAULT_TIME_LIMIT,
    gap: Gap = 1e-6,
    threads: Threads = 1,
    work_limit: WorkLimit = None,
    workers: Annotated[int, typer.Option(help="Local processes; 0 for none.")] = 2,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
    out_: Annotated[
        str | None, typer.Option("-o", "--out", "--output", help="Folder of the results.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Do only what is missing or damaged.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Solve or bound each instance, run the algorithms, and report the ratio intervals."""
    from hindsched.analysis.compare import finish
    from hindsched.analysis.plan import plan_tasks
    from hindsched.analysis.store import ResultStore
    from hindsched.analysis.sweep import SchedulerLost, check_workers, connect
    from hindsched.solvers.door.interrupt import Terminated
    from hindsched.solvers.door.options import SolveOptions

    given = _given(context)
    check_workers(workers)
    if dask is not None:
        connect(dask).close()  # before a folder is made for a run that nobody would do
    title = Path(from_trace or (suite or [DEFAULT_SUITE])[0]).name.split(".")[0]
    if resume:
        store = _reopen(out_, title, given)
    else:
        values = parse_settings(settings, engine)
        chosen, own = _instances(
            suite, family, from_trace, trace_format,
            jobs=jobs, seed=seed, settings=values, algorithm=algorithm,
        )  # fmt: skip
        offline: JsonObject = {"method": method, "solver": solver, "gap": gap}
        if work_limit is None or "time_limit" in given:
            proves = "time_limit" not in given and _is_small(suite, from_trace)
            offline["time_limit"] = PROVING_TIME_LIMIT if proves else time_limit
        offline |= {} if work_limit is None else {"work_limit": work_limit}
        offline |= {} if threads == 1 else {"threads": threads}
        SolveOptions.of({name: value for name, value in offline.items() if name != "method"})
        tasks = plan_tasks(
            chosen, algorithm, seeds=seeds, first_seed=seed, settings=own, offline=offline
        )
        asked = {**given, **offline, "seeds": seeds}
        asked |= {"run_limit": time_limit} if "time_limit" in given else {}
        folder = out_ or RESULTS / f"{title}-{time.strftime('%Y%m%d-%H%M%S')}"
        store = ResultStore.create(folder, chosen, tasks, asked)
    # The pool's tracker of semaphores would warn of those of workers that Ctrl-C ended.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    try:
        for damage in store.damages():
            say(f"damaged, made again: {damage}")
        count, total = len(store.manifest["instances"]), len(store.tasks)
        done = total - len(store.missing())
        say(f"{count} instance{'s' * (count != 1)}, {total} tasks, {done} done: {store.folder}")
        comparison = finish(
            store, workers=workers, dask=dask, title="bench", console=errors.console
        )
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
    total = len(store.tasks)
    say(f"{what}: {total - len(store.missing())} of {total} tasks are kept; go on with")
    say(f"  hindsched bench --resume --out {shlex.quote(str(store.folder))}{options}")


def _instances(
    suite: Sequence[str] | None,
    family: str | None,
    from_trace: str | None,
    trace_format: str | None,
    *,
    jobs: int | None,
    seed: int,
    settings: dict[str, str],
    algorithm: Sequence[str] | None,
) -> tuple[list[Instance], dict[str, str]]:
    """The instances to compare on, and the settings that belong to the algorithms."""
    from hindsched.instances.base import check_family

    if from_trace is not None:
        if family is None:
            raise InputError("family", "(absent)", "is required with --from-trace")
        if suite:
            raise InputError("suite", suite[0], "must not be given with --from-trace")
        check_family(family)
        for_algorithms = _split(family, algorithm, settings)
        for_trace = {key: settings[key] for key in settings if key not in for_algorithms}
        made = trace_instance(
            family, from_trace, trace_format, None, jobs=jobs, start=None, seed=seed,
            servers=None, slot_seconds=None, settings=for_trace,
        )  # fmt: skip
        return [made], for_algorithms
    for name, value in {"trace-format": trace_format, "jobs": jobs}.items():
        if value is not None:
            raise InputError(name, value, "needs --from-trace")
    found = [item for name in suite or [DEFAULT_SUITE] for item in _named(name, family)]
    return found, settings


def _named(name: str, family: str | None) -> list[Instance]:
    """Instances of a suite, a file, a folder or a name."""
    from hindsched.instances.catalogue import families_or_all, is_library_name, suites
    from hindsched.online.registry import algorithms

    words = [word for word in families_or_all(family) if algorithms(word) and name in suites(word)]
    if words:
        return [item for word in words for item in suites(word)[name]()]
    path = Path(name)
    word, slash, of_family = name.partition("/")
    if slash and not path.exists() and word in families_or_all(None):
        make_all = suites(word).get(of_family)
        if make_all is not None:
            return [item for item in make_all() if family in (None, word)]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if ".json" in file.suffixes)
        if not files:
            raise InputError("folder", name, "must hold instance files (.json)")
        return [item for file in files for item in _of_family(load(str(file)), family)]
    if path.exists() or path.suffix == ".json" or is_library_name(name):
        return _of_family(load(name), family)
    known = dict.fromkeys(key for word in families_or_all(family) for key in suites(word))
    rule = f"must be one of {', '.join(known)}, a file, a folder or an instance's name"
    raise InputError("suite", name, rule)


def _of_family(instance: Instance, family: str | None) -> list[Instance]:
    return [instance] if family in (None, instance.family) else []


def _split(
    family: str, algorithm: Sequence[str] | None, settings: Mapping[str, str]
) -> dict[str, str]:
    """The settings that at least one of the algorithms has; the others belong to the trace."""
    from hindsched.analysis.plan import own_settings
    from hindsched.online.registry import algorithms, is_registered_name

    known = algorithms(family)
    found: dict[str, str] = {}
    for name in known if algorithm is None else algorithm:
        if name in known or not is_registered_name(name):
            found |= own_settings(family, name, settings)
    return found


def _given(context: typer.Context) -> JsonObject:
    """Options that the user gave, except those that change no number."""
    given: JsonObject = {}
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        name = name.rstrip("_")
        if source is not None and source.name == "COMMANDLINE" and name not in FREE_ON_RESUME:
            given[name] = list(value) if isinstance(value, tuple | list) else value
    return given


def _reopen(folder: str | None, suite: str, given: Mapping[str, object]) -> ResultStore:
    """Open the results to resume; options given again must be what they were."""
    from hindsched.analysis.store import MANIFEST, ResultStore
    from hindsched.solvers.door.versions import versions

    if folder is None:
        candidates = sorted(path.parent for path in RESULTS.glob(f"{suite}-*/{MANIFEST}"))
        if not candidates:
            raise InputError("out", "(absent)", f"no results of {suite} to resume in {RESULTS}")
        folder = str(candidates[-1])
    store = ResultStore.open(folder)
    before = store.manifest["settings"]
    for name, value in given.items():
        if name not in before or before[name] != value:
            rule = f"the results to resume were made with {before.get(name, 'the default')}"
            raise InputError(name, value, rule)
    now, then = versions(), store.manifest["versions"]
    changed = [name for name in then if now.get(name) != then[name]]
    if changed:
        say(f"note: versions differ from those of the first part: {', '.join(changed)}")
    return store


def _is_small(suite: Sequence[str] | None, trace: str | None) -> bool:
    """Whether nothing but the suite ``small`` is compared, of whatever families."""
    names = suite or ([] if trace is not None else [DEFAULT_SUITE])
    return bool(names) and all(name.rpartition("/")[2] == DEFAULT_SUITE for name in names)

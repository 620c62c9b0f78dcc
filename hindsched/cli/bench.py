"""``hindsched bench``, the main job, and ``hindsched report``."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hindsched.cli.compiling import compile_first
from hindsched.cli.output import (
    Json,
    digits,
    emit_json,
    errors,
    out,
    percent,
    say,
    table,
)
from hindsched.cli.settings import (
    Algorithms,
    Engine,
    Gap,
    Jobs,
    Method,
    OneFamily,
    Servers,
    Settings,
    SlotSeconds,
    Solver,
    Start,
    Threads,
    TraceFile,
    TraceFormat,
    TracePart,
    WorkLimit,
    load,
    parse_settings,
    trace_instance,
)
from hindsched.errors import INTERRUPTED, TERMINATED, InputError
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    from hindsched.analysis.comparison import Comparison
    from hindsched.analysis.integrity import Damage
    from hindsched.analysis.local_pool import LocalPool
    from hindsched.analysis.records import Record
    from hindsched.analysis.store import ResultStore
    from hindsched.instances.base import Instance

DEFAULT_SUITE = "small"
DEFAULT_TIME_LIMIT = 10.0
PROVING_TIME_LIMIT = 60.0
"""Of the suite whose optima are all to be proven, on a slow or busy machine too."""
RESULTS = Path("results")
OPTIMA_COLUMNS = ("instance", "optimum in", "status", "proof", "gap", "seconds")
RATIO_COLUMNS = ("algorithm", "on", "median ratio", "worst ratio", "ratio of sums", "note")
RATIO_LEGEND = """\
on: number of instances; [at least, at most] of a ratio, 1 is perfect; median, worst: over the
instances; of sums: all OPT against all ALG; inf: earns nothing; proof: who vouches for the bound;
gap: between the ends of the optimum, of which the best schedule of all is one; -: no bound"""
SHOWN: tuple[Literal["median", "worst", "sums"], ...] = ("median", "worst", "sums")
MOST_COLUMNS = 100
"""Of a table; a wider one is folded, also in a pipe."""
Verify = Annotated[
    bool, typer.Option("--verify", help="Recompute every objective and bound that is there.")
]
FREE_ON_RESUME = ("verify", "memory_limit", "workers", "dask", "out", "resume", "as_json")
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
    trace_part: TracePart = None,
    jobs: Jobs = None,
    start: Start = None,
    servers: Servers = None,
    slot_seconds: SlotSeconds = None,
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
    verify: Verify = False,
    as_json: Json = False,
) -> int:
    """Solve or bound each instance, run the algorithms, and report the ratio intervals."""
    from hindsched.analysis.cluster import SchedulerLost
    from hindsched.analysis.sweep import begun_pool, check_workers
    from hindsched.solvers.door.interrupt import Terminated
    from hindsched.solvers.door.options import SolveOptions

    given = _given(context)
    check_workers(workers)
    if dask is not None:
        from hindsched.analysis.cluster import connect

        connect(dask).close()  # before a folder is made for a run that nobody would do
    with ExitStack() as stack:
        local = workers if dask is None else 0
        is_known = not resume and _is_small(suite, from_trace)
        pool = stack.enter_context(begun_pool(local, family)) if is_known else None
        if resume:
            store = _reopen(out_, _title(suite, from_trace), given)
        else:
            values = parse_settings(settings, engine)
            chosen, own = _instances(
                suite, family, from_trace, trace_format, trace_part,
                jobs=jobs, start=start, seed=seed, servers=servers, slot_seconds=slot_seconds,
                settings=values, algorithm=algorithm,
            )  # fmt: skip
            offline: JsonObject = {"method": method, "solver": solver, "gap": gap}
            if work_limit is None or "time_limit" in given:
                proves = "time_limit" not in given and _is_small(suite, from_trace)
                offline["time_limit"] = PROVING_TIME_LIMIT if proves else time_limit
            offline |= {} if work_limit is None else {"work_limit": work_limit}
            offline |= {} if threads == 1 else {"threads": threads}
            SolveOptions.of({name: value for name, value in offline.items() if name != "method"})
            folder = Path(out_) if out_ is not None else _new_folder(_title(suite, from_trace))
            asked = {**given, **({"run_limit": time_limit} if "time_limit" in given else {})}
            store = _create(folder, chosen, algorithm, seed, seeds, own, offline, asked)
        pool = pool or stack.enter_context(begun_pool(local, family))
        try:
            return _finish(
                store,
                resume=resume,
                verify=verify,
                workers=workers,
                dask=dask,
                pool=pool,
                as_json=as_json,
            )
        except KeyboardInterrupt as reason:
            terminated = isinstance(reason, Terminated)
            _say_kept(store, "terminated" if terminated else "interrupted")
            return TERMINATED if terminated else INTERRUPTED
        except SchedulerLost as lost:
            _say_kept(store, f"error: {lost}", f" --dask {dask}")
            return 1


def _finish(
    store: ResultStore,
    *,
    resume: bool,
    verify: bool,
    workers: int,
    dask: str | None,
    pool: LocalPool | None,
    as_json: bool,
) -> int:
    """Run what is missing, then write and show the tables."""
    from hindsched.analysis.comparison import Comparison
    from hindsched.analysis.compiling import not_compiled, work_of
    from hindsched.analysis.progress import progress_bar
    from hindsched.analysis.report.data import PageParts, one_by_one
    from hindsched.analysis.report.html import write_report
    from hindsched.analysis.sweep import run_tasks

    damages = _damages(store, everything=verify)[1] if resume else []
    for damage in damages:
        say(f"damaged, made again: {damage}")
    if resume:
        store.remove_leftovers()
    store.leave_out(damages)
    instances, missing = store.instances(), store.missing()
    total = len(store.tasks)
    count = f"{len(instances)} instance{'s' if len(instances) != 1 else ''}"
    say(f"{count}, {total} tasks, {total - len(missing)} done: {store.folder}")
    if dask is None:
        compile_first(not_compiled(work_of(missing, instances)), workers)
    with progress_bar(total, "bench", done=total - len(missing), console=errors.console) as bar:

        def keep(record: Record) -> None:
            store.add(record)
            bar(record["task"])

        run_tasks(
            missing,
            instances,
            workers=workers,
            dask=dask,
            on_record=keep,
            run_limit=store.run_limit,
            pool=pool,
        )
    comparison = Comparison(store.records(read_back=False))
    parts = PageParts(store, comparison, one_by_one if pool is None else pool.spread)
    store.write_tables(comparison)
    path = write_report(store, comparison, parts)
    _show(comparison, store, path, as_json=as_json)
    return 1 if comparison.errors else 0


def _say_kept(store: ResultStore, what: str, options: str = "") -> None:
    total = len(store.tasks)
    say(f"{what}: {total - len(store.missing())} of {total} tasks are kept; go on with")
    say(f"  hindsched bench --resume --out {shlex.quote(str(store.folder))}{options}")


def report(
    folder: Annotated[str, typer.Argument(help="Folder of results of `hindsched bench`.")],
    verify: Verify = False,
    as_json: Json = False,
) -> int:
    """Rebuild the tables and the HTML report from a folder of results.

    Every record, schedule and certificate is compared with the hash it was written with, and
    objectives and bounds are recomputed from schedules and certificates: of some, or of all with
    --verify. What is damaged is named, left out, and exit code 1.
    """
    from hindsched.analysis.comparison import Comparison
    from hindsched.analysis.report.html import write_report
    from hindsched.analysis.store import ResultStore

    store = ResultStore.open(folder)
    recomputed, damages = _damages(store, everything=verify)
    store.leave_out(damages)
    comparison = Comparison(store.records())
    store.write_tables(comparison)
    path = write_report(store, comparison)
    _show(comparison, store, path, as_json=as_json)
    total = len(comparison.records)
    note = "" if recomputed == total else "; --verify recomputes all"
    say(f"{total} records compared with their hashes, {recomputed} recomputed{note}")
    for damage in damages:
        say(f"damaged: {damage}")
    if damages:
        say(f"hindsched bench --resume --verify --out {shlex.quote(folder)} makes them again")
    elif total < len(store.tasks):
        absent = f"{len(store.tasks) - total} of {len(store.tasks)} tasks have no record"
        say(f"{absent}: hindsched bench --resume --out {shlex.quote(folder)} runs them")
    return 1 if damages else 0


def _damages(store: ResultStore, *, everything: bool) -> tuple[int, list[Damage]]:
    """How many records were recomputed, and all that is damaged."""
    by_hash = store.damages()
    recomputed, wrong = store.recompute(everything=everything)
    return recomputed, [*by_hash, *wrong]


def _show(comparison: Comparison, store: ResultStore, path: Path, *, as_json: bool) -> None:
    for line in comparison.errors:
        say(f"failed: {line}")
    if as_json:
        emit_json(
            {
                "out": str(store.folder),
                "report": str(path),
                "tasks": len(store.tasks),
                "missing": len(store.missing(comparison.records)),
                "failed": comparison.errors,
                "instances": [item.to_dict() for item in comparison.instances],
            }
        )
        return
    from hindsched.analysis.ratio import STAR_NOTE
    from hindsched.analysis.summary import interval_of
    from hindsched.analysis.verdict import verdicts
    from hindsched.instances.library import shown_name

    summary = comparison.summary_rows()
    names = {item.name: shown_name(item) for item in store.instances()}
    width = min(out.console.width, MOST_COLUMNS)
    for family in dict.fromkeys(item.family for item in comparison.instances):
        optima = [
            (
                names[item.instance],
                str(item.optimum.interval),
                item.optimum.status,
                item.optimum.proof,
                percent(item.optimum.gap),
                digits(item.offline.get("seconds"), 3),
            )
            for item in comparison.instances
            if item.family == family
        ]
        out.print(table(f"{family}: optima", OPTIMA_COLUMNS, optima), width=width)
        ratios = [
            (
                row["label"],
                row["instances"],
                *(str(interval_of(row, of)) for of in SHOWN),
                note_of(row),
            )
            for row in summary
            if row["family"] == family
        ]
        out.print(table(f"{family}: competitive ratios", RATIO_COLUMNS, ratios), width=width)
    out.print(RATIO_LEGEND, markup=False)
    if any(row["starred"] for row in summary):
        say(STAR_NOTE)
    out.print(f"report: {path}", markup=False, soft_wrap=True)
    for verdict in verdicts(comparison):
        out.print(f"{verdict.sentence()} {verdict.proof()}", markup=False, width=width)


def note_of(row: Mapping[str, object]) -> str:
    """What the numbers of a summary row leave open: infinite, absent and starred ratios."""
    notes = [f"inf on {row['infinite']}"] if row["infinite"] else []
    notes += [f"no ratio on {row['without_ratio']}"] if row["without_ratio"] else []
    return "; ".join([*notes, *(["*"] if row["starred"] else [])])


def _create(
    folder: Path,
    instances: Sequence[Instance],
    algorithm: Sequence[str] | None,
    seed: int,
    seeds: int,
    settings: Mapping[str, object],
    offline: Mapping[str, object],
    given: Mapping[str, object],
) -> ResultStore:
    from hindsched.analysis.plan import plan_tasks
    from hindsched.analysis.store import ResultStore

    tasks = plan_tasks(
        instances, algorithm, seeds=seeds, first_seed=seed, settings=settings, offline=offline
    )
    return ResultStore.create(folder, instances, tasks, {**given, **offline, "seeds": seeds})


def _instances(
    suite: Sequence[str] | None,
    family: str | None,
    from_trace: str | None,
    trace_format: str | None,
    trace_part: str | None,
    *,
    jobs: int | None,
    start: float | None,
    seed: int,
    servers: int | None,
    slot_seconds: float | None,
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
            family, from_trace, trace_format, trace_part,
            jobs=jobs, start=start, seed=seed, servers=servers, slot_seconds=slot_seconds,
            settings=for_trace,
        )  # fmt: skip
        return [made], for_algorithms
    given = {
        "trace-format": trace_format, "trace-part": trace_part, "jobs": jobs, "start": start,
        "servers": servers, "slot-seconds": slot_seconds,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None:
            raise InputError(name, value, "needs --from-trace")
    found = [item for name in suite or [DEFAULT_SUITE] for item in _named(name, family)]
    return found, settings


def _named(name: str, family: str | None) -> list[Instance]:
    """Instances of a suite, a file, a folder or a name."""
    from hindsched.instances.generators.registry import suites
    from hindsched.instances.library import families_or_all, is_library_name
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


def _title(suite: Sequence[str] | None, trace: str | None) -> str:
    """What results are called: the first thing that they are about."""
    if trace is not None:
        return Path(trace).name.split(".")[0]
    return Path(suite[0]).name.split(".")[0] if suite else DEFAULT_SUITE


def _is_small(suite: Sequence[str] | None, trace: str | None) -> bool:
    """Whether nothing but the suite ``small`` is compared, of whatever families."""
    names = suite or ([] if trace is not None else [DEFAULT_SUITE])
    return bool(names) and all(name.rpartition("/")[2] == DEFAULT_SUITE for name in names)


def _new_folder(title: str) -> Path:
    return RESULTS / f"{title}-{time.strftime('%Y%m%d-%H%M%S')}"

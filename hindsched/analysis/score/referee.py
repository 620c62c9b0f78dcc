"""The referee: a candidate plays instances that nobody knows; what people read of its score."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from hindsched.analysis.report.html import page_environment, page_style
from hindsched.analysis.score import judge
from hindsched.analysis.score.candidate import Contained, Limits, find_bwrap, read_candidate
from hindsched.analysis.score.judge import CANDIDATE, INSTANCE, Row
from hindsched.analysis.store import check_folder
from hindsched.analysis.tables import cell
from hindsched.errors import HindschedError, InputError, Refused, check_type
from hindsched.instances.base import Instance, check_family
from hindsched.instances.io import read, read_json, write_bytes, write_json, write_text
from hindsched.online.protocol import OnlineAlgorithm
from hindsched.online.registry import algorithms, build_algorithm
from hindsched.online.simulator import simulate
from hindsched.printable import error_words, printable
from hindsched.solutions.base import write_solution
from hindsched.solvers.door.result import versions

PUBLIC_SEEDS = (4, 7)  # the generator's, of the instances that a candidate's author may see
DRAWN, SHORTEST_SECRET = 8, 16  # hidden seeds where none are given; least characters of one
WORK, LONGEST_REASON = 500, 300
NOTE = (
    "Mean of ALG/OPT when maximising, OPT/ALG when minimising, at least, by the exact kernel; the "
    "interval of 95 % is that of the mean over resampled instances."
)
NO_SANDBOX = (
    'apt install bubblewrap, or pip install "hindsched[score]"; the sandbox none is to be asked '
    "for: in it a candidate can do what you can"
)
COLUMNS, MOST_JOBS = 72, 20  # characters of a drawn schedule, and jobs of it


@dataclass(frozen=True)
class Score:
    """How good a candidate is."""

    data: dict[str, Any]  # what ``score.json`` holds
    feedback: str  # for the author: nothing of the hidden instances but the score

    @property
    def combined_score(self) -> float:
        """Mean over the hidden instances of the certain share of the optimum, 0 to 1."""
        return float(self.data["combined_score"])

    @property
    def instances(self) -> Any:
        """A table of the hidden instances: score, reason, seconds a decision."""
        return _score_table(self.data["instances"])

    @property
    def ladder(self) -> Any:
        """A table of yardsticks: scores on the same instances, and the candidate beside them."""
        return _score_table(self.data["ladder"])

    def __repr__(self) -> str:
        name, sandbox = self.data["candidate"], self.data["sandbox"]
        return f"<{name}: score {self.combined_score:.6f}, {sandbox}>"


def score(
    candidate: str,
    *,
    family: str | None = None,
    suite: str | None = None,
    seeds: Sequence[int | str] | str | Path | None = None,
    preset: str = "small",
    step_limit: float = Limits.step,
    run_limit: float = Limits.run,
    memory: int = Limits.memory,
    sandbox: str = "bwrap",
    work_limit: int = WORK,
    public_seeds: Sequence[int] = PUBLIC_SEEDS,
    out: str | Path | None = None,
    cache: str | Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Score:
    """Score a scheduler that nobody trusts.

    Parameters
    ----------
    candidate : str
        ``FILE.py``, ``FILE.py:CLASS`` or a command (`read_candidate`), which runs as a process of
        its own; or the name of an algorithm of the family, which runs in this one.
    family, preset, suite : str, optional
        The family's name and its generator's preset; or ``FAMILY/SUITE``, which anybody may know.
    seeds : sequence of int or str, or path, optional
        The hidden seeds, or the file that has them, one a line. Each is a word from whose hash an
        instance is drawn: where nobody can guess the word, nobody can guess the instance.
        Drawn anew if None, and written into ``score.json`` alone.
    step_limit, run_limit, memory : float
        Seconds for each decision and each run, its start included; bytes of all its processes.
    sandbox : {"bwrap", "none"}
        Bubblewrap, which must work here; or, only if you ask for it, none: the candidate can do
        what you can, and the result says ``unsandboxed``.
    work_limit, public_seeds : int, and sequence of int
        Work for the denominator of each instance, counted as `solve` counts it; the generator's
        seeds of the instances that the feedback shows.
    out, cache : path, optional
        Folder to write, new or empty; where denominators are kept, the user's cache by default.
    say : callable
        Is told in words what is being done.

    Raises
    ------
    InputError
        For a candidate, family or seeds that are none, or a sandbox that does not work.
    SolveFailed
        If an instance gets no certified bound, or a schedule is better than it: our mistakes.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.score("fifo", family="gang", seeds=[7], public_seeds=[]).combined_score > 0.5
    True
    """
    check_type("candidate", candidate, str, "a text: a file, a command or a name")
    if out is not None and any(check_folder(out).iterdir()):
        raise InputError("out", str(out), "must be a new or an empty folder")
    if (family is None) == (suite is None) or (suite is not None and seeds is not None):
        raise InputError("family", family, "must be given, or FAMILY/SUITE in place of all seeds")
    word = str(family) if suite is None else suite.partition("/")[0]
    check_family(word)
    words = _words(seeds) if suite is None else []
    if seeds is None and suite is None:
        say(f"no seeds given: {len(words)} are drawn, other runs have other instances")
    player, files, facts = _player(candidate, word, Limits(step_limit, run_limit, memory), sandbox)
    say(f"{facts['candidate']}: {facts['sandbox']}")
    rows: dict[str, list[Row]] = {"instances": [], "public": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, instance in judge.draw_instances(
            word, suite, preset, words, public_seeds
        ).items():
            judge.prepare(instance, work_limit, folder / name, cache)
            row = _play(instance, player, folder / name)
            rows[judge.ROWS_OF[Path(name).parent.name]].append(row)
            say(f"{name}: {row['score']:.6f} {row['reason']}")
        data = {
            "format": judge.FORMAT, **facts, "family": word, "suite": suite, "preset": preset,
            "seeds": words, "public_seeds": [*public_seeds], "step_limit": step_limit,
            "run_limit": run_limit, "memory": memory, "work_limit": work_limit,
            "made": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions(),
            **rows, **judge.standings(**rows),
        }  # fmt: skip
        feedback = feedback_of(data, folder)
        if out is not None:
            for name, content in files.items():
                write_bytes(content, folder / CANDIDATE / name)
            write_json(data, folder / judge.RESULT)
            write_text(feedback, folder / "feedback.txt")
            write_text(page_of(data), folder / "score.html")
            # whole or not at all: who interrupts a run may call the same folder again
            shutil.copytree(folder, out, dirs_exist_ok=True)
    return Score(data, feedback)


def _words(seeds: Sequence[int | str] | str | Path | None) -> list[str]:
    """The hidden seeds; what a file has in its lines is told to nobody."""
    if seeds is None:
        return [secrets.token_hex(SHORTEST_SECRET) for _ in range(DRAWN)]
    if isinstance(seeds, str | Path):
        try:
            words = Path(seeds).read_text(encoding="utf-8").split()
        except (OSError, ValueError):
            raise InputError("seeds-file", str(seeds), "must be a text file") from None
        if any(len(word) < SHORTEST_SECRET for word in words):
            rule = f"must have words of {SHORTEST_SECRET} characters or more: others can be guessed"
            raise InputError("seeds-file", str(seeds), rule)
    else:
        words = [str(word) for word in seeds]
    if not words or len(set(words)) < len(words):
        raise InputError("seeds", f"{len(words)} of them", "must be different, at least one")
    return words


def _player(
    text: str, family: str, limits: Limits, sandbox: str
) -> tuple[Callable[[], OnlineAlgorithm], dict[str, bytes], Row]:
    """What makes the candidate anew for each run, its files, and what is said of it."""
    if sandbox not in ("bwrap", "none"):
        raise InputError("sandbox", sandbox, "must be bwrap or none")
    if text in algorithms(family):
        facts: Row = {"candidate": text, "command": [], "sha256": None, "sandbox": "in process"}
        return partial(build_algorithm, family, text), {}, facts
    candidate = read_candidate(text)
    bwrap, why = (None, "") if sandbox == "none" else find_bwrap()
    if sandbox == "bwrap" and bwrap is None:
        raise InputError("sandbox", sandbox, f"must work here: {why}; {NO_SANDBOX}")
    facts = {
        "candidate": candidate.name, "command": candidate.command, "sha256": candidate.sha256,
        "sandbox": "bwrap" if bwrap else "unsandboxed",
    }  # fmt: skip
    return partial(Contained, candidate, limits, bwrap), candidate.files, facts


def _play(instance: Instance, player: Callable[[], OnlineAlgorithm], place: Path) -> Row:
    """Let a candidate play, judge its schedule, and say why where there is none.

    Whatever it makes go wrong, in its own process or here, is its own failure; that its schedule
    is better than what is certified is ours.
    """
    row: Row = {"status": "ok", "reason": "", "jobs": len(instance.jobs)}
    try:
        run = simulate(instance, player())
        if not run.in_feasible_set:
            raise Refused("rules", instance.family, "may do what the offline problem forbids")
        write_solution(run.solution, place / f"{CANDIDATE}.json")
    except Exception as error:
        (place / f"{CANDIDATE}.json").unlink(missing_ok=True)
        message = str(error) if isinstance(error, HindschedError) else error_words(error)
        row["reason"] = printable(" ".join(message.split()))[:LONGEST_REASON]
        row["status"] = "refused" if isinstance(error, Refused) else "failed"
    else:
        seconds = [each / 1000 for each in run.decision_ms] or [0.0]
        row |= {
            "jobs_completed": run.to_dict()["jobs_completed"], "seconds": run.seconds,
            "seconds_a_decision": median(seconds), "seconds_longest": max(seconds),
        }  # fmt: skip
    judgement = judge.judged(place, instance)
    wrong = judgement.pop("wrong")
    if wrong and row["status"] == "ok":
        row["status"], row["reason"] = "refused", f"the exact kernel: {wrong}"
    return {"instance": place.name, **judgement, **row}


def feedback_of(data: Row, folder: Path) -> str:
    """What a candidate's author may read: the score, and everything about the public instances."""
    lines = [
        f"score {data['combined_score']:.6f} on {len(data['instances'])} hidden instances of "
        f"{data['family']} (1 is the optimum in hindsight), {data['sandbox']}"
    ]
    for row in data["public"]:
        lines += ["", f"public instance {row['instance']}: score {row['score']:.6f}"]
        ladder = sorted(row["ladder"].items(), key=lambda item: -item[1])
        lines.append("  " + ", ".join(f"{name} {score:.4f}" for name, score in ladder))
        if row["status"] != "ok":
            lines.append(f"  {row['status']}: {row['reason']}")
            continue
        here = folder / "public" / row["instance"]
        lines += [
            f"  objective {row['objective']:.6g}, certified bound {row['bound']:.6g}, "
            f"{row['jobs_completed']} of {row['jobs']} jobs completed",
            f"  seconds: {row['seconds']:.3f} in all, {row['seconds_a_decision']:.4f} a "
            f"decision, {row['seconds_longest']:.4f} the longest",
            *gantt_text(read(here / INSTANCE), read_json(here / f"{CANDIDATE}.json")),
        ]
    return printable("\n".join(lines)) + "\n"


def gantt_text(instance: Instance, solution: Mapping[str, Any]) -> list[str]:
    """A schedule as text: a line a job, ``.`` from its arrival on, ``#`` where it runs."""
    arrivals = {job.name: instance.arrival_of(job) for job in instance.jobs}
    listed = solution["jobs"][:MOST_JOBS]
    ends = [row["to"] for job in listed for row in job["assignments"]]
    last = max([instance.horizon, *ends])
    step = -(-last // COLUMNS)
    lines = [f"  slots 1..{last}" + (f", a character is {step} of them" if step > 1 else "")]
    for job in listed:
        first, end = (arrivals[job["name"]] - 1) // step, job["completion"]
        drawn = [" " if column < first else "." for column in range(-(-last // step))]
        for row in job["assignments"]:
            for column in range((row["from"] - 1) // step, (row["to"] - 1) // step + 1):
                drawn[column] = "#"
        ending = "not done" if end is None else f"done in {end}"
        lines.append(f"  {job['name']:<8} {''.join(drawn)} {ending}")
    left = len(solution["jobs"]) - len(listed)
    return [*lines, f"  and {left} more jobs"] if left else lines


def page_of(data: Row) -> str:
    """The page of a score, which tells of the hidden instances: not for the author."""
    facts = "combined_score", "interval", "sandbox", "family", "suite", "preset", "made"
    tables = {
        "In short": [{name: data[name] for name in facts}],
        "Hidden instances": data["instances"], "Public instances": data["public"],
        "Known algorithms, and on how many instances the candidate is better": data["ladder"],
    }  # fmt: skip
    environment = page_environment("hindsched.analysis.score")
    environment.filters["cell"] = cell
    template = environment.get_template("page.html")
    title = f"The score of {data['candidate']}"
    return template.render(title=title, note=NOTE, style=page_style(), tables=tables)


def _score_table(rows: Sequence[Row]) -> Any:
    import pandas as pd

    return pd.DataFrame(rows).drop(columns="ladder", errors="ignore")

"""The referee: instances that nobody knows, a candidate that plays them, and its score."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from hindsched.analysis.score.candidate import Contained, Limits, find_bwrap, read_candidate
from hindsched.analysis.score.feedback import feedback_of
from hindsched.analysis.score.judge import OWN, judged, prepare, standings
from hindsched.analysis.score.page import FORMAT, RESULT, write_page
from hindsched.errors import HindschedError, InputError, Refused
from hindsched.instances.base import Instance, check_family
from hindsched.instances.catalogue import suite as suite_of
from hindsched.instances.generators.registry import generate
from hindsched.instances.io import write_json, write_text
from hindsched.online.protocol import OnlineAlgorithm
from hindsched.online.registry import algorithms, build_algorithm
from hindsched.online.simulator import simulate
from hindsched.printable import printable, said_by
from hindsched.solutions.base import write_solution
from hindsched.solvers.door.result import versions

PUBLIC_SEEDS = (4, 7)
"""Seeds of the instances that a candidate's author may see."""
DRAWN, SEED_BITS = 8, 60
"""How many seeds are drawn where none are given, and how long they are."""
WORK = 500
LONGEST_REASON = 300


@dataclass(frozen=True)
class Score:
    """How good a candidate is.

    Parameters
    ----------
    data : dict
        What ``score.json`` holds.
    feedback : str
        What the candidate's author may be told: nothing of the hidden instances but the score.
    """

    data: dict[str, Any]
    feedback: str

    @property
    def combined_score(self) -> float:
        """Mean over the hidden instances of the certain share of the optimum, 0 to 1."""
        return float(self.data["combined_score"])

    @property
    def instances(self) -> Any:
        """A row a hidden instance: score, reason, seconds a decision."""
        import pandas as pd

        return pd.DataFrame(self.data["instances"])

    @property
    def ladder(self) -> Any:
        """A row a yardstick: its score on the same instances, and the candidate beside it."""
        import pandas as pd

        return pd.DataFrame(self.data["ladder"])

    def __repr__(self) -> str:
        name, sandbox = self.data["candidate"], self.data["sandbox"]
        return f"<{name}: score {self.combined_score:.6f}, {sandbox}>"


def score(
    candidate: str,
    *,
    family: str | None = None,
    suite: str | None = None,
    seeds: Sequence[int] | None = None,
    preset: str = "small",
    step_limit: float = Limits.step,
    run_limit: float = Limits.run,
    memory: int = Limits.memory,
    sandbox: str = "auto",
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
    family : str, optional
        The family's name: instances are drawn from `seeds`.
    suite : str, optional
        ``FAMILY/SUITE`` in its place: instances that anybody may know.
    seeds : sequence of int, optional
        The hidden seeds; drawn anew if None, and written into ``score.json`` alone.
    preset : str
        Preset of the family's generator.
    step_limit, run_limit : float
        Seconds for each decision and for each run.
    memory : int
        Bytes that a candidate's processes may hold together.
    sandbox : {"auto", "bwrap", "none"}
        ``auto`` uses bubblewrap where it works; without it the result says ``unsandboxed``.
    work_limit : int
        Work for the denominator of each instance, counted as `solve` counts it.
    public_seeds : sequence of int
        Seeds of the instances that the feedback shows.
    out : path, optional
        Folder to write, new or empty; `hindsched verify` judges it again.
    cache : path, optional
        Where denominators are kept between candidates; the user's cache by default.
    say : callable
        Is told in words what is being done.

    Raises
    ------
    InputError
        For a candidate, family or seeds that are none, or a sandbox that does not work.
    SolveFailed
        If an instance gets no certified bound, or a schedule beats one.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.score("fifo", family="gang", seeds=[7], public_seeds=[]).combined_score > 0.5
    True
    """
    if out is not None and Path(out).exists() and (Path(out).is_file() or any(Path(out).iterdir())):
        raise InputError("output", str(out), "must be a new or an empty folder")
    if out is not None:
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            rule = f"must be a folder that can be written ({error.strerror})"
            raise InputError("output", str(out), rule) from None
    hidden, drawn = _hidden(family, suite, preset, seeds)
    word = hidden[0].family
    if overlap := set(drawn or ()) & set(public_seeds):
        raise InputError("seeds", min(overlap), "must not be a public seed")
    limits = Limits(step_limit, run_limit, memory)
    player, files, facts = _player(candidate, word, limits, sandbox)
    say(f"{candidate}: {facts['sandbox']}")
    chosen = {"hidden": hidden, "public": []}
    if drawn is not None:
        chosen["public"] = [generate(word, preset, seed) for seed in public_seeds]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in chosen}
        for kind, instances in chosen.items():
            for number, instance in enumerate(instances, 1):
                place = folder / kind / f"i{number:02d}"
                prepare(instance, work_limit, place, cache)
                row = {"instance": place.name, **_play(instance, player, place)}
                row = {**judged(place)[OWN], **row}
                rows[kind].append(row)
                say(f"{kind} {place.name}: {row['score']:.6f} {row['reason']}")
        data = {
            "format": FORMAT, **facts, "family": word, "suite": suite, "preset": preset,
            "seeds": drawn, "step_limit": step_limit, "run_limit": run_limit, "memory": memory,
            "work_limit": work_limit, "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": versions(), "instances": rows["hidden"], "public": rows["public"],
            **standings(folder, rows["hidden"], rows["public"]),
        }  # fmt: skip
        feedback = feedback_of(data, folder)
        if out is not None:
            (folder / OWN).mkdir()
            for name, content in files.items():
                (folder / OWN / name).write_bytes(content)
            write_json(data, folder / RESULT)
            write_text(feedback, folder / "feedback.txt")
            write_page(data, folder)
            # whole or not at all: who interrupts a run may call the same folder again
            shutil.copytree(folder, out, dirs_exist_ok=True)
    return Score(data, feedback)


def _player(
    text: str, family: str, limits: Limits, sandbox: str
) -> tuple[Callable[[], OnlineAlgorithm], dict[str, bytes], dict[str, Any]]:
    """What makes the candidate anew for each run, its files, and what is said of it."""
    if sandbox not in ("auto", "bwrap", "none"):
        raise InputError("sandbox", sandbox, "must be auto, bwrap or none")
    if text in algorithms(family):
        facts = {"candidate": text, "sha256": None, "sandbox": "in process"}
        return partial(build_algorithm, family, text), {}, facts
    candidate = read_candidate(text)
    bwrap, why = (None, "as asked") if sandbox == "none" else find_bwrap()
    if sandbox == "bwrap" and bwrap is None:
        raise InputError("sandbox", sandbox, f"must work here: {why}")
    kind = "unsandboxed" if bwrap is None else "bwrap"
    facts = {"candidate": Path(text).name, "sha256": candidate.sha256, "sandbox": kind}
    return partial(Contained, candidate, limits, bwrap), candidate.files, facts | {"why": why}


def _play(instance: Instance, player: Callable[[], OnlineAlgorithm], place: Path) -> dict[str, Any]:
    """Let a candidate play an instance; its schedule is written, or why there is none is said.

    Whatever it makes go wrong, in its own process or here, is its own failure.
    """
    row = {"status": "ok", "reason": "", "jobs": len(instance.jobs)}
    try:
        run = simulate(instance, player())
        if not run.in_feasible_set:
            raise Refused("rules", instance.family, "may do what the offline problem forbids")
        write_solution(run.solution, place / f"{OWN}.json")
        if judged(place)[OWN]["objective"] is None:
            raise Refused("size", instance.family, "more than the kernel reads")
    except Exception as error:
        (place / f"{OWN}.json").unlink(missing_ok=True)
        said = str(error) if isinstance(error, HindschedError) else said_by(error)
        reason = printable(" ".join(said.split()))[:LONGEST_REASON]
        return row | {"status": "refused" if isinstance(error, Refused) else "failed",
                      "reason": reason}  # fmt: skip
    seconds = [each / 1000 for each in run.decision_ms] or [0.0]
    return row | {
        "jobs_completed": run.to_dict()["jobs_completed"],
        "seconds": run.seconds,
        "seconds_a_decision": median(seconds),
        "seconds_longest": max(seconds),
    }


def _hidden(
    family: str | None, suite: str | None, preset: str, seeds: Sequence[int] | None
) -> tuple[list[Instance], list[int] | None]:
    """The instances that count, and their seeds where they are not of a suite."""
    if (family is None) == (suite is None):
        raise InputError("family", family, "must be given, or a suite in its place")
    if family is None:
        word, slash, name = str(suite).partition("/")
        if not slash or seeds is not None:
            raise InputError("suite", suite, "must be FAMILY/SUITE, and has no seeds")
        return suite_of(word, name), None
    check_family(family)
    drawn = [secrets.randbits(SEED_BITS) for _ in range(DRAWN)] if seeds is None else list(seeds)
    if not drawn or len(set(drawn)) < len(drawn):
        raise InputError("seeds", drawn, "must be different whole numbers, at least one")
    return [generate(family, preset, seed) for seed in drawn], drawn

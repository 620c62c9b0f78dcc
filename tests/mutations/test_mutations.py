"""Files changed at random: no wrong claim is accepted, nothing hangs, no traceback is shown.

A tiny instance of the second opinion, its proven optimum as a solution, a certificate from random
prices (or a tree of random splits): one of the three files is changed, and `verify`'s fast path and
the exact kernel judge them. If the instance was changed, the other files get its new hash, and what
is accepted is held against the changed instance's own optimum, from the second statement.

``make nightly COUNT=20000 SEED=1``: so many files a family, other seeds.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager, redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hindsched as hs
from hindsched.analysis.verify import verify
from hindsched.errors import HindschedError, SolveFailed
from hindsched.instances.base import canonical_json
from hindsched.instances.io import parse_instance
from hindsched.kernel.__main__ import check_command
from hindsched.solvers.certificates.file import verify_certificate
from tests.mutations import engine
from tests.second_opinion import instances
from tests.second_opinion.test_second_opinion import Case

pytestmark = pytest.mark.nightly

COUNT = int(os.environ.get("MUTATIONS", "40"))
SEED = int(os.environ.get("SEED", "1"))
EACH = 20 if COUNT < 1000 else 40
"""Files made of one instance, and the most claims of one file that are restated."""
SOLVED = max(20, COUNT // 40)
"""One of so many files is solved for a moment, if it is a changed instance."""
RECORD = os.environ.get("MUTATIONS_RECORD")
"""File for the counts of every family, which ``docs/reference/certificates.md`` reports."""
RESTATED = 0.7
"""Share of the changed files whose claims are made to fit."""
STATED = re.compile(r"(?:the prices prove|have objective|complete at) (-?[\d.e+-]+|None)")
SECONDS = 10
"""CPU seconds after which a file counts as one that hangs."""
ROUNDING = Fraction(1, 10**9)
"""Relative rounding of a float that the fast path reports; its stated objective is not proven."""
TOLERANCE = Fraction(1, 10**6)
"""How far a stated objective may be from that of the decisions."""


class HangsError(Exception):
    """A file took longer than `SECONDS`."""


@contextmanager
def limited():
    """Raise `HangsError` after `SECONDS` of CPU time."""

    def stop(*_: Any) -> None:
        raise HangsError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Files:
    """An instance, its optimal solution and a certificate, on disk and in memory."""

    def __init__(self, family: str, seed: int, folder: Path) -> None:
        self.case = case = Case(family, seed, folder)
        refusal = case.refusal()
        assert refusal is None, refusal
        self.formulation = case.random.choice(case.module.FORMULATIONS)
        case.read_exactly = case.data
        case.bounded = lambda file, *_: certificates.append(file)  # type: ignore[method-assign]
        certificates: list[dict[str, Any]] = []
        statement = case.module.Statement(case.data, self.formulation)
        self.optimum = statement.program.optimum()
        assert self.optimum.value is not None
        case.random_prices(self.formulation, self.optimum)
        case.random_tree(self.formulation, self.optimum)
        case.write_schedule(statement, self.formulation, self.optimum)
        self.data = {
            "instance": json.loads(case.path.read_text()),
            "solution": json.loads(case.path.with_suffix(".solution.json").read_text()),
            "certificate": case.random.choice(certificates),
        }
        self.paths = {name: folder / f"{name}.json" for name in self.data}

    def change(self, draw: random.Random) -> str:
        """Write the files, one of them changed; which one."""
        which = draw.choice(list(self.data))
        changed = engine.write(engine.mutate(self.data[which], draw), draw)
        others = {}
        if which == "instance":
            others["instance_sha256"] = hash_of(changed)
        for name, path in self.paths.items():
            if name == which:
                path.write_bytes(changed)
            else:
                path.write_text(json.dumps(self.data[name] | others))
        if draw.random() < RESTATED:
            self.restate()
        return which

    def restate(self) -> None:
        """Let the files state what they prove, as a careful forger would."""
        for _ in range(EACH):
            _, found = fast(self.paths)
            said = STATED.search(str(found))
            if not isinstance(found, hs.InputError) or said is None:
                return
            where = re.findall(r"\w+", found.where)
            path = self.paths["certificate" if where[-1] == "bound" else "solution"]
            data = inside = json.loads(path.read_text())
            for part in where[:-1]:
                inside = inside[int(part) if part.isdigit() else part]
            inside[where[-1]] = json.loads(said[1].replace("None", "null"))
            path.write_text(json.dumps(data))

    def true_optimum(self, which: str, formulation: str) -> Any:
        """Optimum of the instance as it stands; None if the second statement cannot say."""
        if which != "instance" and formulation == self.formulation:
            return self.optimum
        try:
            data = json.loads(self.paths["instance"].read_text(), parse_float=Fraction)
            with limited():  # a change may make a program of a million slots
                return self.case.module.Statement(data, formulation).program.optimum()
        except Exception:  # what the package accepts must be known to the statement: counted
            return None


def hash_of(raw: bytes) -> str:
    """Hash of an instance's text, as the package takes it."""
    try:
        data = json.loads(raw)
        return parse_instance(data).sha256()
    except (ValueError, HindschedError):
        return hashlib.sha256(canonical_json({}).encode()).hexdigest()


def fast(paths: dict[str, Path]) -> tuple[str, Any]:
    """What `verify` says: a word and its findings."""
    try:
        found = verify(hs.read(paths["instance"]), paths["solution"], paths["certificate"])
    except SolveFailed as error:
        return ("contradiction" if "one of the two" in str(error) else "failed"), error
    except HindschedError as error:
        return "refused", error
    return ("feasible" if found.is_feasible else "infeasible"), found


def exact(paths: dict[str, Path]) -> tuple[str, list[str]]:
    """What the kernel says: a word and its lines."""
    said = io.StringIO()
    with redirect_stdout(said):
        code = check_command([str(path) for path in paths.values()])
    lines = said.getvalue().splitlines()
    if code == 2:
        assert lines[-1].startswith("refused: "), lines
        return "refused", lines
    if code == 1:
        return ("contradiction" if "contradiction" in lines[-1] else "infeasible"), lines
    assert code == 0, code
    return "feasible", lines


def judge(files: Files, which: str, counts: Counter[str]) -> list[str]:
    """What is wrong with the verdicts on the files as they stand."""
    wrong = []
    try:
        with limited():
            quick, found = fast(files.paths)
    except Exception as error:
        quick, found = "crash", error
        wrong.append(f"fast path: {type(error).__name__}: {error}")
    try:
        with limited():
            slow, lines = exact(files.paths)
    except Exception as error:
        slow, lines = "crash", [str(error)]
        wrong.append(f"kernel: {type(error).__name__}: {error}")
    if quick == "refused" and "\n" in str(found):
        wrong.append(f"more than one line: {found}")
    counts[f"{which}: fast {quick}, kernel {slow}"] += 1
    if "contradiction" in (quick, slow):
        wrong.append(f"contradiction: fast {quick} ({found}), kernel {lines[-1]}")
    if {quick, slow} == {"feasible", "infeasible"}:
        wrong.append(f"fast {quick}, kernel {slow}: {lines[-3:]}")
    if {quick, slow} in ({"feasible", "refused"}, {"infeasible", "refused"}):
        why = str(found) if quick == "refused" else lines[-1]
        counts[f"  {which}: refused by {'fast' if quick == 'refused' else 'kernel'} alone"] += 1
        if os.environ.get("SHOW"):
            print(which, quick, slow, why[:200], file=sys.stderr)
    if "feasible" not in (quick, slow):
        return wrong
    formulation = json.loads(files.paths["solution"].read_text()).get("formulation")
    formulation = files.case.instance.check_formulation(formulation)  # absent: the default one
    optimum = files.true_optimum(which, formulation)
    if optimum is None:
        counts["  not judged"] += 1
        return wrong
    claims: list[tuple[str, Fraction, Fraction]] = []
    stated = json.loads(files.paths["certificate"].read_text(), parse_float=Fraction)["bound"]
    if quick == "feasible":
        claims.append(("fast", Fraction(found.objective), Fraction(found.bound)))
    if slow == "feasible":
        value = json.loads(files.paths["solution"].read_text(), parse_float=Fraction)["objective"]
        claims.append(("kernel", Fraction(value), Fraction(stated)))
    sign = 1 if stated_sense(files) == "max" else -1
    for who, objective, bound in claims:
        if optimum.value is None:
            wrong.append(f"{who}: accepts a solution where none exists")
            continue
        size = abs(optimum.value)
        if sign * (objective - optimum.value) > optimum.slack + TOLERANCE * size:
            wrong.append(f"{who}: {float(objective)} beats the optimum {float(optimum.value)}")
        if sign * (optimum.value - bound) > ROUNDING / 10**5 * abs(bound):
            wrong.append(f"{who}: bound {float(bound)} excludes {float(optimum.value)}")
    return wrong


def stated_sense(files: Files) -> str:
    sense: str = files.case.instance.sense
    return sense


def solve(path: Path) -> str | None:
    """What is wrong with solving an instance for a moment."""
    try:
        hs.solve(hs.read(path), time_limit=0.2)
    except HindschedError:
        return None
    except Exception as error:
        return f"solve: {type(error).__name__}: {error}"
    return None


def record(path: Path, family: str, files: int, counts: Counter[str], findings: int) -> None:
    """Put a family's counts into a file of all families'."""
    known = json.loads(path.read_text()) if path.exists() else {}
    found = {"seed": SEED, "files": files, "findings": findings, **dict(sorted(counts.items()))}
    path.write_text(json.dumps({**known, family: found}, indent=1) + "\n")


@pytest.mark.parametrize("family", instances.FAMILIES)
def test_no_changed_file_proves_anything_wrong(family: str, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    findings: list[str] = []
    made, seed = 0, SEED * 1_000_000
    began = time.process_time()
    while made < COUNT:
        seed += 1
        try:
            files = Files(family, seed, tmp_path)
        except (AssertionError, hs.SolveFailed, IndexError):
            counts["instances left out"] += 1
            continue
        draw = random.Random(f"{family} {seed}")
        for _ in range(EACH):
            which = files.change(draw)
            wrong = judge(files, which, counts)
            made += 1
            if which == "instance" and made % SOLVED == 0:
                counts["solved"] += 1
                wrong += [text for text in [solve(files.paths["instance"])] if text]
            if wrong:
                kept = tmp_path / f"finding-{len(findings)}"
                kept.mkdir()
                for name, path in files.paths.items():
                    (kept / f"{name}.json").write_bytes(path.read_bytes())
                findings.append(f"{kept}: {'; '.join(wrong)[:500]}")
                print(findings[-1], file=sys.stderr, flush=True)
    counts["seconds of CPU"] = round(time.process_time() - began)
    print(f"{family}: {made} files, {dict(counts)}")
    if RECORD:
        record(Path(RECORD), family, made, counts, len(findings))
    assert not findings, "\n".join([f"{len(findings)} findings", *findings[:20]])


@pytest.mark.timeout(600)  # their square would take hours
@pytest.mark.parametrize("formulation", ["literal", "no-migration"])
def test_chunks_of_many_slots_are_judged_in_time(formulation: str) -> None:
    """Half a million slots a chunk: the fast path's time does not grow with their square."""
    places = {"servers": [{"name": "s", "workers": ["t", "t"], "ps": ["p"]}],
              "cloud": {"name": "cloud", "workers": {"t": 1}, "ps": {"p": 1}}}  # fmt: skip
    job = {
        "name": "j", "arrival": 3, "epochs": 1, "chunks": 3, "minibatches": 1_000_000,
        "minibatch_slots": 0.25, "update_slots": 0.25, "gradient_mb": 0, "bandwidth_mbps": 2,
        "worker_type": "t", "ps_type": "p", "upload_slots": {"s": 0, "cloud": 4},
    }  # fmt: skip
    head = {"format": "hindsched/1", "family": "edgecloud", "name": "long", "horizon": 3}
    instance = parse_instance({**head, "slot_seconds": 9, **places, "jobs": [job]})
    row = {"group": "s/t", "from": 1, "to": 7, "price": 2.0}
    sky = {"type": "t", "from": 1, "to": 200_000, "price": 1e-6}
    file = {
        "format": "hindsched-certificate/1", "family": "edgecloud", "instance": "long",
        "instance_sha256": instance.sha256(), "formulation": formulation, "layout": "groups",
        "kind": "lagrangian", "sense": "min", "bound": 9e9,
        "prices": {"group_capacity": [row], "cloud_capacity": [sky]},
    }  # fmt: skip
    with pytest.raises(hs.InputError, match="the prices prove"):
        verify_certificate(instance, file)

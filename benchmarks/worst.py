"""Make ``docs/worst.md``: worst cases that theory knows, and those of every family's algorithms.

    python benchmarks/worst.py [--part known|papers|rest] [--results FOLDER] [--page docs/worst.md]
        [--instances] [--how gadgets|random|both|sweep|...] [--family F] [--most N]

Every search is kept as a small file as soon as it ends, and not repeated: an interrupted run goes
on. The page is made from these files; ``--instances`` also writes the witnesses as the suite
``worst`` of their families. All parts take about 40 minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template

import hindsched as hs
from hindsched.analysis.worst.evaluate import quotient
from hindsched.analysis.worst.pool import evaluating
from hindsched.analysis.worst.problem import Problem
from hindsched.analysis.worst.search import Search
from hindsched.analysis.worst.witness import Witness
from hindsched.errors import HindschedError, SolveFailed
from hindsched.instances.base import Instance, families_on
from hindsched.instances.generators.registry import generated_suites
from hindsched.instances.io import write_json
from hindsched.instances.search.space import find_space
from hindsched.instances.witnesses import witness_files
from hindsched.online.registry import algorithms

HERE = Path(__file__).parent
LONGEST_FIRST = "examples/schedulers/longest_first.py:LongestFirst"
GADGETS, RANDOM, DRAWS = "gadgets", "random", "random search"
WORK = {"known": 10_000, "papers": 1_000, "rest": 300}
"""Candidates of a search."""
SECONDS: dict[str, dict[str, float]] = {
    "known": {},
    "papers": {"both": 25.0, RANDOM: 20.0, DRAWS: 20.0},
    "rest": {"both": 20.0, RANDOM: 5.0, DRAWS: 5.0},
}
"""Longest search: some rivals solve programs in every slot."""
SEEDS = {"known": 5, "papers": 5, "rest": 2}
"""Runs of a randomised algorithm on a candidate."""
WITHIN = 0.99
PAPERS = ("oasis", "batchsched", "astraea", "edgecloud", "mlbroker")
SPACES = {"oasis fifo": "one-slot"}


def known_cases() -> list[dict[str, Any]]:
    """Problems whose supremum is known."""
    gang: dict[str, Any] = {"family": "gang"}
    cases = []
    for m in (2, 3, 4):
        cases.append(
            {**gang, "name": f"list order, {m} GPUs, makespan", "algorithm": "fifo",
             "preset": "machines", "ranges": {"gpus": m}, "supremum": 2 - 1 / m,
             "source": "Graham 1966"}
        )  # fmt: skip
    for m in (2, 3):
        cases.append(
            {**gang, "name": f"longest first, {m} GPUs, makespan", "algorithm": LONGEST_FIRST,
             "preset": "machines", "ranges": {"gpus": m}, "supremum": 4 / 3 - 1 / (3 * m),
             "source": "Graham 1969"}
        )  # fmt: skip
    for n in (3, 5, 10):
        cases.append(
            {**gang, "name": f"fifo, one GPU, {n} jobs, flow time", "algorithm": "fifo",
             "preset": "one-gpu", "ranges": {"jobs": [1, n]}, "supremum": n, "source": "folklore"}
        )  # fmt: skip
    cases += [
        {**gang, "name": "srtf, one GPU, preemptive flow time", "algorithm": "srtf",
         "preset": "one-gpu", "ranges": {"jobs": [1, 6]}, "formulation": "preemptive",
         "supremum": 1, "source": "control: optimal (Schrage 1968)", "work": 500},
        {**gang, "name": "wspt, one GPU, all at 0", "algorithm": "wspt", "preset": "one-gpu",
         "ranges": {"jobs": [1, 6], "submit": 0, "weight": [1, 1]}, "supremum": 1,
         "source": "control: optimal (Smith 1956)", "work": 500},
        {**gang, "name": "wspt, 12 GPUs, 60 jobs, weight = duration", "algorithm": "wspt",
         "preset": "smith", "ranges": {"gpus": 12, "jobs": 60}, "supremum": (1 + math.sqrt(2)) / 2,
         "enough": 1.15, "source": "Kawaguchi and Kyan 1986, as m grows", "work": 700},
        {"family": "oasis", "name": "fifo, one server, slot and unit, values 1 to 10",
         "algorithm": "fifo", "preset": "one-slot", "ranges": {}, "supremum": 10,
         "source": "folklore", "work": 1000},
    ]  # fmt: skip
    return [{"part": "known", "formulation": None, **case} for case in cases]


def paper_cases() -> list[dict[str, Any]]:
    """Each paper's own algorithm."""
    return [
        {"part": "papers", "family": family, "name": f"{family}: {family}", "algorithm": family,
         "preset": preset, "ranges": {}, "formulation": None, "supremum": None, "source": ""}
        for family, preset in [*((word, None) for word in PAPERS), ("astraea", "power")]
    ]  # fmt: skip


def rest_cases() -> list[dict[str, Any]]:
    """All other algorithms of all families."""
    return [
        {"part": "rest", "family": family, "name": f"{family}: {algorithm}",
         "algorithm": algorithm, "preset": None, "ranges": {}, "formulation": formulation,
         "supremum": None, "source": ""}
        for family in families_on("instances", "search_space")
        for algorithm in algorithms(family)
        if algorithm != family
        for formulation in ["preemptive" if algorithm in ("srtf", "las") and family == "gang"
                            else None]
    ]  # fmt: skip


def searched(case: dict[str, Any], how: str) -> dict[str, Any]:
    """One search: what was found, and what it took."""
    work = case.get("work", WORK[case["part"]])
    supremum = case["supremum"]
    enough = case.get("enough", None if supremum in (None, 1) else WITHIN * supremum)
    question: dict[str, Any] = {
        "family": case["family"],
        "algorithm": case["algorithm"],
        "preset": case["preset"],
        "ranges": case["ranges"],
        "formulation": case["formulation"],
        "seeds": SEEDS[case["part"]],
    }
    if how == "both" or case["part"] == "known":
        hs.worst(**question, work_limit=2, shrink=False)  # kernels are loaded outside the clock
    elif how in (RANDOM, DRAWS):
        return quick_look(case, how)
    spent: list[float] = []
    begin = time.process_time()
    witness = hs.worst(
        **question,
        starts=all_starts(case) if how == "both" else [GADGETS if how == GADGETS else RANDOM],
        evolve=how != DRAWS,
        work_limit=work,
        time_limit=SECONDS[case["part"]].get(how),
        target=enough,
        shrink=how in (GADGETS, "both"),
        on_progress=lambda _: spent.append(time.process_time() - begin),
    )
    return {
        "how": how,
        "found": str(witness.search["found"]),
        "shown": str(witness.proven),
        "cpu_seconds": spent[-1] if spent else time.process_time() - begin,
        "evaluations": witness.search["evaluations"],
        "reached": witness.search["trace"][-1]["evaluations"],
        "limited": witness.search["counts"].get("limited", 0),
        **told(witness),
    }


def all_starts(case: dict[str, Any]) -> list[str | Path]:
    """Gadgets, random instances and the witness of an earlier search."""
    family, algorithm = case["family"], case["algorithm"]
    earlier = [path for path in witness_files(family) if path.stem.endswith(f"-worst-{algorithm}")]
    return [*(earlier if case["preset"] is None else []), GADGETS, RANDOM]


def quick_look(case: dict[str, Any], how: str) -> dict[str, Any]:
    """A search whose witness is not shown: what it found alone."""
    part = case["part"]
    space = find_space(case["family"], case["preset"])
    problem = Problem.of(
        space, case["algorithm"], formulation=case["formulation"], seeds=SEEDS[part]
    )
    search = Search(space, 0, evolve=how != DRAWS)
    begin = time.process_time()
    with evaluating(problem, 0) as evaluate:
        search.run(evaluate, seconds=SECONDS[part][how], evaluations=WORK[part], target=math.inf)
    if search.best is None:
        raise SolveFailed(str(search.failure))
    return {
        "how": how,
        "found": str(search.best.score),
        "shown": str(search.best.score),
        "cpu_seconds": time.process_time() - begin,
        "evaluations": search.counts["evaluations"],
        "reached": search.trace[-1]["evaluations"],
    }


def told(witness: Witness) -> dict[str, Any]:
    """What the page says of a witness."""
    theorem = witness.theorem or {}
    return {
        "words": witness.explain().splitlines(),
        "jobs": len(witness.instance.jobs),
        "upper": str(witness.ratio.interval.upper),
        "theorem": theorem.get("value"),
        "theorem_kind": theorem.get("kind"),
        "contradicts": witness.contradicts,
        "instance": witness.instance.to_dict(),
    }


@cache
def sweep_bounds(family: str) -> list[tuple[Instance, float | None]]:
    """The family's small suite, each instance with a proven bound."""
    suite = generated_suites(family)["small"]()
    return [(one, hs.solve(one, "bound", time_limit=5).bound) for one in suite]


def sweep_worst(family: str, algorithm: str) -> dict[str, Any]:
    """Mean and largest ratio over the family's small suite, each to a proven bound."""
    problem = Problem.of(find_space(family), algorithm, seeds=2)
    ratios = []
    for instance, bound in sweep_bounds(family):
        runs = problem.runs(problem.algorithm, instance, range(problem.seeds))
        mean = sum(run.objective for run in runs) / len(runs)
        if bound is not None:
            ratios.append(quotient(instance.sense, mean, bound))
    return {"worst": max(ratios), "mean": sum(ratios) / len(ratios), "instances": len(ratios)}


class Results:
    """Searches that were made, a small file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
        self.rows = {(row["case"], row["how"]): row for row in rows}

    def get(self, case: dict[str, Any], how: str) -> dict[str, Any] | None:
        """What is known of a search."""
        return self.rows.get((_key(case), how))

    def make(self, case: dict[str, Any], how: str) -> bool:
        """Search, unless that was done; says whether it was not."""
        key = _key(case), how
        if key in self.rows:
            return False
        try:
            if how == "sweep":
                row = sweep_worst(case["family"], case["algorithm"])
            else:
                row = searched(case, how)
        except HindschedError as error:
            row = {"error": str(error)}
        row = {**row, "case": key[0], "how": how}
        said = row.get("found", row.get("worst", row.get("error")))
        print(f"{key[0]}: {how}: {said}", flush=True)
        self.rows[key] = row
        name = re.sub(r"[^a-z0-9]+", "-", f"{key[0]} {how}".lower()).strip("-")
        write_json(row, self.folder / f"{name}.json")
        return True


def _key(case: dict[str, Any]) -> str:
    return f"{case['name']}{' (' + case['preset'] + ')' if case['preset'] == 'power' else ''}"


HOWS = {
    "known": (GADGETS, RANDOM, DRAWS),
    "papers": ("both", RANDOM, DRAWS, "sweep"),
    "rest": ("both", RANDOM, DRAWS, "sweep"),
}
CASES = {"known": known_cases, "papers": paper_cases, "rest": rest_cases}


def ratio(row: dict[str, Any] | None, key: str = "found") -> str:
    """A ratio for the page; a dash where the search was not made."""
    if row is None:
        return "-"
    if "error" in row:
        return "none"
    return "infinite" if row[key] == "inf" else f"{float(row[key]):.4g}"


def page(results: Results) -> str:
    """The page."""
    parts = {
        part: [
            {"case": case, "rows": {how: results.get(case, how) for how in HOWS[part]}}
            for case in CASES[part]()
        ]
        for part in CASES
    }
    for part in ("papers", "rest"):
        parts[part] = [item for item in parts[part] if item["rows"]["both"] is not None]
    template = Template(
        (HERE / "worst.md.jinja").read_text(), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    return template.render(
        parts=parts, ratio=ratio, work=WORK, hows=HOWS, seconds=SECONDS, seeds=SEEDS
    )


def witnesses(results: Results) -> Iterator[Instance]:
    """What the searches of algorithms found that a schedule beats, under the names of the suite."""
    for case in [*paper_cases(), *rest_cases()]:
        row = results.get(case, "both")
        found = row is not None and "error" not in row and float(row["shown"]) > 1
        if row is not None and found and case["preset"] is None:
            name = f"{case['family']}-worst-{case['algorithm']}"
            yield hs.read({**row["instance"], "name": name})


def write_instances(results: Results) -> None:
    """The witnesses of the families' first spaces as files of the suite ``worst``."""
    for instance in witnesses(results):
        folder = Path("hindsched/instances") / instance.family / "worst"
        folder.mkdir(exist_ok=True)
        hs.write(instance, folder / f"{instance.name}.json")


def main() -> None:
    """Make what is missing, then the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=[*CASES, "none"], action="append")
    parser.add_argument("--family", action="append", help="only these families")
    parser.add_argument("--how", action="append", help="only these searches")
    parser.add_argument("--most", type=int, help="searches to make now; the others later")
    parser.add_argument("--results", type=Path, default=HERE / "worst_results")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--instances", action="store_true")
    given = parser.parse_args()
    given.results.mkdir(parents=True, exist_ok=True)
    results = Results(given.results)
    left = math.inf if given.most is None else given.most
    for part in given.part or CASES:
        for case in CASES[part]() if part != "none" else ():
            for how in given.how or HOWS[part]:
                if given.family and case["family"] not in given.family:
                    continue
                if left > 0 and how in HOWS[part]:
                    left -= results.make(case, how)
    if given.instances:
        write_instances(results)
    if given.page is not None:
        given.page.write_text(page(results))


if __name__ == "__main__":
    main()

"""Make ``docs/worst.md``: worst cases that theory knows, and those of every family's algorithms.

    python benchmarks/worst.py [--part known|papers|rest] [--results FILE] [--page docs/worst.md]
        [--instances] [--how gadgets|random|both|sweep|...] [--family F] [--most N]

Every search is kept in the results file as soon as it ends, and not repeated: an interrupted run
goes on. The page is made from what the file holds; ``--instances`` also writes the papers'
witnesses as the suite ``worst`` of their families. All parts take about 15 minutes on an idle core.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template

import hindsched as hs
from hindsched.analysis.worst.evaluate import quotient
from hindsched.analysis.worst.problem import Problem
from hindsched.analysis.worst.witness import Witness
from hindsched.errors import HindschedError
from hindsched.instances.base import families_on
from hindsched.instances.generators.registry import generated_suites
from hindsched.instances.search.space import find_space
from hindsched.online.registry import algorithms

HERE = Path(__file__).parent
LONGEST_FIRST = "examples/schedulers/longest_first.py:LongestFirst"
GADGETS, RANDOM, DRAWS = "gadgets", "random", "random search"
WORK = {"known": 1000, "papers": 120, "rest": 40}
"""Candidates of a search."""
SECONDS = {"known": None, "papers": 90.0, "rest": 12.0}
"""Longest search: some rivals solve programs in every slot."""
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
         "supremum": 1, "source": "control: optimal (Schrage 1968)", "work": 200},
        {**gang, "name": "wspt, one GPU, all at 0", "algorithm": "wspt", "preset": "one-gpu",
         "ranges": {"jobs": [1, 6], "submit": 0, "weight": [1, 1]}, "supremum": 1,
         "source": "control: optimal (Smith 1956)", "work": 200},
        {**gang, "name": "wspt, 12 GPUs, 60 jobs, weight = duration", "algorithm": "wspt",
         "preset": "smith", "ranges": {"gpus": 12, "jobs": 60}, "supremum": (1 + math.sqrt(2)) / 2,
         "enough": 1.15, "source": "Kawaguchi and Kyan 1986, as m grows", "work": 200},
        {"family": "oasis", "name": "fifo, one server, slot and unit, values 1 to 10",
         "algorithm": "fifo", "preset": "one-slot", "ranges": {}, "supremum": 10,
         "source": "folklore"},
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
    begin = time.monotonic()
    witness = hs.worst(
        case["family"],
        case["algorithm"],
        preset=case["preset"],
        ranges=case["ranges"],
        formulation=case["formulation"],
        starts=["gadgets", "random"] if how == "both" else [GADGETS if how == GADGETS else RANDOM],
        evolve=how != DRAWS,
        work_limit=work,
        time_limit=SECONDS[case["part"]],
        target=enough,
        shrink=how in (GADGETS, "both"),
        folder=None,
    )
    return {
        "how": how,
        "found": str(witness.search["found"]),
        "shown": str(witness.proven),
        "seconds": time.monotonic() - begin,
        "search_seconds": witness.search["seconds"],
        "evaluations": witness.search["evaluations"],
        "reached": witness.search["trace"][-1]["evaluations"],
        "limited": witness.search["counts"].get("limited", 0),
        **told(witness),
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


def sweep_worst(family: str, algorithm: str) -> dict[str, Any]:
    """Mean and largest ratio over the family's small suite, each to a proven bound."""
    problem = Problem.of(find_space(family), algorithm, seeds=3)
    ratios = []
    for instance in generated_suites(family)["small"]():
        runs = problem.runs(problem.algorithm, instance, range(problem.seeds))
        mean = sum(run.objective for run in runs) / len(runs)
        bound = hs.solve(instance, "bound", time_limit=5).bound
        if bound is not None:
            ratios.append(quotient(instance.sense, mean, bound))
    return {"worst": max(ratios), "mean": sum(ratios) / len(ratios), "instances": len(ratios)}


class Results:
    """Searches that were made, a JSON line each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.rows = {(row["case"], row["how"]): row for row in map(json.loads, lines)}

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
        with self.path.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        return True


def _key(case: dict[str, Any]) -> str:
    return f"{case['name']}{' (' + case['preset'] + ')' if case['preset'] == 'power' else ''}"


HOWS = {
    "known": (GADGETS, RANDOM, DRAWS),
    "papers": ("both", RANDOM, DRAWS, "sweep"),
    "rest": ("both", "sweep"),
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
    return template.render(parts=parts, ratio=ratio, work=WORK, hows=HOWS)


def write_instances(results: Results) -> None:
    """The papers' witnesses as files of the suite ``worst``."""
    for case in paper_cases():
        row = results.get(case, "both")
        if row is not None and "error" not in row:
            more = f"-{case['preset']}" if case["preset"] else ""
            name = f"{case['family']}-worst-{case['algorithm']}{more}"
            instance = hs.read({**row["instance"], "name": name})
            folder = Path("hindsched/instances") / case["family"] / "worst"
            hs.write(instance, folder / f"{name}.json")


def main() -> None:
    """Make what is missing, then the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=[*CASES, "none"], action="append")
    parser.add_argument("--family", action="append", help="only these families")
    parser.add_argument("--how", action="append", help="only these searches")
    parser.add_argument("--most", type=int, help="searches to make now; the others later")
    parser.add_argument("--results", type=Path, default=Path("results/worst.jsonl"))
    parser.add_argument("--page", type=Path)
    parser.add_argument("--instances", action="store_true")
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
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

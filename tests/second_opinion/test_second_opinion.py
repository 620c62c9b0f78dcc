"""The package against a second, independent statement of each family's printed problem.

On random tiny instances (`instances.py`) the optimum of the second statement (`oasis.py`, ...,
solved by HiGHS and polished exactly in `milp.py`, and settled without it in `enumeration.py` where
all is whole) must agree with whatever the package says:

1. its optimal schedule is feasible for the package and the kernel, at the same objective;
2. no bound from random prices lies on the wrong side of it, in any layout of the rows, neither the
   fast path's nor the kernel's;
3. what `solve` finds is not better, its bound is on the right side, and an optimum is equal;
4. so are the bounds of the certificates and trees that the engines write;
5. the fast path never proves more than the kernel, and less only by what it rounds outward.

``SECOND_OPINION`` is the number of instances a family (``make nightly``: 3,000; every commit looks
at the first few, without `solve`), ``SEED`` the first of them. The second statement imports nothing
of the package; only this file and `settle.py` do.
"""

from __future__ import annotations

import importlib
import json
import os
import random
from collections import Counter
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hindsched as hs
from hindsched.kernel import reading
from hindsched.solvers.base import build_oracle, family_solvers
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.certificates.file import Leaf, certify_tree, oracle_of, verify_certificate
from hindsched.solvers.oracles.base import RestrictableOracle
from hindsched.solvers.oracles.decisions import NEVER, BranchDecision, Feature
from hindsched.solvers.oracles.restricted import RestrictedOracle
from tests.kernel.agreement import checked
from tests.second_opinion import instances
from tests.second_opinion.enumeration import agrees
from tests.second_opinion.milp import Milp, NotPolishedError, Optimum, read
from tests.solvers.pricing.contract import layouts

COUNT = int(os.environ.get("SECOND_OPINION", "300"))
FIRST = int(os.environ.get("SEED", "0")) * 1_000_000
CHUNK, EVERY_COMMIT = 50, 20
SOLVED = 20
"""Every so many-th instance is solved by the package too."""
PROBLEMS = 2
"""Of a family with more problems than so many, this number is drawn for each instance."""
PRICES = 2
"""Random price vectors a problem."""
ROUNDING = Fraction(1, 10**9)
"""Relative rounding of a float that the package reports without proving it."""
UTILITIES = Fraction(1, 10**40)
"""Relative error of the second statement's sigmoids and powers."""
BETTER, LOOSER = 1e-11, 1e-7
"""Of the size of all terms: what floats may be wrong by, and what rounding outward may take."""
SEARCHED = 1e-11
"""What a slot of mlbroker rounds by, of all that it could pay at its dearest price: its search ends
there, and sums of that size cancel."""


def numbers(data: Any) -> list[Any]:
    """All numbers in JSON data."""
    if isinstance(data, dict | list):
        inner = data.values() if isinstance(data, dict) else data
        return [number for part in inner for number in numbers(part)]
    return [] if isinstance(data, str | None) else [data]


class Case:
    """One instance and what the second statement says of it."""

    def __init__(self, family: str, seed: int, folder: Path) -> None:
        self.family, self.seed = family, seed
        self.path = folder / f"{family}-{seed}.json"
        instances.write(family, seed, self.path)
        self.data = read(self.path)
        self.module = importlib.import_module(f"tests.second_opinion.{family}")
        self.kernel = importlib.import_module(f"hindsched.kernel.{family}")
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.latest = ""

    def check(self, solve: bool) -> Counter[str]:
        """Compare everything, formulation by formulation."""
        refusal = self.refusal()
        if refusal is not None:
            for formulation in self.module.FORMULATIONS:
                optimum = self.module.Statement(self.data, formulation).program.optimum()
                assert optimum.value is None, f"refused: {refusal}"
            self.counts["refused"] += 1
            return self.counts
        self.read_exactly = reading.load(str(self.path))[0]
        problems: dict[Any, list[str]] = {}
        for formulation in self.module.FORMULATIONS:
            problems.setdefault(self.kernel.Problem.formulations[formulation], []).append(
                formulation
            )
        drawn = self.random.sample(list(problems.values()), min(PROBLEMS, len(problems)))
        for formulations in drawn:
            formulation = self.random.choice(formulations)  # ways to write down one problem
            statement = self.module.Statement(self.data, formulation)
            try:
                optimum = statement.program.optimum()
            except NotPolishedError:
                self.counts["not polished"] += 1
                continue
            self.counts["infeasible" if optimum.value is None else "optima"] += 1
            self.enumerated(statement.program, optimum)
            if optimum.value is not None:
                self.own_schedule(statement, formulation, optimum)
            self.random_prices(formulation, optimum)
            self.random_tree(formulation, optimum)
            if solve and optimum.value is not None:
                self.solved(formulation, optimum)
        return self.counts

    def enumerated(self, program: Milp, optimum: Optimum) -> None:
        """Whole numbers are enumerated too: HiGHS is not believed that no point is better."""
        found = agrees(program, optimum)
        assert found is not False, "the enumeration differs"
        self.counts["too large to enumerate"] += found is None and all(program.integer)

    def refusal(self) -> hs.InputError | None:
        """Read the instance; say why the package refuses it, if it does."""
        try:
            self.instance = hs.read(self.path)
        except hs.InputError as refused:
            return refused
        return None

    # 1 ------------------------------------------------------------------------------------------

    def own_schedule(self, statement: Any, formulation: str, optimum: Optimum) -> None:
        """The package accepts the second statement's schedule, at its objective."""
        path = self.write_schedule(statement, formulation, optimum)
        solution = hs.read_solution(path, self.instance)
        assert solution.violations() == [], f"{formulation}: {solution.violations()}"
        off = abs(Fraction(solution.objective()) - optimum.value)
        assert off <= optimum.slack + ROUNDING * max(abs(optimum.value), self.worth()), (
            f"{formulation}: {solution.objective()} is {float(optimum.value)}"
        )
        found = self.kernel_accepts(path, optimum)
        off = max(found.low - optimum.value, optimum.value - found.high)
        room = optimum.slack + UTILITIES * max(abs(optimum.value), self.worth())
        assert off <= room, f"kernel: {found}"

    def write_schedule(self, statement: Any, formulation: str, optimum: Optimum) -> Path:
        """Write the second statement's schedule as a solution file."""
        file = {
            "format": "hindsched-solution/1", "family": self.family, "instance": self.instance.name,
            "instance_sha256": self.instance.sha256(), "formulation": formulation,
            "objective": float(optimum.value), "produced_by": {},
            "jobs": statement.jobs(optimum.point),
        }  # fmt: skip
        path = self.path.with_suffix(".solution.json")
        path.write_text(json.dumps(file))
        return path

    def kernel_accepts(self, path: Path, optimum: Optimum) -> Any:
        """The kernel finds a file feasible and the objective not better than the optimum."""
        data, _ = reading.load(str(path))
        verdict = checked(self.kernel, deepcopy(self.read_exactly), data)
        assert not verdict.violations, f"{verdict.violations}: {path}"
        objective = verdict.objective
        worst = objective.low if self.maximising else objective.high
        assert not self.beyond(worst, optimum, UTILITIES), f"kernel: {objective}: {path}"
        return objective

    def worth(self) -> Fraction:
        """Largest number in a utility: it may cancel against others."""
        numbers = [v for job in self.data["jobs"] for v in job.get("utility", {}).values()]
        return max((abs(v) for v in numbers if not isinstance(v, str)), default=Fraction(0))

    # 2 ------------------------------------------------------------------------------------------

    def random_prices(self, formulation: str, optimum: Optimum) -> None:
        """Bounds from random prices lie on the right side of the optimum."""
        layout = self.random.choice(layouts(self.instance, formulation))
        oracle = build_oracle(self.instance, formulation, rows=layout)
        for _ in range(PRICES):
            prices = self.prices(oracle, optimum)
            try:
                certificate = certify(oracle, prices)
            except hs.SolveFailed:
                assert optimum.value is None, f"{formulation}, {layout}: no schedule"
                self.counts["no schedule"] += 1
                continue
            self.bounded(certificate.to_dict(), certificate.bound, optimum)

    def random_tree(self, formulation: str, optimum: Optimum) -> None:
        """A tree of random splits with random prices at its leaves is a bound, too."""
        oracles = [
            oracle
            for name in layouts(self.instance, formulation)
            if isinstance(
                oracle := build_oracle(self.instance, formulation, rows=name), RestrictableOracle
            )
            and oracle.features
        ]
        if not oracles:
            return
        oracle = self.random.choice(oracles)
        leaves: list[tuple[list[BranchDecision], Any]] = []
        self.grow(oracle, optimum, [], leaves)
        try:
            certificate = certify_tree(oracle, leaves)
        except hs.SolveFailed:
            assert optimum.value is None, f"{formulation}: no leaf has a schedule"
            self.counts["no schedule"] += 1
            return
        self.counts["trees"] += 1
        self.bounded(certificate.to_dict(), certificate.bound, optimum)

    def grow(
        self, oracle: Any, optimum: Optimum, decisions: list[BranchDecision], leaves: list[Any]
    ) -> None:
        """Split at random, up to three times on a path."""
        if len(decisions) == 3 or (decisions and self.random.random() < 0.3):
            leaves.append((decisions, self.prices(oracle, optimum)))
            return
        block = self.random.randrange(oracle.num_decided)
        axes = {name: [labels for _, labels in axes] for name, axes in oracle.features.items()}
        name, labels = self.random.choice([kept for kept in axes.items() if all(kept[1])])
        feature = Feature(name, tuple(self.random.randrange(len(known)) for known in labels))
        most = self.random.randint(0, self.instance.horizon if name == "completion" else 2)
        if name == "completion" and self.instance.sense == "max" and self.random.random() < 0.5:
            most = NEVER - 1  # whether it is admitted
        for side in (
            BranchDecision.at_most(block, feature, most),
            BranchDecision.at_least(block, feature, most + 1),
        ):
            self.grow(oracle, optimum, [*decisions, side], leaves)

    def prices(self, oracle: Any, optimum: Optimum) -> Any:
        """Draw prices: about what an optimum is worth to a row, few, whole, or far too high."""
        rows = oracle.rows
        worth = abs(float(optimum.value or 1)) / max(1, rows.size) or 1.0
        draw = np.random.default_rng(self.random.randrange(2**32))
        style = self.random.randrange(4)
        prices = draw.random(rows.size) * worth / np.maximum(np.abs(rows.capacity), 1e-12)
        if style == 0:
            prices = draw.integers(0, 4, rows.size).astype(float)
        elif style == 1:
            prices *= 10.0 ** draw.uniform(-3, 6)
        prices *= draw.random(rows.size) < self.random.choice((0.1, 0.5, 1.0))
        return np.minimum(prices, 1e18)

    def bounded(self, file: dict[str, Any], bound: float, optimum: Optimum) -> None:
        """A bound of the fast path, and the kernel's of the same file, are on the right side."""
        self.counts["bounds"] += 1
        self.latest = json.dumps(file)
        assert self.right_side(Fraction(bound), optimum), f"fast path: {bound!r}"
        exact, data = deepcopy(self.read_exactly), json.loads(self.latest, parse_float=Fraction)
        try:
            proven = self.kernel.Problem(exact, data["formulation"]).bound(data)
        except reading.Refused as refused:
            if optimum.value is None and "schedule" in str(refused):
                self.counts["no schedule"] += 1
                return
            raise AssertionError(f"kernel: {refused}") from refused
        outer = proven.high if self.maximising else proven.low
        assert self.right_side(outer, optimum), f"kernel: {float(outer)!r}"
        self.agree(file, bound, proven)

    def agree(self, file: dict[str, Any], bound: float, proven: Any) -> None:
        """The fast path proves no more than the kernel, and less by its rounding only."""
        certificate = verify_certificate(self.instance, file).certificate
        exactly = Fraction(bound)
        loose = exactly - proven.low if self.maximising else proven.high - exactly
        oracle, size = oracle_of(certificate, self.instance), 1.0
        leaves = getattr(certificate, "leaves", [Leaf((), certificate.prices, bound)])
        for leaf in (leaf for leaf in leaves if leaf.bound is not None):
            values = RestrictedOracle(oracle, leaf.decisions).values(leaf.prices)
            terms = oracle.price_terms(leaf.prices)
            size = max(size, float(1 + np.abs(terms).sum() + np.abs(values).sum()))
        assert loose >= -BETTER * size, f"better by {-float(loose)}: {file}"
        # in leaves batchsched's outside option stands for whatever begins after the priced slots
        if self.family == "batchsched" and file["kind"] == "tree":
            return
        looser = LOOSER * size
        if self.family == "mlbroker":
            prices = numbers([self.data["transfer_usd_per_gb"], self.data["datacenters"]])
            dearest = float(max([*prices, *numbers(file["prices"])]))
            looser += SEARCHED * dearest * float(1 + sum(numbers(self.data["jobs"])))
        if loose > looser and leaves[0].decisions and oracle.step is not None:
            self.counts["a step lower"] += 1  # where rounding up is a matter of a hair
            looser += oracle.step
        assert loose <= looser, f"weaker by {float(loose)}: {file}"

    # 3, 4 ---------------------------------------------------------------------------------------

    def solved(self, formulation: str, optimum: Optimum) -> None:
        """What `solve` says is right, and so are its certificates."""
        assert optimum.value is not None
        methods = ["auto"]
        layouts = family_solvers(self.instance.family).tree_layouts(self.instance, formulation)
        if layouts and not formulation.endswith("literal"):
            methods.append("tree")
        for method in methods:
            result = hs.solve(
                self.instance, method=method, formulation=formulation, options={"time_limit": 20}
            )
            self.counts[f"{method} {result.status}"] += 1
            assert result.status in ("optimal", "feasible"), f"{method}: {result.status}"
            assert result.solution.violations() == []
            objective = Fraction(result.objective)
            assert not self.beyond(objective, optimum, ROUNDING), f"{method}: {result.objective}"
            if result.status == "optimal":
                gap = Fraction(2, 10**6) * abs(optimum.value) + optimum.slack
                assert abs(objective - optimum.value) <= gap, f"{method}: {result.objective}"
            if result.bound is not None:
                bound = Fraction(result.bound) + self.sign * ROUNDING * abs(optimum.value)
                assert self.right_side(bound, optimum), f"{method}: bound {result.bound}"
            if result.certificate is not None:
                file = result.certificate.to_dict()
                self.bounded(file, result.certificate.bound, optimum)
            hs.write_solution(result.solution, self.path.with_suffix(".solved.json"))
            self.kernel_accepts(self.path.with_suffix(".solved.json"), optimum)

    # sides --------------------------------------------------------------------------------------

    @property
    def maximising(self) -> bool:
        return bool(self.instance.sense == "max")

    @property
    def sign(self) -> int:
        return 1 if self.maximising else -1

    def right_side(self, bound: Fraction, optimum: Optimum) -> bool:
        """Whether a bound is not passed by the value of a feasible point: no tolerance here."""
        if optimum.value is None:
            return True
        return self.sign * (bound - optimum.value) >= -UTILITIES * abs(optimum.value)

    def beyond(self, objective: Fraction, optimum: Optimum, rounding: Fraction) -> bool:
        """Whether an objective is better than any that the second statement leaves possible."""
        assert optimum.value is not None
        room = optimum.slack + rounding * abs(optimum.value)
        return self.sign * (objective - optimum.value) > room


FOUND = (
    ("edgecloud", 1_000_380),  # no list finds room for the PSs: a tree needs the program's schedule
    ("edgecloud", 1_000_520),
    ("mlbroker", 2160),  # costs of 1e19, which HiGHS' simplex method gave up on
    ("mlbroker", 97),  # two schedules 6e-9 apart
    ("mlbroker", 1_001_169),  # at HiGHS' finest tolerances the second statement's optimum is wrong
    ("mlbroker", 1_001_389),
    ("mlbroker", 1_002_880),  # a part of 4e-6 of the cost was lost in HiGHS' tolerances
    ("oasis", 1_002_844),
    ("oasis", 5_000_106),  # packings of a server that only rounding lets in
    ("batchsched", 7_000_337),  # a worker and a PS that only rounding lets into a server
)
"""Where 3,000 instances a family once disagreed."""


@pytest.mark.nightly
@pytest.mark.parametrize(("family", "seed"), FOUND)
def test_agrees_where_it_did_not(family: str, seed: int, tmp_path: Path) -> None:
    Case(family, seed, tmp_path).check(solve=True)


def agree(family: str, seeds: range, folder: Path, solve: bool) -> None:
    """Check the instances of some seeds; most must say something."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        case = Case(family, seed, folder)
        try:
            counts += case.check(solve and seed % SOLVED == 0)
        except AssertionError as error:
            latest = folder / f"{family}-{seed}.latest.json"
            latest.write_text(case.latest)
            raise AssertionError(f"{case.path}, certificate {latest}: {error}") from None
    print(family, seeds, dict(counts))
    assert counts["optima"] >= len(seeds) // 3
    assert counts["not polished"] <= len(seeds) // 25
    assert counts["too large to enumerate"] <= len(seeds) // 5
    assert counts["a step lower"] <= 1 + counts["trees"] / 50


@pytest.mark.parametrize("family", [name for name in instances.FAMILIES if name != "mlbroker"])
def test_the_enumeration_sees_that_a_point_is_not_the_best(family: str, tmp_path: Path) -> None:
    case = Case(family, 3, tmp_path)
    program = case.module.Statement(case.data, case.module.FORMULATIONS[0]).program
    best = program.optimum()
    worse = best.value + abs(best.value) / 100 * (1 if program.sense == "min" else -1)
    assert agrees(program, best)
    assert agrees(program, Optimum(worse, best.slack)) is False


@pytest.mark.parametrize("family", instances.FAMILIES)
def test_the_first_agree(family: str, tmp_path: Path) -> None:
    agree(family, range(EVERY_COMMIT), tmp_path, solve=False)


@pytest.mark.nightly
@pytest.mark.parametrize("family", instances.FAMILIES)
@pytest.mark.parametrize("start", range(0, COUNT, CHUNK))
def test_agrees(family: str, start: int, tmp_path: Path) -> None:
    agree(family, range(FIRST + start, FIRST + min(start + CHUNK, COUNT)), tmp_path, solve=True)

"""The check at the door of ``solve``: a toy family's method says what the test tells it to."""

from __future__ import annotations

import io
import pickle
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest

import hindsched as hs
import hindsched.solvers.door.api as api
import hindsched.solvers.methods.base as methods_base
from hindsched.errors import InputError, SolveFailed
from hindsched.models.oasis.offline import OasisProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import LineProgress, Reports, Result, Status, StoppedBy
from tests.toy_family import ToySolution, install, make


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    install(monkeypatch)


def instance(family="toymax"):
    """Two jobs worth 3 and 4, or of these costs, and a server for each in slot 1."""
    return make(family, [(1, 1, 1, 3), (1, 1, 1, 4)], [1, 1], 5)


def says(monkeypatch, **what):
    """Make a method ``told`` that returns a result with these parts."""
    asked = []

    def told(given, formulation, options, on_progress):
        asked.append((formulation, options, on_progress))
        parts = {"status": Status.FEASIBLE, "stopped_by": StoppedBy.TIME_LIMIT, **what}
        return Result(instance=given, formulation=formulation, method="told", **parts)

    monkeypatch.setattr(api, "methods", lambda family: {"told": told})
    return asked


def taking(*servers, family="toymax"):
    """Job j0 in slot 1 of the first server, j1 in slot 1 of the second; None leaves a job out."""
    given = instance(family)
    place = {f"j{n}": (name, 1) for n, name in enumerate(servers) if name is not None}
    return ToySolution(given, given.formulations[0], place)


BOTH = ("s0", "s1")


def test_the_status_follows_from_the_gap(monkeypatch):
    says(monkeypatch, solution=taking(*BOTH), bound=7.0)
    result = api.solve(instance(), "told")
    assert (result.status, result.stopped_by) == (Status.OPTIMAL, StoppedBy.GAP)
    says(monkeypatch, solution=taking(None, "s1"), bound=7.0, status=Status.OPTIMAL)
    result = api.solve(instance(), "told")
    assert (result.status, result.stopped_by) == (Status.FEASIBLE, StoppedBy.TIME_LIMIT)
    assert result.gap == pytest.approx(3 / 7)
    assert api.solve(instance(), "told", gap=0.5).status is Status.OPTIMAL


LIES = {
    "breaks a rule": (
        "toymax",
        ["s0", "s0"],
        {"bound": 7.0},
        r"breaks \(3\): in slot 1 on server s0, 1 in all",
    ),
    "too low a bound": ("toymax", BOTH, {"bound": 6.9}, "the bound"),
    "too high a bound": ("toymin", BOTH, {"bound": 7.1}, "the bound"),
    "called infeasible": ("toymax", ["s0"], {"status": Status.INFEASIBLE}, "infeasible"),
    "another problem's": ("toymax", BOTH, {"formulation": "mandatory"}, "formulation"),
}


@pytest.mark.parametrize("name", LIES)
def test_what_contradicts_itself_does_not_leave(monkeypatch, name):
    family, servers, parts, message = LIES[name]
    parts = dict(parts)
    asked = parts.pop("formulation", None)
    says(monkeypatch, solution=taking(*servers, family=family), **parts)
    with pytest.raises(SolveFailed, match=message):
        api.solve(instance(family), "told", formulation=asked)


@pytest.mark.parametrize(("family", "bound"), [("toymax", 7 - 1e-9), ("toymin", 7 + 1e-9)])
def test_a_bound_that_is_off_by_rounding_is_moved_to_the_objective(monkeypatch, family, bound):
    says(monkeypatch, solution=taking(*BOTH, family=family), bound=bound)
    result = api.solve(instance(family), "told")
    assert result.bound == result.objective == 7.0


def test_a_claim_without_a_solution_is_none(monkeypatch):
    says(monkeypatch, status=Status.OPTIMAL, bound=9.0)
    result = api.solve(instance(), "told")
    assert (result.status, result.objective, result.bound) == (Status.NO_SOLUTION, None, 9.0)
    assert result.gap is None


def test_an_instance_without_jobs_is_answered_before_any_method(monkeypatch):
    asked = says(monkeypatch)
    empty = instance().with_jobs(())
    result = api.solve(empty, "told")
    assert not asked
    assert (result.status, result.objective, result.bound, result.gap) == (Status.OPTIMAL, 0, 0, 0)


def test_what_is_unknown_is_named(monkeypatch):
    says(monkeypatch)
    with pytest.raises(InputError, match="method: magic: must be one of told"):
        api.solve(instance(), "magic")
    with pytest.raises(InputError, match="formulation: strict: must be one of optional, mandatory"):
        api.solve(instance(), "told", formulation="strict")
    with pytest.raises(InputError, match="timelimit: 3: must be an option"):
        api.solve(instance(), "told", timelimit=3)
    with pytest.raises(InputError, match="gap: 2: must be"):
        api.solve(instance(), "told", options={"gap": 2})


def test_options_come_as_object_mapping_or_keywords(monkeypatch):
    asked = says(monkeypatch)
    given = SolveOptions(time_limit=3, gap=0.1)
    for options, keywords in (
        (given, {}),
        ({"time_limit": 3, "gap": 0.1}, {}),
        (None, {"time_limit": 3, "gap": 0.1}),
        ({"time_limit": 9, "gap": 0.1}, {"time_limit": 3}),
        (SolveOptions(gap=0.1), {"time_limit": 3}),
    ):
        result = api.solve(instance(), "told", options=options, **keywords)
        assert asked[-1][1] == given
        assert result.options["time_limit"] == 3
    assert asked[-1][2] is None


def test_a_line_of_progress():
    stream = io.StringIO()
    show = LineProgress(stream, interval=0.0)
    show(110.0, 100.0, 2.0, "5 nodes")
    show(None, None, 3.0, "building")
    assert stream.getvalue() == (
        "    2.0 s  objective 100, bound 110, gap 9.09%  (5 nodes)\n    3.0 s    (building)\n"
    )
    quiet = LineProgress(stream, interval=60.0)
    quiet(1.0, 1.0, 1.0, "")
    assert stream.getvalue().count("\n") == 2
    LineProgress(stream, interval=0.0, limit=10.0)(None, 1.0, 4.0, "search")
    assert stream.getvalue().endswith("4.0 s  objective 1, at most 6 s left  (search)\n")


@pytest.fixture(scope="module")
def contended():
    return hs.suite("oasis", "small")[1]


def test_milp_is_optimal_and_its_bound_is_on_the_right_side(contended):
    result = api.solve(contended, "milp", time_limit=60)
    assert result.status is Status.OPTIMAL
    assert result.solution.violations() == []
    assert result.bound >= result.objective > 0
    relaxed = api.solve(contended, "relaxation")
    assert (relaxed.status, relaxed.solution) == (Status.NO_SOLUTION, None)
    assert relaxed.bound >= result.objective - 1e-6
    assert relaxed.bound == min(relaxed.certificate.bound, relaxed.details["linear_bound"])
    assert relaxed.relaxation.values["u"].between(-1e-9, 1 + 1e-9).all()
    assert relaxed.relaxation.duals["eq_4"].min() >= -1e-9
    assert pickle.loads(pickle.dumps(relaxed)).bound == relaxed.bound
    priced = api.solve(contended, "bound", time_limit=2)
    assert priced.bound >= result.objective
    assert priced.certificate.bound == priced.bound


def test_an_optimum_that_cannot_be_placed_is_a_bound_only(contended, monkeypatch):
    formulation = contended.formulations[0]
    monkeypatch.setattr(OasisProgram, "extract", lambda program: None)
    result = methods_base.solve_milp(contended, formulation, SolveOptions())
    assert result.status is Status.NO_SOLUTION
    assert result.solution is None
    assert result.bound >= api.solve(contended, "milp", time_limit=1).objective
    assert result.details["unplaced"] == pytest.approx(result.bound, rel=1e-5)


def test_a_result_says_on_whose_word_its_bound_stands():
    """Proven by prices, by the solver's word alone, or not at all."""
    instance = hs.named_instance("oasis-t10-i10-h25-s0")
    bounded = hs.solve(instance, "bound", work_limit=20)
    own = bounded.certificate.bound
    for changes, proof, certified in (
        ({}, "certificate", own),
        ({"bound": bounded.bound - 0.01}, "solver", own),
        ({"certificate": None}, "solver", None),
        ({"bound": None}, "none", own),
    ):
        told = replace(bounded, **changes)
        data = told.to_dict()
        assert (told.proof, data["certified"]) == (proof, proof == "certificate")
        assert data["certified_bound"] == certified


def test_a_result_is_at_least_as_good_as_its_start(monkeypatch):
    asked = says(monkeypatch, solution=taking(None, "s1"), bound=7.0)
    result = api.solve(instance(), "told", start=taking(*BOTH))
    assert (result.objective, result.status) == (7, Status.OPTIMAL)
    assert asked[0][1].start.objective() == 7
    assert "start" not in result.options
    says(monkeypatch, solution=None, status=Status.NO_SOLUTION)
    assert api.solve(instance(), "told", start=taking("s0", None)).objective == 3


def test_a_start_that_breaks_a_rule_is_refused_in_one_line(monkeypatch):
    asked = says(monkeypatch)
    for start in (taking("s0", "s0"), "start.json"):
        with pytest.raises(InputError, match=r"^start: ") as caught:
            api.solve(instance(), "told", start=start)
        assert "\n" not in str(caught.value)
    assert not asked
    with pytest.raises(InputError, match="must be an option"):
        api.solve(instance(), "told", options={"start": taking(*BOTH)})


def test_what_is_told_on_the_way_is_checked_and_proven(monkeypatch):
    told = []
    says(monkeypatch, solution=taking(*BOTH), bound=7.0)
    api.solve(instance(), "told", on_progress=lambda *numbers: told.append(numbers))
    [(seconds, objective, bound)] = told
    assert (objective, bound) == (7, None), "a solver's bound is no proof"
    assert seconds >= 0


@pytest.mark.parametrize(("family", "sign"), [("toymax", 1), ("toymin", -1)])
def test_what_is_told_only_gets_better(family, sign):
    """Results of a method are told in any order; what is worse, or the same, is no news."""
    given, told = instance(family), []
    reports = Reports(None, lambda seconds, *numbers: told.append(numbers))
    for objective, bound in [(5, None), (4, 9), (6, 8), (3, 9), (6, 8), (6, 7)]:
        reports.tell(SimpleNamespace(
            instance=given, objective=sign * objective, certified_bound=bound and sign * bound
        ))  # fmt: skip
    better = [(5, None), (5, 9), (6, 8), (6, 7)]
    assert told == [(sign * best, bound and sign * bound) for best, bound in better]


def test_bounds_are_told_while_the_solve_still_runs():
    given, told = hs.generate("oasis", preset="small", jobs=30, seed=3), []
    hs.solve(given, time_limit=3, threads=1, on_progress=lambda *n: told.append(n))
    assert next(seconds for seconds, _, bound in told if bound is not None) < 0.7 * told[-1][0]


@pytest.mark.parametrize("family", ["batchsched", "oasis"])
def test_a_start_is_where_auto_begins(family):
    given, told = hs.generate(family, preset="small", seed=5), []
    best = hs.solve(given, time_limit=3).solution
    result = hs.solve(
        given, time_limit=1, threads=1, start=best, on_progress=lambda *n: told.append(n)
    )
    sign = 1 if given.sense == "max" else -1
    assert told[0][1] == best.objective()
    for before, after in pairwise(told):
        assert before[0] <= after[0]
        assert sign * (after[1] - before[1]) >= 0
        assert before[2] is None or sign * (after[2] - before[2]) <= 0
    assert told[-1][1:] == (result.objective, result.certified_bound)


def test_what_is_no_callback_is_refused():
    with pytest.raises(InputError, match="on_progress: 5: must be callable"):
        api.solve(instance(), on_progress=5)

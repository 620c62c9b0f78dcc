"""A_online and its variants: known answers, the paper's lemmas, and what the truth refuses."""

from __future__ import annotations

import pytest
from hypothesis import given

from hindsched.instances.io import read
from hindsched.models.edgecloud.dual import build_dual
from hindsched.models.edgecloud.relaxations import build_fractional
from hindsched.online.edgecloud.speed_augmentation import run_with_speed
from hindsched.online.registry import build_algorithm
from hindsched.online.simulator import simulate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.program import solve_program
from tests.strategies.edgecloud import instance, job, tiny_instances

TWO = [
    {"name": "a", "workers": ["t1"], "ps": ["p"]},
    {"name": "b", "workers": ["t1"], "ps": ["p"]},
]
ONE = [{"name": "a", "workers": ["t1"], "ps": ["p"]}]
UP = {"a": 1, "b": 2, "cloud": 6}
NO_CLOUD = {"workers": {"t1": 0}}


def example_1():
    jobs = [job("j0", 1, 2, 3, 2, UP), job("j1", 2, 1, 2, 2, UP), job("j2", 3, 2, 1, 1, UP)]
    return instance(TWO, jobs)


def example_2():
    jobs = [job("j0", 1, 1, 4, 4, {"a": 3}), job("j1", 2, 1, 3, 3, {"a": 1})]
    return instance(ONE, jobs, NO_CLOUD)


def run(given_, name, **more):
    algorithm = build_algorithm("edgecloud", name)
    return algorithm, simulate(given_, algorithm, **more)


def test_example_1():
    """Hand-worked: chunks (job, worker, end) and every Q."""
    algorithm, result = run(example_1(), "edgecloud")
    ends = set()
    for name, rows in result.solution.assignments().items():
        chunks = {row["chunk"]: row for row in rows if "chunk" in row}
        ends |= {(name, row["server"], row["to"]) for row in chunks.values()}
    assert ends == {("j0", "a", 7), ("j0", "b", 6), ("j1", "a", 4), ("j2", "a", 5), ("j2", "b", 5)}
    alphas = [a for d in algorithm.dispatches.values() for a in d.alphas]
    assert alphas == [2, 2.5, 4, 2, 2]
    assert algorithm.report()["sum_alpha"] == pytest.approx(12.5)
    assert result.objective == 13
    assert result.violations == []


def test_example_2_lemma_4_fails_and_the_marginal_increment_repairs_it():
    algorithm, result = run(example_2(), "edgecloud")
    assert [result.solution.completion(name) for name in ("j0", "j1")] == [9, 5]
    assert [d.alphas for d in algorithm.dispatches.values()] == [[7], [4]]
    algorithm, result = run(example_2(), "edgecloud-marginal")
    assert [d.alphas for d in algorithm.dispatches.values()] == [[7], [6]]
    assert result.objective == 13


@pytest.mark.parametrize(("name", "value"), [("edgecloud-j5-s601", 47), ("edgecloud-j7-s600", 55)])
def test_known_objectives(name, value):
    known = read(f"tests/data/instances/{name}.json")
    assert simulate(known, "edgecloud").objective == value
    assert simulate(known, "reoptimise").objective >= solve(known, "milp").objective


@given(tiny_instances(max_jobs=6, max_chunks=4, clouds=(None, 0)))
def test_lemma_4_for_the_marginal_increment_and_the_corrected_dual(tiny):
    """Both in every instance, with uploads that differ by job; in whole slots and real time."""
    for whole in (True, False):
        marginal = run_with_speed(tiny, 0.0, increment="marginal", whole_slots=whole)
        total = sum(sum(d.alphas) for d in marginal.dispatches)
        assert total == pytest.approx(marginal.average_flow, abs=1e-6)
        for increment in ("printed", "marginal"):
            fast = run_with_speed(tiny, 0.5, increment=increment, whole_slots=whole)
            assert fast.slack >= -1e-9
            assert fast.bound <= solve_program(build_fractional(tiny).pyomo).objective + 1e-6


@given(tiny_instances(max_jobs=4, clouds=(None, 0, 1), storage=True))
def test_the_dual_program_has_the_value_of_the_relaxation(tiny):
    """(6), and (9) where storage is limited; without pi it is the dual of LP (4) without (4e)."""
    primal = solve_program(build_fractional(tiny, plus=False).pyomo).objective
    assert solve_program(build_dual(tiny).pyomo).objective == pytest.approx(primal, abs=1e-6)
    primal = solve_program(build_fractional(tiny, plus=False, at_once=False).pyomo).objective
    dual = solve_program(build_dual(tiny, at_once=False).pyomo).objective
    assert dual == pytest.approx(primal, abs=1e-6)


@given(tiny_instances(max_jobs=5, max_chunks=3))
def test_continuous_time_agrees_with_slots(tiny):
    """At speed 1 and whole processing times the event-driven run is the slotted one."""
    for name, increment in (("edgecloud", "printed"), ("edgecloud-marginal", "marginal")):
        fast = run_with_speed(tiny, 0.0, increment=increment, whole_slots=True)
        slotted = simulate(tiny, name)
        assert fast.times == pytest.approx(slotted.solution.job_completion_times)
        assert slotted.violations == []


def test_extra_speed_by_hand():
    """Real times: 4.5 and 1.5 slots, at speed 1.5 they are 3 and 1; uploads stay 0 and 1.

    The short job is ready at time 2, when the long one has 1 left (at speed 1: 2.5), and preempts
    it until 3 (3.5); the long one ends at 4 (6). Job c of two chunks goes to the cloud as a whole:
    one slot of upload and 2.5 / 1.5 slots of work.
    """
    long = job("a", 1, 1, 4.5, 4.5, {"a": 0})
    short = job("b", 2, 1, 1.5, 1.5, {"a": 1})
    cloud = job("c", 1, 2, 2.5, 2.5, {"a": 90, "cloud": 1}, worker_type="t2")
    tiny = instance(ONE, [long, short, cloud], NO_CLOUD)
    fast, plain = run_with_speed(tiny, 0.5), run_with_speed(tiny, 0.0)
    assert fast.times == pytest.approx([4, 2, 1 + 2.5 / 1.5])
    assert plain.times == pytest.approx([6, 2.5, 3.5])
    # Q by (5): a finds nothing; b waits for nobody and delays a; c's chunks do not meet.
    alphas = [d.alphas for d in fast.dispatches]
    assert alphas[0] == pytest.approx([3])
    assert alphas[1] == pytest.approx([1 + 1 + 1])
    assert alphas[2] == pytest.approx([(1 + 2.5 / 1.5) / 2] * 2)
    assert fast.average_flow == pytest.approx(4 + 2 + 1 + 2.5 / 1.5)
    assert sum(map(sum, alphas)) == pytest.approx(fast.average_flow)  # Lemma 4: in release order
    # alpha'' of b: upload and wait, and the unfinished third of a that it delays.
    assert fast.dispatches[1].corrected_alpha == pytest.approx(1 + 1 / 3)
    assert fast.slack >= -1e-9

"""edgecloud online: known answers, the paper's lemmas, and limits of storage, cloud and PSs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import hindsched as hs
from hindsched.analysis.compare import ratio
from hindsched.errors import Refused, SolveFailed
from hindsched.instances.catalogue import named_instance
from hindsched.instances.io import read
from hindsched.models.base import dual_program
from hindsched.models.edgecloud.relaxations import build_fractional
from hindsched.online.edgecloud.algorithms import measure_at_speed
from hindsched.online.edgecloud.speed_augmentation import run_with_speed
from hindsched.online.protocol import unmet
from hindsched.online.registry import algorithms, build_algorithm
from hindsched.online.simulator import simulate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.kernels.edgecloud.preemptive_queue import run_queue
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


def test_lemma_4_fails_and_the_marginal_increment_repairs_it():
    """Beta sums to the flow times over the chunks, one a job."""
    kept = named_instance("edgecloud/worst/lemma-4")
    algorithm, result = run(kept, "edgecloud")
    ends = [result.solution.completion(job.name) for job in kept.jobs]
    assert [end - (job.arrival - 1) for end, job in zip(ends, kept.jobs, strict=True)] == [9, 4]
    assert [d.alphas for d in algorithm.dispatches.values()] == [[7], [4]]
    algorithm, result = run(kept, "edgecloud-marginal")
    assert [d.alphas for d in algorithm.dispatches.values()] == [[7], [6]]
    assert result.objective == 13


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_lemmas_2_and_5_fail_on_an_idle_worker(epsilon):
    """At t = r the idle one's (6a), and (11a), ask alpha (n / E B) <= beta = 0 of one chunk."""
    kept = named_instance("edgecloud/worst/lemma-2")
    (job,) = kept.jobs
    algorithm, result = run(kept, "edgecloud")
    (dispatch,) = algorithm.dispatches.values()
    (used,) = {row["server"] for rows in result.solution.assignments().values() for row in rows
               if "chunk" in row}  # fmt: skip
    assert {"s1", "s2"} - {used}
    assert job.upload_slots["s1"] == job.upload_slots["s2"] == 0
    slots = job.epochs * job.minibatches * job.minibatch_slots
    assert dispatch.alphas == [slots / job.chunks]
    assert dispatch.alphas[0] / slots / (1 + epsilon) > 0


@pytest.mark.parametrize(("name", "value"), [("edgecloud-j5-s601", 47), ("edgecloud-j7-s600", 55)])
def test_known_objectives(name, value):
    known = read(f"tests/data/instances/{name}.json")
    assert simulate(known, "edgecloud").objective == value
    assert simulate(known, "reoptimise").objective >= solve(known, "milp").objective


@given(tiny_instances(max_jobs=6, max_chunks=4, clouds=(None, 0)))
def test_lemma_4_for_the_marginal_increment_and_the_corrected_dual(tiny):
    """Both in every instance, with uploads that differ by job."""
    marginal = run_with_speed(tiny, 0.0, increment="marginal")
    total = sum(sum(d.alphas) for d in marginal.dispatches)
    assert total == pytest.approx(marginal.average_flow, abs=1e-6)
    for increment in ("printed", "marginal"):
        fast = run_with_speed(tiny, 0.5, increment=increment)
        assert fast.slack >= -1e-9
        assert fast.bound <= solve_program(build_fractional(tiny).pyomo).objective + 1e-6


@given(tiny_instances(max_jobs=4, clouds=(None, 0, 1), storage=True))
def test_the_dual_program_has_the_value_of_the_relaxation(tiny):
    """(6), and (9) where storage is limited; without pi it is the dual of LP (4) without (4e)."""
    primal = solve_program(build_fractional(tiny, plus=False).pyomo).objective
    assert solve_program(dual_program(tiny).pyomo).objective == pytest.approx(primal, abs=1e-6)
    primal = solve_program(build_fractional(tiny, plus=False, at_once=False).pyomo).objective
    dual = solve_program(dual_program(tiny, at_once=False).pyomo).objective
    assert dual == pytest.approx(primal, abs=1e-6)


@given(tiny_instances(max_jobs=5, max_chunks=3))
def test_continuous_time_agrees_with_slots(tiny):
    """At speed 1 and whole processing times the event-driven run is the slotted one."""
    for name, increment in (("edgecloud", "printed"), ("edgecloud-marginal", "marginal")):
        fast = run_with_speed(tiny, 0.0, increment=increment)
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
    assert fast.total == pytest.approx(7 + 2.5 / 1.5)
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


def test_at_speed_2_a_chunk_takes_half_as_long():
    """Four slots at speed 1, two at 2; (4) counts the middle of the work: 8 / 4 and 1."""
    found = ratio(instance(ONE, [job("a", 1, 1, 4, 4, {"a": 0})], NO_CLOUD), ["edgecloud"], speed=2)
    plain, total, flow = found.algorithms
    assert plain.ratio.interval.upper == pytest.approx(1)
    assert (total.objective, flow.objective) == (2, 1)
    assert total.ratio.interval.lower == pytest.approx(0.5)
    assert flow.optimum.interval.lower == flow.optimum.interval.upper == pytest.approx(2)
    assert total.ratio.starred
    assert [row.theorem["value"] for row in found.algorithms] == [2, 2, 2]
    assert "the algorithm runs at speed 2" in unmet(plain.theorem)
    assert unmet(total.theorem) == ["Lemma 2: the printed dual is feasible"]
    slower = ratio(example_1(), ["edgecloud"], speed=1.1).algorithms
    assert [row.theorem["value"] for row in slower] == pytest.approx([4, 22, 11])


def test_the_ratio_to_problem_4_follows_from_what_is_proven():
    """Two slots of work and nine of sending: at zeta = 1 the middle is 1, in (4) 5.5."""
    alone = job("a", 1, 1, 11, 2, {"a": 0})
    flow = ratio(instance(ONE, [alone], NO_CLOUD), ["edgecloud"], speed=2).algorithms[-1]
    assert flow.objective == 2.75
    assert flow.ratio.interval.to_dict() == {"lower": None, "upper": pytest.approx(2.75)}
    local = job("a", 1, 1, 1, 1, {"a": 0})
    flow = ratio(instance(ONE, [local], NO_CLOUD), ["edgecloud"], speed=2).algorithms[-1]
    assert flow.ratio.interval.to_dict() == pytest.approx({"lower": 0.5, "upper": 0.5})


def test_theorem_3_is_of_a_cloud_without_limits():
    """In a cloud of one worker short jobs wait for the long one: 3 times the optimum, not 2."""
    jobs = [job("long", 1, 1, 200, 200, {"cloud": 0})]
    jobs += [job(f"short{n}", 2, 1, 1, 1, {"cloud": 0}) for n in range(60)]
    total = measure_at_speed(instance([], jobs, {"workers": {"t1": 1}}), 2.0, SolveOptions())[0]
    assert total.value > total.theorem["value"] * (60 * 61 / 2 + 261)
    assert unmet(total.theorem, of_instance=True) == ["no chunk waits for a worker in the cloud"]


HALVES = {"epochs": 2, "update_ms": 0, "minibatch_hours": 1, "minibatches": (1, 4),
          "gradient_mb": 0}  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_theorem_3_at_speed_2_is_a_schedule_of_half_the_work(seed):
    """The kernel judges the schedule; what the theorem promises is kept for (2) and for (4)."""
    drawn = hs.generate("edgecloud", seed=seed, assumptions=True, **HALVES)
    half = drawn.with_jobs([each.model_copy(update={"epochs": 1}) for each in drawn.jobs])
    slotted = runs_well(half, "edgecloud")
    total, flow = measure_at_speed(drawn, 2.0, SolveOptions())
    assert total.value == pytest.approx(slotted.objective)
    assert unmet(total.theorem, of_instance=True) == []
    assert total.value <= total.theorem["value"] * solve(drawn, "relaxation").bound
    assert flow.solved.status == "optimal"
    assert flow.value <= flow.theorem["value"] * flow.solved.bound


def test_a_run_that_no_workers_can_make_is_refused(monkeypatch):
    """Two chunks of 4 slots on one worker at speed 2 do not both end in the third slot."""

    def hurried(queue, now, end, ends):
        run_queue(queue, now, end, ends)
        ends[:, 0] = np.minimum(ends[:, 0], 3)

    monkeypatch.setattr("hindsched.online.edgecloud.speed_augmentation.run_queue", hurried)
    tiny = instance(ONE, [job("a", 1, 2, 4, 4, {"a": 0})], NO_CLOUD)
    with pytest.raises(SolveFailed, match="lacks 2 slots of work"):
        run_with_speed(tiny, 1.0)


SLOW = ("reoptimise", "dual-price")
FAST = [name for name in algorithms("edgecloud") if name not in SLOW]
LIMITED = tiny_instances(
    max_jobs=5, max_chunks=3, storage=True, finite_ps=True, clouds=(None, 1, 2)
)


def runs_well(tiny, name, **settings):
    result = simulate(tiny, name, settings=settings)
    assert result.violations == []
    assert all(result.solution.completion(record.name) is not None for record in tiny.jobs)
    return result


@pytest.mark.parametrize("name", FAST)
@given(tiny=LIMITED)
def test_every_algorithm_runs_on_every_instance(name, tiny):
    """Whoever finds no room, worker or PS at the edge waits or goes to the cloud."""
    runs_well(tiny, name)


def test_a_online_waits_for_the_only_ps():
    """Two workers, one parameter server (PS): the shorter job first, although two workers idle."""
    servers = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p"]}]
    up = {"a": 0}
    jobs = [job("long", 1, 1, 3, 3, up), job("short", 1, 1, 2, 2, up)]
    alone = instance(servers, jobs, {"workers": {"t1": 0}, "ps": {"p": 0}})
    for name in ("edgecloud", "edgecloud-marginal", "edgecloud-escape", "edgecloud-edge-only"):
        result = runs_well(alone, name)
        assert result.solution.completion("short") == 2
        assert result.solution.completion("long") == 5
    # With a second PS in the cloud they run side by side.
    beside = instance(servers, jobs, {"workers": {"t1": 0}, "ps": {"p": 1}})
    assert runs_well(beside, "edgecloud").objective == 2 + 3


def test_all_cloud_takes_turns_in_a_finite_cloud():
    servers = [{"name": "a", "workers": [], "ps": ["p"]}]
    jobs = [job("j0", 1, 3, 2, 2, {"cloud": 1}), job("j1", 1, 1, 2, 2, {"cloud": 1})]
    two = instance(servers, jobs, {"workers": {"t1": 2}})
    result = runs_well(two, "all-cloud")
    assert [result.solution.completion(n) for n in ("j0", "j1")] == [5, 5]
    # With one PS j1 waits until j0 has given it back, in slot 6.
    single = instance(servers, jobs, {"workers": {"t1": 2}, "ps": {"p": 1}})
    result = runs_well(single, "all-cloud")
    assert [result.solution.completion(n) for n in ("j0", "j1")] == [5, 7]
    # Without a PS in the cloud the one at the edge serves, at the rate of zeta = 0.
    slow = [{**jobs[0], "gradient_mb": 125.0}]
    none = instance(servers, slow, {"workers": {"t1": 3}, "ps": {"p": 0}})
    result = runs_well(none, "all-cloud")
    assert not result.solution.all_cloud[0]
    assert result.solution.completion("j0") == 4


FULL = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p", "p"], "storage_gb": 1}]


@pytest.mark.parametrize("name", [n for n in algorithms("edgecloud") if n != "all-cloud"])
def test_without_room_and_cloud_the_reason_is_named(name):
    """By (7c) waiting does not help: nobody who does not see the future can avoid this."""
    up = {"a": 0}
    jobs = [job("j0", 1, 1, 4, 4, up, chunk_gb=1), job("j1", 2, 1, 4, 4, up, chunk_gb=1)]
    closed = instance(FULL, jobs, {"workers": {"t1": 0}})
    with pytest.raises((Refused, SolveFailed)) as error:
        simulate(closed, name)
    if name != "reoptimise":
        assert error.value.constraint == "(7b)"
        assert "j1" in str(error.value) or "j0" in str(error.value)


@pytest.mark.parametrize("name", algorithms("edgecloud"))
@pytest.mark.parametrize(("storage", "fit"), [(0.3, 3), (0.2999999999999, 2)])
def test_storage_is_counted_in_decimals(name, storage, fit):
    """Three tenths fit into 0.3 and not into a hair less, though floats know neither."""
    servers = [{"name": "a", "workers": ["t1"] * 3, "ps": ["p"] * 3, "storage_gb": storage}]
    jobs = [job(f"j{i}", 1 + i, 1, 9, 9, {"a": 0, "cloud": 30}, chunk_gb=0.1) for i in range(3)]
    result = runs_well(instance(servers, jobs), name)
    assert sum(result.solution.stored_chunks().values()) == (0 if name == "all-cloud" else fit)

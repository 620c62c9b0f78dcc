"""What instances derive of their data: counts, durations and modes, by hand and by definition."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.errors import InputError
from hindsched.instances.base import LinearUtility, PowerUtility, SigmoidUtility
from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.instances.decimals import same_ceilings
from hindsched.instances.modes import NEVER, Hosting, durations, modes
from tests.astraea_example import worked_example
from tests.strategies.batchsched import instance, known_b
from tests.strategies.edgecloud import instance as edgecloud_instance
from tests.strategies.edgecloud import job as edgecloud_job


@pytest.mark.parametrize(
    "utility",
    [
        LinearUtility(slope=-0.3, intercept=127.3),
        LinearUtility(slope=-0.1, intercept=30.000000000000004),  # the two terms cancel at 300
        PowerUtility(scale=421.7, exponent=1.37),
        SigmoidUtility(priority=7.3, decay=0.71, target=12.0),
    ],
)
def test_utilities_at_many_completions_are_those_at_each(utility):
    completions = np.arange(1.0, 601.0)
    values = utility.values(completions).tolist()
    assert values == [utility.value(completion) for completion in range(1, 601)]
    assert utility.values(completions[:0]).size == 0


def test_oasis_by_hand():
    made = hs.named_instance("oasis-t10-i10-h5-s1")
    job = made.jobs[0]
    per_batch = job.minibatch_slots + 2 * job.gradient_mb * 8 / 1479 / 3600
    assert made.minibatch_time(job) == pytest.approx(per_batch)
    assert made.work_of(job) == math.ceil(97 * 62 * 14 * per_batch) == 148
    assert made.min_duration[0] == 3  # 148 / 62
    assert made.ps_needed(job, 0) == 0
    assert made.ps_needed(job, 9) == 2  # 9 x 1479 / 11995 = 1.1
    assert made.ps_needed_up_to(job, 9).tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 1, 2]
    values = made.utilities(job)
    assert np.isnan(values[0])
    assert values[1] == job.utility.value(0)
    job = made.jobs[1]  # 1 GPU, 19 GB each; 16 + 1 + 2 + 4 + 1 GPUs; at most 8 chunks
    assert made.most_workers(job) == 8
    wide = job.model_copy(update={"ps": {**job.ps, "bandwidth_mbps": 3000}})
    assert made.most_workers(wide) == 0  # a worker sends more than a PS takes
    other = made.with_jobs(made.jobs[2:4])
    assert other.worker_capacity is made.worker_capacity
    assert other.work.tolist() == made.work[2:4].tolist()


@pytest.mark.parametrize(
    ("servers", "workers", "ps", "usable"),
    [
        ([(3, 11)], [(2, 4)], [6], [[2, 10]]),
        ([(3, 9), (4, 7)], [(2, 4), (1, 2)], [3], [[3, 9], [4, 7]]),
        ([(0.7, 13)], [(0.2, 4)], [8], [[0.6, 12]]),
        ([(1e12 + 1, 5e12)], [(2.5, 3e12)], [1e-8], [[1e12, 5e12]]),
        ([(3, 13)], [(0, 4)], [8], [[3, 12]]),
    ],
)
def test_usable_is_what_whole_units_can_take(servers, workers, ps, usable):
    """Multiples of what every demand is a multiple of, in the decimals of the file."""
    job = {
        "arrival": 1, "weight": 1, "epochs": 1, "chunks": 1, "minibatches": 1, "gradient_mb": 0.0,
        "minibatch_slots": [1.0] * len(workers), "update_slots": [0.0],
    }  # fmt: skip
    made = instance(PARAMETER_SERVER, servers, workers, ps, [job])
    assert made.usable_capacity.tolist() == usable
    few = made.server_capacity[0] <= 10  # by brute force, where counts are few
    units = np.vstack([made.worker_demand, made.ps_demand])
    for counts in itertools.product(range(5), repeat=len(units)):
        taken = counts @ units
        if (taken <= made.server_capacity[0] + 1e-9)[few].all():
            assert (taken <= made.usable_capacity[0] + 1e-9)[few].all()


def test_modes_of_batchsched():
    made = known_b(PARAMETER_SERVER)
    assert set(modes(made, made.jobs[0]).tuples()) >= {(0, 0, 1, 2, 3), (0, 0, 0, 3, 4)}
    ring = known_b(RING_ALLREDUCE)
    wide = instance(
        RING_ALLREDUCE, [(3, 3), (3, 3)], [(1, 1)], [],
        [job.model_dump(exclude={"name"}, exclude_unset=True) for job in ring.jobs], 2,
    )  # fmt: skip
    expected = {(0, 0, 1, 3, 2), (0, 0, 1, 1, 3), (0, 0, 0, 3, 3), (0, 0, 0, 2, 4)}
    assert set(modes(wide, wide.jobs[0]).tuples()) == expected
    # More chunks than the cluster holds workers add no mode.
    most = wide.most_workers
    many = wide.jobs[0].model_copy(update={"chunks": 10**7, "minibatches": 1})
    few = many.model_copy(update={"chunks": most, "minibatches": 10**7 // most})
    kept = {mode[:4] for mode in modes(wide, many).tuples()}
    assert kept == {mode[:4] for mode in modes(wide, few).tuples()}
    with pytest.raises(InputError, match="must hold one worker"):
        instance(PARAMETER_SERVER, [(1, 2)], [(1, 2)], [2], [])


@given(
    work=st.integers(1, 10**6),
    train=st.floats(1e-9, 1e5),
    after=st.floats(0, 1e5),
    mb=st.sampled_from([0, 0.1, 3]),
    ring=st.booleans(),
)
@example(work=3, train=1 / 3, after=0.0, mb=0, ring=False)
@example(work=10, train=0.1, after=0.2, mb=0, ring=True)
def test_durations_are_exact(work, train, after, mb, ring):
    job = {
        "arrival": 1, "weight": 1, "epochs": 1, "chunks": 7, "minibatches": 1, "gradient_mb": mb,
        "minibatch_slots": [train],
    }  # fmt: skip
    job |= {"reduce_slots": after} if ring else {"update_slots": [after]}
    kind = RING_ALLREDUCE if ring else PARAMETER_SERVER
    made = instance(kind, [(9, 90)], [(1, 7)], [] if ring else [9], [job])
    job = made.jobs[0].model_copy(update={"minibatches": work})
    length = durations(made, job)[0, 0]
    alone, far = decimal(train), 16 * decimal(mb) / 7 / decimal(made.slot_seconds)
    for q, n in itertools.product((0, 1), range(1, 8)):
        shared = decimal(after) + (1 - q) * far
        each = alone + shared * Fraction(n - 1, n) if ring else alone + shared
        assert length[q, n - 1] == min(NEVER, max(1, math.ceil(7 * work * each / n)))
        assert made.exact_time(job, 0, 0, bool(q), n) == each


def decimal(number):
    return Fraction(repr(number))


def fewest(servers, worker, size, share, q, n):
    """From the definition: some server holds g workers and PSs that serve the others."""
    enough = []
    for free in servers.tolist():
        for g in [n] if q else range(n):
            units = max(1, math.ceil((n - g) * share))
            use = [g * e + units * z for e, z in zip(worker, size, strict=True)]
            if all(u <= c for u, c in zip(use, free, strict=True)):
                enough.append(units)
    return min(enough, default=NEVER)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_host_is_that_of_the_definition(seed):
    draws = np.random.default_rng(seed)
    servers = draws.integers(0, 12, (int(draws.integers(1, 4)), 2)).astype(float)
    worker, ps = draws.integers(1, 4, (2, 2)), draws.integers([0, 1], 6, (2, 2))
    ratio = np.array([[same_ceilings(b, big, 9) for big in ps[:, 1]] for b in worker[:, 1]])
    hosting = Hosting(servers, worker.astype(float), ps.astype(float), ratio)
    hosting.fewest_ps(3)  # a longer table is made when it is asked for
    table = hosting.fewest_ps(9)
    for m, p, q, n in np.ndindex(table.shape):
        share = Fraction(int(worker[m, 1]), int(ps[p, 1]))
        expected = fewest(servers, worker[m].tolist(), ps[p].tolist(), share, q, n + 1)
        assert table[m, p, q, n] == expected


def test_astraea_by_hand():
    made = worked_example()
    j12 = made.jobs[1]  # E D M = 6; tc = 1, td = 2
    length = durations(made, j12)[0, 0]
    assert length[1].tolist() == [6, 3, 2]  # centralised, 1-3 workers
    assert length[0].tolist() == [12, 6, 4]
    # No server holds 3 workers; distributed with 1 PS: at most 2 + 1 workers.
    assert modes(made, j12).tuples() == [
        (0, 0, 1, 1, 6),
        (0, 0, 1, 2, 3),
        (0, 0, 0, 1, 12),
        (0, 0, 0, 2, 6),
        (0, 0, 0, 3, 4),
    ]
    endless = worked_example(slot_seconds=1e-15)
    assert (durations(endless, endless.jobs[0])[0, 0, 0] == NEVER).all()
    wide = made.jobs[0].model_copy(update={"chunks": 10**6})
    assert durations(made, wide).shape == (1, 1, 2, 8)


def test_formulations_of_astraea_take_tokens_in_any_order():
    made = worked_example()
    assert made.check_formulation(None) == "optional,modes"
    assert made.check_formulation("literal") == "optional,literal"
    assert made.check_formulation("literal,must-complete") == "must-complete,literal"
    for words in ("optional,must-complete", "literal,modes", "optional,optional", "optional,", "x"):
        with pytest.raises(InputError, match="formulation"):
            made.check_formulation(words)


def test_edgecloud_by_hand():
    """m = 1 slot and 2 q / b = 1 slot: 2 slots at the edge, 1 in the cloud."""
    known = hs.named_instance("edgecloud-j5-s601")
    assert known.edge_slots.tolist() == [2, 4, 4, 3, 3]
    assert known.cloud_slots.tolist() == [1, 3, 3, 3, 3]
    assert known.groups == {
        (0, "t2"): (0,), (1, "t1"): (1,), (1, "t2"): (2,), (2, "t1"): (3,), (2, "t2"): (4,),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("job", "cloud", "rule"),
    [
        ({"worker_type": "t2"}, {"workers": {"t2": 0}}, "type of some worker"),
        ({"ps_type": "q"}, {"ps": {"q": 0}}, "type of some PS"),
        ({"minibatch_slots": 0, "gradient_mb": 0}, {}, "must take time"),
    ],
)
def test_an_edgecloud_job_needs_a_worker_a_ps_and_time(job, cloud, rule):
    server = {"name": "a", "workers": ["t1"], "ps": ["p"]}
    made = edgecloud_job("j", 1, 2, 3, 2, {"a": 1, "cloud": 6})
    with pytest.raises(InputError, match=rule):
        edgecloud_instance([server], [{**made, **job}], cloud)

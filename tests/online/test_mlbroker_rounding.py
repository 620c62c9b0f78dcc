"""Laws of mlbroker's roundings.

Statistical tests use fixed seeds and a two-sided normal test at |z| <= 5, whose error rate is below
6e-7 for each of the frequencies compared.
"""

import itertools
import math

import numpy as np
import pytest

from hindsched.instances.mlbroker.generator import generate
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.online.mlbroker.rounding import (
    INTEGRAL,
    dependent_round,
    repair,
    round1,
    round2,
    round_server,
    round_workers,
)
from tests.strategies.mlbroker import make, surplus

MOST_DEVIATIONS = 5.0


def agrees(count, trials, probability):
    deviation = math.sqrt(max(probability * (1 - probability), 1e-12) * trials)
    return abs(count - probability * trials) <= MOST_DEVIATIONS * deviation + 1e-9


def outcomes(parts, weights, last="up", trials=4000, seed=0):
    generator = np.random.default_rng(seed)
    parts, weights = np.array(parts), np.array(weights, dtype=float)
    return np.array([dependent_round(parts, weights, generator, last) for _ in range(trials)])


def rounded_as_printed(parts, weights, generator):
    """Algorithm 3 with the set of undecided elements made anew after every pair."""
    p = np.array(parts, dtype=float)
    while (undecided := np.flatnonzero((p > INTEGRAL) & (p < 1 - INTEGRAL))).size > 1:
        i, j = undecided[generator.choice(undecided.size, size=2, replace=False)]
        ratio = weights[j] / weights[i]
        up, down = min(1 - p[i], ratio * p[j]), min(p[i], ratio * (1 - p[j]))
        step = up if generator.random() < down / (up + down) else -down
        p[i], p[j] = p[i] + step, p[j] - step / ratio
    p[undecided] = 1.0
    return np.rint(p).astype(np.int64)


@pytest.mark.parametrize("seed", range(40))
def test_decided_elements_leave_the_set_and_the_draws_are_those_of_the_printed_algorithm(seed):
    rng = np.random.default_rng(seed)
    parts, weights = rng.choice([0, 1, 0.5, 0.25, 0.7], 30), rng.choice([1.0, 2.0, 3.5], 30)
    one, other = np.random.default_rng(seed), np.random.default_rng(seed)
    printed = rounded_as_printed(parts, weights, one)
    assert dependent_round(parts, weights, other).tolist() == printed.tolist()
    assert one.random() == other.random()


def exact_marginals(parts, weights):
    """Law of Algorithm 3 with the last one up, over all pairs and coins, by its text."""
    undecided = [i for i, p in enumerate(parts) if 1e-12 < p < 1 - 1e-12]
    if len(undecided) < 2:
        return np.array([1.0 if i in undecided else round(p) for i, p in enumerate(parts)])
    total = np.zeros(len(parts))
    pairs = list(itertools.permutations(undecided, 2))
    for i, j in pairs:
        ratio = weights[j] / weights[i]
        up = min(1 - parts[i], ratio * parts[j])
        down = min(parts[i], ratio * (1 - parts[j]))
        for chance, step in ((down / (up + down), up), (up / (up + down), -down)):
            after = list(parts)
            after[i] += step
            after[j] -= step / ratio
            total += chance * exact_marginals(after, weights)
    return total / len(pairs)


def test_k5_equal_halves_with_unequal_weights():
    """The lighter one goes to 0 or 1 and the heavier one always ends up at 1."""
    found = outcomes((0.5, 0.5), (1, 2))
    assert set(map(tuple, found.tolist())) == {(0, 1), (1, 1)}
    assert agrees(found[:, 0].sum(), len(found), 0.5)


def test_k5_complementary_parts():
    found = outcomes((0.3, 0.7), (1, 1))
    assert set(map(tuple, found.tolist())) == {(0, 1), (1, 0)}
    assert agrees(found[:, 1].sum(), len(found), 0.7)


def test_k5_last_up_breaks_the_marginal():
    found = outcomes((0.25, 0.5), (2, 1))
    assert set(map(tuple, found.tolist())) == {(0, 1), (1, 0)}
    assert agrees(found[:, 0].sum(), len(found), 0.5)


def test_k5_weight_and_marginals_kept_when_the_sum_is_whole():
    """(P1) and (P2) hold for equal weights and an integer sum: 40 000 draws."""
    parts = (0.2, 0.7, 0.5, 0.6)
    found = outcomes(parts, (1, 1, 1, 1), trials=40_000)
    assert (found.sum(axis=1) == 2).all()
    for column, part in zip(found.T, parts, strict=True):
        assert agrees(column.sum(), len(found), part)


def test_k5_unbiased_last_step_keeps_the_marginals():
    parts, weights = (0.2, 0.7, 0.5, 0.6), (1, 3, 2, 4)
    unbiased = outcomes(parts, weights, "unbiased", trials=20_000)
    for column, part in zip(unbiased.T, parts, strict=True):
        assert agrees(column.sum(), len(unbiased), part)
    up = outcomes(parts, weights, trials=20_000)
    weight = up @ np.array(weights)
    before = float(np.dot(parts, weights))
    assert before == pytest.approx(5.7)
    assert weight.min() >= before - 1e-9
    assert weight.max() <= before + max(weights)
    exact = exact_marginals(parts, weights)
    assert exact == pytest.approx([0.202, 0.778, 0.518, 0.951], abs=0.01)
    for column, marginal in zip(up.T, exact, strict=True):
        assert agrees(column.sum(), len(up), marginal)


def test_whole_parts_stay():
    assert outcomes((0, 1, 0, 1), (1, 2, 3, 4), trials=5).tolist() == [[0, 1, 0, 1]] * 5


def test_rounding_workers_keeps_their_number():
    """Round2 preserves an integer number of workers, and each marginal."""
    fractional = np.array([[0.25, 1.5, 0.75, 2.5]])
    found = np.array([round2(fractional, ("j",), slot, 3)[0] for slot in range(8000)])
    assert (found.sum(axis=1) == 5).all()
    for column, value in zip(found.T, fractional[0], strict=True):
        assert agrees((column - math.floor(value)).sum(), len(found), value - math.floor(value))


def test_round1_keeps_a_resource_and_treats_weight_0_apart():
    fractional = np.array([[0.5], [0.5], [0.25]])
    weights = np.array([2.0, 2.0, 0.0])
    found = np.array([round1(fractional, weights, slot, 1, "k")[:, 0] for slot in range(4000)])
    assert (found[:, :2].sum(axis=1) == 1).all()
    assert agrees(found[:, 2].sum(), len(found), 0.25)
    ignored = [round1(fractional, weights, slot, 1, "k", "ignore")[2, 0] for slot in range(50)]
    assert not any(ignored)


def test_largest_of_the_roundings_is_biased_upwards():
    """0.3 alone becomes 1 - 0.7^2 with one resource: the printed max breaks (P1)."""
    instance = make(2, 1, 1, [(1, 1, 10)] * 2, [{"P": 1, "D": [[1, 0]]}] * 2)
    view = SlotData.at(instance, 1)
    fractional = np.array([[0.3, 0.7], [0.7, 0.3]])
    found = [round_workers(view, fractional, slot, 0)[0, 0] for slot in range(4000)]
    assert agrees(sum(found), 4000, 1 - 0.7**2)


def test_ten_thousand_roundings_hold_the_data():
    """(8a)-(8b) after A_round, Round2 alone and Greedy, without any repair."""
    generator = np.random.default_rng(5)
    count = 0
    for number in range(100):
        instance = generate("small", number, datacenters=4, horizon=1, jobs=3, life_slots=1)
        view = SlotData.at(instance, 1)
        needed = view.data.sum(axis=1) / view.capacity
        share = generator.dirichlet(np.ones(4), size=len(view.jobs))
        extra = 1 + 0.2 * (number % 3)
        fractional = share * (extra * needed)[:, None]
        for slot in range(34):
            for method in ("paper", "round2", "greedy"):
                workers = round_workers(view, fractional, slot, number, method)
                assert repair(view, workers, fractional)[1] == 0
                count += 1
    assert count >= 10_000


def test_independent_rounding_is_repaired_and_counted():
    """E8: three times a third of a worker rounds to none."""
    view = SlotData.at(surplus(), 1)
    fractional = np.full((1, 3), 1 / 3)
    rounded = round_workers(view, fractional, 1, 0, "independent")
    assert rounded.sum() == 0
    workers, repairs = repair(view, rounded, fractional)
    assert (workers.sum(), repairs) == (1, 1)
    assert repair(view, workers, fractional)[1] == 0


def test_rounding_the_server():
    view = SlotData.at(surplus(), 1)
    share = np.array([[0.2, 0.5, 0.3]])
    drawn = [round_server(view, share, slot, 0)[0] for slot in range(4000)]
    for center, part in enumerate(share[0]):
        assert agrees(drawn.count(center), 4000, part)
    assert round_server(view, share, 1, 0, "greedy").tolist() == [1]

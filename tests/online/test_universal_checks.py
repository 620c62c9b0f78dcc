"""Every registered algorithm of every family keeps what an online algorithm promises.

The instances are the smallest known one of each family, or a generated one where none is known (at
most 4 of its jobs), and its generator's ``small`` preset.
"""

import functools
import sys

import pytest

from hindsched.errors import Refused
from hindsched.instances.base import families_on
from hindsched.instances.catalogue import KNOWN, known_instance
from hindsched.instances.generators.registry import generate
from hindsched.online.checks import (
    BrokenPromiseError,
    WatchedAlgorithm,
    check_algorithm,
    check_feasible,
    check_no_peeking,
    check_repeatable,
    cuts,
    other_futures,
    reveal_slots,
    run_watched,
)
from hindsched.online.protocol import NOTHING, Decision, OnlineAlgorithm
from hindsched.online.registry import algorithms
from hindsched.online.simulator import simulate

MOST_JOBS = 4
FAMILIES = families_on("online", "algorithms")
REGISTERED = [(family, name) for family in FAMILIES for name in algorithms(family)]


@functools.cache
def known(family):
    names = [name for name in KNOWN if KNOWN[name][0].family == family]
    instance = known_instance(names[0]) if names else generate(family, "small", 3)
    return instance.with_jobs(instance.jobs[:: -(-len(instance.jobs) // MOST_JOBS)])


@functools.cache
def generated(family):
    return generate(family, "small", 1)


@pytest.mark.parametrize(("family", "name"), REGISTERED)
def test_known_instance(family, name):
    check_algorithm(known(family), name)


@pytest.mark.parametrize(("family", "name"), REGISTERED)
def test_generated_instance(family, name):
    instance = generated(family)
    original = run_watched(instance, name)
    check_repeatable(instance, name, original=original)
    check_feasible(instance, name, original=original)
    middle = cuts(instance)[len(cuts(instance)) // 2]
    future = other_futures(instance, middle)[1]
    check_no_peeking(instance, name, middle, future, original=original)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_futures_differ_only_after_the_cut(family):
    instance = known(family)
    reveal = reveal_slots(instance)
    for slot in cuts(instance):
        for future in other_futures(instance, slot):
            kept = {job.name for job in instance.jobs if reveal[job.name] <= slot}
            other = instance.with_jobs(
                tuple(job for job in instance.jobs if job.name in kept) + tuple(future)
            )
            assert {name for name, when in reveal_slots(other).items() if when <= slot} == kept


# The checks must be able to fail: algorithms that break exactly one promise each.


class Idle(OnlineAlgorithm):
    """Does nothing; whatever it knows it keeps in `notes`."""

    notes: object = None

    def start(self, environment):
        self.environment = environment

    def step(self, slot, arrivals):
        return NOTHING


class Mutates(Idle):
    def step(self, slot, arrivals):
        for job in arrivals:
            job.worker["gpu"] = 99
        return NOTHING


class MutatesEstimates(Idle):
    def start(self, environment):
        environment.estimates["anything"] = 1


class FollowsTheSeed(Idle):
    def step(self, slot, arrivals):
        refused = [job.name for job in arrivals] if self.environment.seed else []
        return Decision(rejected=refused)


class CountsItsRuns(Idle):
    randomised = True
    runs = 0

    def start(self, environment):
        type(self).runs += 1

    def step(self, slot, arrivals):
        return Decision(admitted=[job.name for job in arrivals] if self.runs % 2 else [])


class Peeks(Idle):
    """Knows the whole instance from elsewhere."""

    instance = None

    def step(self, slot, arrivals):
        names = [job.name for job in arrivals]
        return Decision(rejected=names if len(type(self).instance.jobs) == 10 else [])


class Overbooks(Idle):
    def step(self, slot, arrivals):
        rows = {
            job.name: [{"from": slot, "to": slot, "workers": {"w1": 10_000}, "ps": {}}]
            for job in arrivals
        }
        return Decision(rows)


@pytest.fixture
def oasis(monkeypatch):
    """An instance of its own, and a way to register an algorithm."""
    instance = known_instance("oasis-t10-i10-h5-s1")

    def register(algorithm):
        monkeypatch.setitem(algorithms("oasis"), "mine", algorithm)
        return instance

    return register


@pytest.mark.parametrize("algorithm", [Mutates, MutatesEstimates])
def test_a_changed_view_is_found(oasis, algorithm):
    with pytest.raises(BrokenPromiseError, match="changed its view"):
        run_watched(oasis(algorithm), "mine")


def test_hidden_randomness_is_found(oasis):
    with pytest.raises(BrokenPromiseError, match="another seed, though not randomised"):
        check_repeatable(oasis(FollowsTheSeed), "mine")
    with pytest.raises(BrokenPromiseError, match="the same seed gives another decision in slot 1"):
        check_repeatable(oasis(CountsItsRuns), "mine")


def test_peeking_is_found(oasis, monkeypatch):
    instance = oasis(Peeks)
    real = simulate

    def remember(shown, *args, **kwargs):
        Peeks.instance = shown
        return real(shown, *args, **kwargs)

    monkeypatch.setattr("hindsched.online.checks.simulate", remember)
    with pytest.raises(BrokenPromiseError, match="mine peeks: jobs after slot"):
        check_algorithm(instance, "mine")


def test_an_infeasible_decision_is_refused(oasis):
    with pytest.raises(Refused):
        check_feasible(oasis(Overbooks), "mine")


class LooksIntoTheSimulator(Idle):
    """Walks up the stack to the simulator's own variables, where the whole instance is."""

    def step(self, slot, arrivals):
        frame = sys._getframe()
        while "state" not in frame.f_locals:
            frame = frame.f_back
        many = len(frame.f_locals["state"].instance.jobs) >= 10
        return Decision(rejected=[job.name for job in arrivals] if many else [])


def test_looking_into_the_simulator_is_found_in_an_algorithm_that_is_not_registered():
    instance = known_instance("oasis-t10-i10-h5-s1")
    with pytest.raises(BrokenPromiseError, match="LooksIntoTheSimulator peeks: jobs after slot"):
        check_algorithm(instance, LooksIntoTheSimulator)


def test_the_watch_changes_nothing():
    instance = known_instance("oasis-t10-i10-h5-s1")
    watched = run_watched(instance, "oasis")
    plain = simulate(instance, "oasis")
    assert watched.result.solution.assignments() == plain.solution.assignments()
    assert WatchedAlgorithm(Idle()).feasible_set is True

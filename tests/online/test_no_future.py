"""Nothing that an algorithm is handed leads to a job that has not arrived, and cheats are found."""

import gc
import json
import sys
import weakref
from array import array

import numpy as np
import pytest
from hindsched.online.leak_check import reachable

from hindsched.errors import HindschedError, InputError
from hindsched.instances.base import families_on
from hindsched.instances.generators.registry import generate
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.online import checks
from hindsched.online.checks import BrokenPromiseError, check_algorithm, check_environment
from hindsched.online.oasis.prices import pool_facts
from hindsched.online.protocol import NOTHING, Decision, OnlineAlgorithm
from hindsched.online.registry import check_estimates, declared_estimates
from hindsched.online.simulator import environment_of, simulate

INSTANCE = generate("oasis", "small", 1)


@pytest.mark.parametrize("family", families_on("online", "algorithms"))
def test_environments_hold_no_job(family):
    check_environment(generate(family, "small", 1))


@pytest.mark.parametrize("family", families_on("online", "algorithms"))
def test_environments_have_neither_name_nor_provenance(family):
    instance = generate(family, "small", 1)
    told = environment_of(instance, declared_estimates(instance)).cluster
    assert instance.provenance is not None
    assert (told.name, told.provenance, told.jobs) == ("cluster", None, ())


class Cheats(OnlineAlgorithm):
    """Serves a job only if no better one is to come, as far as `the_future` tells."""

    def start(self, environment):
        self.environment = environment

    def step(self, slot, arrivals):
        later = self.the_future(slot)
        worse = [job.name for job in arrivals if any(job.arrival < other for other in later)]
        return Decision(rejected=worse) if worse else NOTHING


class ReadsTheBounds(Cheats):
    """Looks for the work of every job among the declared estimates."""

    def the_future(self, slot):
        return list(self.environment.estimates["price_bounds"]["worker_capacity"].work)


class MakesTheInstanceAgain(Cheats):
    """Makes the instance again from its provenance."""

    def the_future(self, slot):
        made = self.environment.cluster.provenance
        return [job.arrival for job in generate("oasis", made["preset"], made["seed"]).jobs]


class SearchesTheMemory(Cheats):
    """Finds the instance among all objects of the process."""

    def the_future(self, slot):
        found = [item for item in gc.get_objects() if isinstance(item, OasisInstance)]
        return [job.arrival for item in found for job in item.jobs if item is FOUND[0]]


FOUND = [INSTANCE]


@pytest.mark.parametrize("cheat", [ReadsTheBounds, MakesTheInstanceAgain])
def test_what_cheats_look_for_is_not_there(cheat):
    with pytest.raises((KeyError, TypeError)):
        simulate(INSTANCE, cheat())


def test_searching_the_memory_is_found(monkeypatch):
    def remember(shown, *args, **kwargs):
        FOUND[0] = shown
        return simulate(shown, *args, **kwargs)

    monkeypatch.setattr(checks, "simulate", remember)
    with pytest.raises(BrokenPromiseError, match="peeks: jobs after slot"):
        check_algorithm(INSTANCE, SearchesTheMemory)


class LooksUpTheStack(Cheats):
    """Reads the variables of the functions that called it."""

    def the_future(self, slot):
        frame = sys._getframe()
        while frame is not None:
            for value in list(frame.f_locals.values()):
                if isinstance(value, OasisInstance) and value.jobs:
                    return [job.arrival for job in value.jobs]
            frame = frame.f_back
        return []


def test_reading_the_callers_variables_is_found():
    with pytest.raises(BrokenPromiseError, match="peeks: jobs after slot"):
        check_algorithm(INSTANCE, LooksUpTheStack)


class FollowsWhatItWasGiven(Cheats):
    """Walks through all that it was handed: attributes, closures, caches, what arrays view."""

    def start(self, environment):
        super().start(environment)
        self.kept = [environment]

    def the_future(self, slot):
        found = [
            item.arrival
            for item in reachable(self.kept)
            if isinstance(item, OasisJob) and item.arrival > slot
        ]
        SEEN.append(len(found))
        return found

    def step(self, slot, arrivals):
        self.kept += arrivals
        return super().step(slot, arrivals)


SEEN: list[int] = []


def test_what_it_was_given_leads_to_no_later_job():
    SEEN.clear()
    check_algorithm(INSTANCE, FollowsWhatItWasGiven)
    assert len(SEEN) >= INSTANCE.horizon
    assert not any(SEEN)


def by_job(instance):
    return {job.name: float(job.arrival) for job in instance.jobs}


def as_a_list(instance):
    return {f"arrival {index}": float(job.arrival) for index, job in enumerate(instance.jobs)}


def by_slot(instance):
    """With every job twice not one number more."""
    return {str(job.arrival): float(job.arrival) for job in instance.jobs}


def by_every_slot(instance):
    slots = [job.arrival for job in instance.jobs]
    return {str(slot): slots.count(slot) for slot in range(1, instance.horizon + 1)}


def by_rank(instance):
    return {f"place {rank}": job.arrival for rank, job in enumerate(instance.jobs[:5])}


LEAKS = {
    "numbers by arrival": by_slot,
    "numbers by slot": by_every_slot,
    "the first five": by_rank,
    "an array": lambda instance: pool_facts(instance)["worker_capacity"].work,
    "an object": lambda instance: pool_facts(instance),
    "a closure": lambda instance: lambda: instance.jobs,
    "numbers by job": by_job,
    "numbers in order": as_a_list,
    "a text": lambda instance: json.dumps(by_job(instance)),
    "one large integer": lambda instance: int.from_bytes(json.dumps(by_job(instance)).encode()),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_estimates_that_hold_jobs_are_refused(leak, monkeypatch):
    def leaking(instance):
        return {"bounds": LEAKS[leak](instance)}

    monkeypatch.setattr("hindsched.online.oasis.algorithms.declared_estimates", leaking)
    with pytest.raises((BrokenPromiseError, InputError)):
        check_environment(INSTANCE)


def test_a_cluster_that_keeps_a_cache_of_the_jobs_is_found(monkeypatch):
    def careless(instance, estimates, *others, **keywords):
        told = environment_of(instance, estimates, *others, **keywords)
        vars(told.cluster)["work"] = instance.work
        return told

    monkeypatch.setattr(checks, "environment_of", careless)
    with pytest.raises(BrokenPromiseError, match="grows with the jobs"):
        check_environment(INSTANCE)


def test_the_walk_sees_closures_caches_partials_and_generators():
    import functools

    secret = "found me"

    @functools.cache
    def cached(word):
        return [word, secret]

    cached("kept")

    def generator():
        inside = "suspended"
        yield 1
        yield inside

    running = generator()
    next(running)
    holder = {"a": [functools.partial(print, "in a partial")], "b": (cached, running)}
    words = {item for item in reachable(holder) if isinstance(item, str)}
    assert {"found me", "kept", "in a partial", "suspended"} <= words


def test_the_walk_sees_weak_references_methods_and_buffers():
    class Holder:
        word = None

    held = Holder()
    held.word = "behind a weak reference"
    numbers = array("d", [3.5])
    view = np.zeros(1).view(type("Named", (np.ndarray,), {}))
    view.word = "beside an array"
    found = reachable([weakref.ref(held), ["in a list"].append, memoryview(numbers), view])
    plain = {item for item in found if isinstance(item, str | float)}
    assert {"behind a weak reference", "in a list", 3.5, "beside an array"} <= plain


def test_estimates_of_ones_own_are_checked():
    with pytest.raises(InputError, match=r"estimates\.jobs"):
        simulate(INSTANCE, "oasis", estimates={"jobs": [1, 2]})
    with pytest.raises(InputError, match="estimates"):
        check_estimates([1])


def test_estimates_depend_on_known_settings_only():
    with pytest.raises(HindschedError, match="depend on lower_floor, units"):
        declared_estimates(INSTANCE, {"every_job": True})
    with pytest.raises(HindschedError, match="depend on nothing"):
        declared_estimates(generate("mlbroker", "small", 1), {"every_job": True})

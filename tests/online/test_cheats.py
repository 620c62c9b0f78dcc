"""The checks find algorithms that cheat, and nothing that one is handed leads to later jobs."""

import gc
import json
import sys
from dataclasses import replace

import pytest

from hindsched.errors import HindschedError, InputError, Refused
from hindsched.instances.catalogue import named_instance
from hindsched.instances.generators.registry import generate
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.online import checks
from hindsched.online.checks import (
    BrokenRuleError,
    check_algorithm,
    check_environment,
    check_repeatable,
    run_watched,
)
from hindsched.online.oasis.algorithms import ONLINE
from hindsched.online.oasis.prices import price_bounds
from hindsched.online.protocol import NOTHING, Decision, OnlineAlgorithm
from hindsched.online.registry import check_estimates, estimates_of
from hindsched.online.simulator import environment_of, simulate

INSTANCE = generate("oasis", "small", 1)
SMALL = named_instance("oasis-t10-i10-h5-s1")


class Idle(OnlineAlgorithm):
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


class Overbooks(Idle):
    def step(self, slot, arrivals):
        rows = {
            job.name: [{"from": slot, "to": slot, "workers": {"w1": 10_000}, "ps": {}}]
            for job in arrivals
        }
        return Decision(rows)


@pytest.mark.parametrize("algorithm", [Mutates, MutatesEstimates])
def test_a_changed_view_is_found(algorithm):
    with pytest.raises(BrokenRuleError, match="changed its view"):
        run_watched(SMALL, algorithm)


def test_hidden_randomness_is_found():
    with pytest.raises(BrokenRuleError, match="another seed, though not randomised"):
        check_repeatable(run_watched(SMALL, FollowsTheSeed))
    with pytest.raises(BrokenRuleError, match="the same seed gives another decision in slot 1"):
        check_repeatable(run_watched(SMALL, CountsItsRuns))


def test_an_infeasible_decision_is_refused():
    with pytest.raises(Refused):
        run_watched(SMALL, Overbooks)


def test_the_watch_changes_nothing():
    watched = run_watched(SMALL, "oasis")
    assert watched.result.solution.assignments() == simulate(SMALL, "oasis").solution.assignments()


class Cheats(Idle):
    """Serves a job only if no better one is to come, as far as `the_future` tells."""

    def step(self, slot, arrivals):
        later = self.the_future(slot)
        worse = [job.name for job in arrivals if any(job.arrival < other for other in later)]
        return Decision(rejected=worse) if worse else NOTHING


class ReadsTheBounds(Cheats):
    def the_future(self, slot):
        return list(self.environment.estimates["price_bounds"]["worker_capacity"].work)


class MakesTheInstanceAgain(Cheats):
    def the_future(self, slot):
        made = self.environment.cluster.provenance
        return [job.arrival for job in generate("oasis", made["preset"], made["seed"]).jobs]


class SearchesTheMemory(Cheats):
    """Finds the instance among all objects of the process."""

    def the_future(self, slot):
        instances = [item for item in gc.get_objects() if isinstance(item, OasisInstance)]
        return [job.arrival for item in instances for job in item.jobs if item is FOUND[0]]


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


FOUND = [INSTANCE]


@pytest.mark.parametrize("cheat", [ReadsTheBounds, MakesTheInstanceAgain])
def test_what_cheats_look_for_is_not_there(cheat):
    with pytest.raises((KeyError, TypeError)):
        simulate(INSTANCE, cheat())


@pytest.mark.parametrize("cheat", [SearchesTheMemory, LooksUpTheStack])
def test_peeking_is_found(cheat, monkeypatch):
    def remember(shown, *args, **kwargs):
        FOUND[0] = shown
        return simulate(shown, *args, **kwargs)

    monkeypatch.setattr(checks, "simulate", remember)
    with pytest.raises(BrokenRuleError, match=f"{cheat.__name__} peeks: jobs after slot"):
        check_algorithm(INSTANCE, cheat)


def by_job(instance):
    return {job.name: float(job.arrival) for job in instance.jobs}


LEAKS = {
    "numbers by slot": lambda instance: {str(job.arrival): 1.0 for job in instance.jobs},
    "numbers by every slot": lambda instance: dict.fromkeys(map(str, range(instance.horizon)), 1),
    "the first five": lambda instance: {f"place {k}": 1.0 for k, _ in enumerate(instance.jobs[:5])},
    "an array": lambda instance: instance.work,
    "an object": lambda instance: price_bounds(instance),
    "a closure": lambda instance: lambda: instance.jobs,
    "numbers by job": by_job,
    "a text": lambda instance: json.dumps(by_job(instance)),
    "one large integer": lambda instance: int.from_bytes(json.dumps(by_job(instance)).encode()),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_estimates_that_hold_jobs_are_refused(leak, monkeypatch):
    def leaking(instance):
        return {"bounds": LEAKS[leak](instance)}

    changed = replace(ONLINE, declared_estimates=leaking)
    monkeypatch.setattr("hindsched.online.oasis.algorithms.ONLINE", changed)
    with pytest.raises((BrokenRuleError, InputError)):
        check_environment(INSTANCE)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (lambda instance: instance.work, "grows with the jobs"),
        (lambda instance: instance.jobs[-1].name, "holds job"),
        (lambda instance: lambda: instance, "no plain data"),
    ],
)
def test_a_cluster_that_keeps_something_of_the_jobs_is_found(kept, message, monkeypatch):
    def careless(instance, estimates, *others, **keywords):
        environment = environment_of(instance, estimates, *others, **keywords)
        if estimates:
            vars(environment.cluster)["kept"] = kept(INSTANCE if "holds" in message else instance)
        return environment

    monkeypatch.setattr(checks, "environment_of", careless)
    with pytest.raises(BrokenRuleError, match=message):
        check_environment(INSTANCE)


def test_estimates_of_ones_own_are_checked():
    with pytest.raises(InputError, match=r"estimates\.jobs"):
        simulate(INSTANCE, "oasis", estimates={"jobs": [1, 2]})
    with pytest.raises(InputError, match="estimates"):
        check_estimates([1])
    with pytest.raises(HindschedError, match="depend on lower_floor"):
        estimates_of(INSTANCE, {"every_job": True})
    with pytest.raises(HindschedError, match="depend on nothing"):
        estimates_of(generate("mlbroker", "small", 1), {"every_job": True})

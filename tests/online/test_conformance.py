"""Every registered algorithm of every family keeps what an online algorithm promises.

The instances are the smallest known one of each family, or a generated one where none is known (at
most 4 of its jobs), and its generator's ``small`` preset.
"""

import functools
import json
import sys

import pytest

import hindsched as hs
from hindsched.instances.base import families_on
from hindsched.instances.catalogue import KNOWN, known_instance
from hindsched.online.checks import (
    check_algorithm,
    check_environment,
    check_feasible,
    check_no_peeking,
    check_repeatable,
    cuts,
    other_futures,
    reveal_slots,
    run_watched,
)
from hindsched.online.registry import algorithms, build_algorithm, declared_estimates
from hindsched.online.simulator import environment_of, simulate

MOST_JOBS = 4
FAMILIES = families_on("online", "algorithms")
REGISTERED = [(family, name) for family in FAMILIES for name in algorithms(family)]
UNINFORMED = [
    (family, name)
    for family, name in REGISTERED
    if not build_algorithm(family, name).card.knows_durations
]


@functools.cache
def known(family):
    names = [name for name in KNOWN if KNOWN[name][0].family == family]
    instance = known_instance(names[0]) if names else hs.generate(family, seed=3)
    return instance.with_jobs(instance.jobs[:: -(-len(instance.jobs) // MOST_JOBS)])


@functools.cache
def generated(family):
    return hs.generate(family, seed=1)


@pytest.mark.parametrize("family", FAMILIES)
def test_environments_hold_no_job_name_or_provenance(family):
    instance = generated(family)
    check_environment(instance)
    told = environment_of(instance, declared_estimates(instance)).cluster
    assert instance.provenance is not None
    assert (told.name, told.provenance, told.jobs) == ("cluster", None, ())


@pytest.mark.parametrize(("family", "name"), REGISTERED)
def test_promises_are_kept(family, name):
    check_algorithm(known(family), name)
    instance = generated(family)
    original = run_watched(instance, name)
    check_repeatable(instance, name, original=original)
    check_feasible(instance, name, original=original)
    middle = cuts(instance)[len(cuts(instance)) // 2]
    future = other_futures(instance, middle)[1]
    check_no_peeking(instance, name, middle, future, original=original)
    check_card(instance, name, original)


def check_card(instance, name, transcript):
    """What an algorithm says of itself holds."""
    algorithm = build_algorithm(instance.family, name)
    result, reveal = transcript.result, reveal_slots(instance)
    assert result.mark == algorithm.card.mark
    assert result.in_feasible_set is not algorithm.relaxes(instance.formulations[0])
    if not algorithm.card.may_give_up and result.in_feasible_set:
        assert not (result.solution.given_up and algorithm.card.commits_at_arrival)
    if algorithm.card.commits_at_arrival and instance.family != "edgecloud":
        for slot, text in transcript.decisions:
            for job, rows in json.loads(text)["assignments"].items():
                assert not rows or slot == reveal[job], f"{job} is decided about in slot {slot}"


@pytest.mark.parametrize(("family", "name"), REGISTERED)
def test_every_formulation_is_obeyed_or_relaxed(family, name):
    instance = known(family)
    for formulation in instance.formulations:
        run = simulate(instance, name, formulation=formulation)
        assert not (run.in_feasible_set and run.violations), (formulation, run.violations)


@pytest.mark.parametrize(("family", "name"), UNINFORMED)
def test_who_does_not_know_durations_decides_without_them(family, name):
    """Where only the simulator knows how long a job runs, decisions in its first slot are equal."""
    instance = known(family)
    first = min(reveal_slots(instance).values())
    field = "duration" if family == "gang" else "epochs"
    longer = [job.model_copy(update={field: 2 * getattr(job, field)}) for job in instance.jobs]
    runs = [
        run_watched(each, name, last_slot=first)
        for each in (instance, instance.with_jobs(tuple(longer)))
    ]
    assert runs[0].decisions == runs[1].decisions


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


ASKED = """
import json, sys
from hindsched import read
from hindsched.instances.base import family_module
from hindsched.online.protocol import Environment
from hindsched.online.registry import build_algorithm

def say(**words):
    print(json.dumps(words, default=lambda number: number.item()), flush=True)

family = json.loads(input())["family"]
say(type="hello", protocol=1)
told = json.loads(input())
kind = type(read(sys.argv[1]))
cluster = kind.parse(told["cluster"])
algorithm = build_algorithm(family, sys.argv[2])
algorithm.start(Environment(cluster, told["estimates"], told["seed"], told["formulation"]))
say(type="ready")
record = kind.model_fields["jobs"].annotation.__args__[0]
for line in sys.stdin:
    step = json.loads(line)
    jobs = tuple(record.model_validate(job) for job in step["arrivals"])
    decision = algorithm.step(step["slot"], jobs)
    rows = {name: list(given) for name, given in decision.assignments.items()}
    say(type="decision", assignments=rows, admitted=list(decision.admitted),
        rejected=list(decision.rejected))
"""


def test_an_external_process_decides_as_the_same_algorithm_in_process(tmp_path):
    instance = generated("oasis")
    hs.write(instance, tmp_path / "instance.json")
    (tmp_path / "asked.py").write_text(ASKED)
    command = [sys.executable, str(tmp_path / "asked.py"), str(tmp_path / "instance.json"), "drf"]
    theirs = simulate(instance, hs.External(command))
    assert theirs.solution.assignments() == simulate(instance, "drf").solution.assignments()

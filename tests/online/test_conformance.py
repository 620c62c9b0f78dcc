"""Every registered algorithm of every family keeps what an online algorithm promises.

The instances are the smallest known one of each family, or a generated one where none is known (at
most 4 of its jobs), and its generator's ``small`` preset.
"""

import functools
import json

import pytest

import hindsched as hs
from hindsched.analysis.tasks import theorem_of
from hindsched.errors import InputError
from hindsched.instances.base import families_on
from hindsched.instances.catalogue import KNOWN, named_instance
from hindsched.instances.generators.registry import family_generator
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
from hindsched.online.protocol import unmet
from hindsched.online.registry import algorithms, build_algorithm, estimates_of
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
    instance = named_instance(names[0]) if names else hs.generate(family, seed=3)
    return instance.with_jobs(instance.jobs[:: -(-len(instance.jobs) // MOST_JOBS)])


@functools.cache
def generated(family):
    return hs.generate(family, seed=2)


@pytest.mark.parametrize("family", FAMILIES)
def test_environments_hold_no_job_name_or_provenance(family):
    instance = generated(family)
    check_environment(instance)
    cluster = environment_of(instance, estimates_of(instance)).cluster
    assert instance.provenance is not None
    assert (cluster.name, cluster.provenance, cluster.jobs) == ("cluster", None, ())


@pytest.mark.parametrize(("family", "name"), REGISTERED)
def test_promises_are_kept(family, name):
    check_algorithm(known(family), name)
    instance = generated(family)
    original = run_watched(instance, name)
    check_repeatable(original)
    check_feasible(original)
    middle = cuts(instance)[len(cuts(instance)) // 2]
    future = other_futures(instance, middle)[1]
    check_no_peeking(original, middle, future)
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


INFINITE = float("inf")
SETTINGS = {
    ("oasis", "oasis"): [
        ("lower_floor", 2), ("upper_scale", 0), ("nonsense", 1), ("least_payoff", -1),
    ],
    ("oasis", "rrh"): [("threshold", float("nan"))],
    ("oasis", "reoptimise"): [("nodes", 0)],
    ("oasis", "dual-price"): [("iterations", 0)],
    ("oasis", "fifo"): [("gangs", "widest"), ("order", "weight")],
    ("batchsched", "batchsched"): [
        ("alpha", 0), ("price_base", 1.0), ("price_base", INFINITE), ("density_scale", 0),
        ("order", "size"),
    ],
    ("batchsched", "batchsched-terminating"): [("alpha", "each-batch")],
    ("batchsched", "antman"): [("guaranteed", 2), ("patience", -1), ("rule", "size")],
    ("batchsched", "tiresias"): [("restore_slots", -1)],
    ("batchsched", "tiresias-l"): [("limits", [2, 1]), ("limits", [0])],
    ("batchsched", "drf"): [("static", "perhaps")],
    ("astraea", "astraea"): [
        ("rounds", 0), ("rounds", 10**8), ("theta_workers", 1.0), ("theta_ps", 1e308),
        ("theta_scale", 0), ("theta_scale", float("nan")), ("origin", "tomorrow"),
    ],
    ("edgecloud", "batchsche"): [("alpha", 0)],
    ("astraea", "batchsche"): [("alpha", "four")],
    ("mlbroker", "mlbroker"): [
        ("epsilon", 0), ("epsilon", INFINITE), ("rounding", "up"),
        ("price", "none"),
    ],
    ("gang", "easy"): [("estimates", "0.5")],
    ("gang", "fifo"): [("estimates", 2)],
    ("gang", "dual-price"): [("iterations", 0)],
    ("gang", "reoptimise"): [("exchanges", -1)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("family", "name", "setting", "value"),
    [(*who, *setting) for who, settings in SETTINGS.items() for setting in settings],
)
def test_a_bad_setting_is_named_in_one_line(family, name, setting, value):
    with pytest.raises(InputError) as error:
        simulate(known(family), name, settings={setting: value})
    assert setting in str(error.value)
    assert "\n" not in str(error.value)


WITH_PAPER = [family for family in FAMILIES if family_generator(family).assumptions is not None]


@pytest.mark.parametrize("family", WITH_PAPER)
def test_generators_meet_what_the_theorem_assumes_of_instances(family):
    for seed in range(100):
        drawn = hs.generate(family, seed=seed, assumptions=True)
        assert unmet(theorem_of(drawn, family), of_instance=True) == []
    assert drawn.name != hs.generate(family, seed=seed).name
    assert drawn == hs.generate(family, seed=seed, assumptions=True)


def test_a_setting_that_contradicts_the_assumptions_is_kept():
    drawn = hs.generate("mlbroker", assumptions=True, jobs=11)
    assert len(drawn.jobs) == 11
    assert unmet(theorem_of(drawn, "mlbroker"), of_instance=True) == ["K R <= number of jobs (12d)"]


@pytest.mark.parametrize(("family", "name"), REGISTERED)
def test_a_theorem_says_its_value_and_whether_its_assumptions_hold(family, name):
    for instance in (known(family), known(family).with_jobs(())):
        stated = theorem_of(instance, name)
        if stated is not None:
            assert stated["kind"] in ("ratio", "additive")
            assert stated["value"] is None or stated["value"] > 0
            assert all({"name", "holds"} <= set(row) for row in stated["assumptions"])

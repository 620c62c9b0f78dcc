"""Where a search may begin: files, folders of witnesses, the worst instance of a sweep."""

import pytest

import hindsched as hs
from hindsched.analysis.plan import plan_tasks
from hindsched.analysis.store import ResultStore
from hindsched.analysis.sweep import run_tasks
from hindsched.analysis.worst.starts import find_starts
from hindsched.errors import InputError
from hindsched.instances.base import families_on
from hindsched.instances.generators.registry import suites
from hindsched.instances.library import named_instance
from hindsched.instances.search.space import find_space
from hindsched.instances.witnesses import WORST, witness_files

SPACE = find_space("oasis", "one-slot")


def one_slot(name, *values):
    data = SPACE.normal(
        {
            **SPACE.base,
            "jobs": [
                {**SPACE.base["jobs"][0], "utility": {"kind": "linear", "slope": 0, "intercept": v}}
                for v in values
            ],
        }
    )
    return SPACE.instance(data, name)


def test_the_worst_instance_of_a_sweep(tmp_path):
    instances = [one_slot("a", 1, 2), one_slot("b", 1, 7), one_slot("c", 3, 3)]
    tasks = plan_tasks(instances, ["fifo"], seeds=1)
    store = ResultStore.create(tmp_path, instances, tasks, {})
    run_tasks(tasks, instances, workers=0, on_record=store.add)
    ((name, data),) = find_starts(SPACE, [tmp_path], "fifo")
    assert name == str(tmp_path)
    assert [job["utility"]["intercept"] for job in data["jobs"]] == [1, 7]
    with pytest.raises(InputError, match="must hold results of drf"):
        find_starts(SPACE, [tmp_path], "drf")


def test_a_search_goes_on_from_a_witness(tmp_path):
    witness = hs.worst("oasis", "fifo", preset="one-slot", work_limit=20, folder=tmp_path)
    ((_, data),) = find_starts(SPACE, [tmp_path], "fifo")
    assert SPACE.instance(data, witness.instance.name).jobs == witness.instance.jobs
    ((_, same),) = find_starts(SPACE, [tmp_path / "instance.json"], "fifo")
    assert same == data


PREEMPTIVE = {("gang", "srtf"), ("gang", "las")}


@pytest.mark.parametrize("family", families_on("instances", "search_space"))
def test_witnesses_of_the_library_have_names_and_are_worse_than_1(family):
    if not witness_files(family):
        assert WORST not in suites(family)
        return
    for instance in suites(family)[WORST]():
        assert named_instance(instance.name) == instance
        assert len(instance.jobs) <= 6
        algorithm = instance.name.removeprefix(f"{family}-{WORST}-")
        if (family, algorithm) in PREEMPTIVE:
            run = hs.simulate(instance, algorithm, formulation="preemptive")
            best = hs.solve(instance, formulation="preemptive", time_limit=10)
            assert run.objective > best.objective
            continue
        least = 1.2 if algorithm == family else 1.0
        ratio = hs.ratio(instance, [algorithm], time_limit=10).algorithms[0].ratio
        assert ratio.interval.lower > least, algorithm

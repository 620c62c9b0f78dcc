"""Runs of very many slots: refused where nobody set a limit, and not stuck while they go on."""

import pytest

import hindsched as hs
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.io import parse_instance
from hindsched.limits import time_limit
from hindsched.memory import memory_limit
from hindsched.online.protocol import NOTHING, Decision, OnlineAlgorithm
from hindsched.online.simulator import simulate

EXAMPLES = {
    "oasis": "oasis-t10-i10-h10-s0",
    "batchsched": "batchsched-ps-j5-s200",
    "astraea": "astraea-j5-s40",
    "edgecloud": "edgecloud-j5-s601",
    "gang": "gang/small/j6-s1",
}
MILLIONS = 3_000_000


def example(family, **changed):
    return hs.named_instance(EXAMPLES[family]).with_fields(**changed)


def lone_job(**changed):
    """A job of batchsched alone, whose work the change may make long."""
    data = example("batchsched").to_dict()
    data["jobs"] = [data["jobs"][0] | {"arrival": 1} | changed]
    data["horizon"] = 3
    return parse_instance(data)


class Waits(OnlineAlgorithm):
    """Plays a schedule of `fifo` from a later slot on, or never."""

    def __init__(self, row, start):
        self.row, self.first = row, start

    def start(self, environment):
        self.name = None

    def step(self, slot, arrivals):
        for job in arrivals:
            self.name = job.name
        if slot != self.first:
            return NOTHING
        length = self.row["to"] - self.row["from"]
        return Decision({self.name: [self.row | {"from": slot, "to": slot + length}]})


@pytest.mark.parametrize("family", ["oasis", "batchsched", "astraea", "edgecloud"])
def test_millions_of_slots_are_refused_before_anything_is_built(family):
    with pytest.raises(InputError, match="3000000 slots: must be at most 1000000 where no limit"):
        simulate(example(family, horizon=MILLIONS), "reoptimise")


def test_a_chunk_of_millions_of_slots_is_refused():
    data = example("edgecloud").to_dict()
    data["jobs"][0] |= {"update_slots": float(MILLIONS)}
    with pytest.raises(InputError, match=r"\d{7} slots: must be at most 1000000 where no limit"):
        simulate(parse_instance(data), "edgecloud")


def test_events_are_no_slots():
    data = example("gang").to_dict()
    data["horizon"] += 2 * MILLIONS
    for job in data["jobs"]:
        job["submit"] += MILLIONS
        job["deadline"] = None
    assert simulate(parse_instance(data), "fifo").violations == []


@pytest.mark.parametrize("limit", [time_limit(600), memory_limit(1 << 40)])
def test_what_somebody_asked_for_is_played(limit, monkeypatch):
    monkeypatch.setattr("hindsched.limits.UNASKED_SLOTS", 3)
    with pytest.raises(InputError, match="must be at most 3 where no limit"):
        simulate(example("oasis"), "fifo")
    with limit:
        assert simulate(example("oasis"), "fifo").violations == []


def test_slots_after_the_last_arrival_count(monkeypatch):
    instance = lone_job(epochs=200)
    last = simulate(instance, "drf").solution.completion(instance.jobs[0].name)
    assert last > instance.horizon + 5
    monkeypatch.setattr("hindsched.limits.UNASKED_SLOTS", instance.horizon)
    with pytest.raises(InputError, match=r"after its last arrival: .* must be at most"):
        simulate(instance, "drf")


def test_only_what_does_nothing_is_stuck(monkeypatch):
    """A job that runs for long is none, nor one that begins late; one that never begins is."""
    monkeypatch.setattr("hindsched.online.simulator.STEPS_WITHOUT_PROGRESS", 5)
    instance = lone_job(epochs=200)
    run = simulate(instance, "drf")
    row = run.solution.to_dict()["jobs"][0]["assignments"][0]
    assert row["to"] - row["from"] > instance.horizon + 5
    horizon = instance.horizon
    assert simulate(instance, Waits(row, start=5 * horizon)).violations == []
    with pytest.raises(SolveFailed, match="left jobs unfinished for"):
        simulate(instance, Waits(row, start=None))

"""mlbroker: data of later slots reaches only algorithms whose card says that they forecast."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from hindsched.instances.generators.registry import generate
from hindsched.online.mlbroker.baselines import Local
from hindsched.online.protocol import Capabilities
from hindsched.online.registry import algorithms, build_algorithm
from hindsched.online.simulator import simulate

WITHOUT = [
    name
    for name in algorithms("mlbroker")
    if build_algorithm("mlbroker", name).card.forecasts is None
]


class Noting(Local):
    """Writes down what it is shown and told."""

    def start(self, environment):
        super().start(environment)
        self.shown, self.news = {}, {}

    def told(self, slot, news):
        super().told(slot, news)
        self.news[slot] = news

    def step(self, slot, arrivals):
        self.shown |= {job.name: job.data_gb for job in arrivals}
        return super().step(slot, arrivals)


class Forecasting(Noting):
    card = Capabilities(forecasts="all of it")


def test_a_record_holds_the_first_slot_and_every_slot_tells_its_own():
    tiny = generate("mlbroker", "small", 1)
    noting = Noting()
    simulate(tiny, noting)
    assert any(len(job.data_gb) > 1 for job in tiny.jobs)
    for job in tiny.jobs:
        assert noting.shown[job.name] == job.data_gb[:1]
        told = [
            noting.news[slot][job.name]["data_gb"] for slot in range(job.arrival, job.departure + 1)
        ]
        assert np.array_equal(told, job.data_gb)
        others = set(noting.news) - set(range(job.arrival, job.departure + 1))
        assert not any(job.name in noting.news[slot] for slot in others)


def test_forecasts_are_shown_to_those_whose_card_says_so():
    tiny = generate("mlbroker", "small", 1)
    forecasting = Forecasting()
    simulate(tiny, forecasting)
    assert forecasting.shown == {job.name: job.data_gb for job in tiny.jobs}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_card_without_forecasts_is_told_nothing_of_later_slots(name):
    """Other data after the slot 2, the same decisions up to it."""
    tiny = generate("mlbroker", "small", 2)
    other = []
    for job in tiny.jobs:
        known = max(0, 3 - job.arrival)
        later = tuple(tuple(2.5 * gb + 1 for gb in row) for row in job.data_gb[known:])
        other.append(job.model_copy(update={"data_gb": job.data_gb[:known] + later}))
    decided = [
        {
            job: [row for row in rows if row["to"] <= 2]
            for job, rows in simulate(each, name, seed=1).solution.assignments().items()
        }
        for each in (tiny, tiny.with_jobs(tuple(other)))
    ]
    assert decided[0] == decided[1]


def test_a_program_is_told_the_slot_s_data(tmp_path):
    """The message of a step names every live job's data; the record holds one list."""
    log = tmp_path / "log"
    script = tmp_path / "logs.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        f"    open({str(log)!r}, 'a').write(line)\n"
        "    kind = json.loads(line)['type']\n"
        "    answers = {'hello': 'hello', 'start': 'ready', 'step': 'decision'}\n"
        "    print(json.dumps({'type': answers.get(kind, kind), 'protocol': 1}), flush=True)\n"
    )
    tiny = generate("mlbroker", "small", 1)
    with pytest.raises(Exception, match=r"\(8f\)|scheduler"):
        simulate(tiny, f"exec:{sys.executable} {script}")
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    step = next(one for one in steps if one.get("arrivals"))
    news = {one["job"]: one["data_gb"] for one in step["events"] if one["type"] == "job-news"}
    for job in step["arrivals"]:
        assert job["data_gb"] == [news[job["name"]]]

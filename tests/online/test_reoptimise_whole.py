"""Steps whose program is too large: plans over whole schedules, feasible and with a gap."""

import pytest

import hindsched as hs
from hindsched.errors import InputError
from hindsched.online.engines import reoptimise
from hindsched.online.oasis import algorithms as of_oasis

SIZES = {
    "oasis": {"jobs": 10, "horizon": 10},
    "batchsched": {"jobs": 6, "servers": 3},
    "astraea": {"jobs": 8, "horizon": 12},
}


@pytest.mark.parametrize("family", SIZES)
def test_large_steps_are_nearly_as_good_as_the_program_and_say_their_gap(family, monkeypatch):
    instance = hs.generate(family, seed=1, **SIZES[family])
    exact = hs.simulate(instance, "reoptimise")
    monkeypatch.setattr(reoptimise, "MOST_COLUMNS", -1)
    monkeypatch.setattr(of_oasis, "MOST_PLACES", -1)
    run = hs.simulate(instance, "reoptimise")
    assert run.violations == []
    assert run.objective == pytest.approx(exact.objective, rel=0.15)
    assert len(run.report["gaps"]) == run.report["solves"] > 1
    assert all(0 <= step["gap"] < 1 for step in run.report["gaps"])


@pytest.mark.parametrize("family", hs.families())
def test_a_time_limit_bounds_each_solve(family):
    if "reoptimise" not in hs.algorithms(family):
        return
    instance = hs.generate(family, preset="small", seed=0)
    run = hs.simulate(instance, "reoptimise", settings={"time_limit": 5.0})
    assert run.violations == []
    assert run.report["seconds_a_solve"] == 5.0
    with pytest.raises(InputError, match="time_limit"):
        hs.simulate(instance, "reoptimise", settings={"time_limit": 0})

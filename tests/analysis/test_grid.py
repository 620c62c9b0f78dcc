"""A sweep over a grid of settings."""

import pytest

import hindsched as hs
from hindsched.errors import InputError

QUICK = {"seeds": 1, "method": "bound", "time_limit": 1, "progress": False}


def test_every_combination_is_a_row_with_its_settings():
    grid = {"jobs": [2, 3], "horizon": [6, 7]}
    frame = hs.sweep("oasis", grid, ["oasis", "fifo"], instances=2, first_instance=5, **QUICK)
    assert len(frame) == 2 * 2 * 2 * 2
    assert frame["instance"].nunique() == 8
    assert set(frame["instance_seed"]) == {5, 6}
    one = frame[(frame["jobs"] == 3) & (frame["horizon"] == 7) & (frame["instance_seed"] == 6)]
    direct = hs.generate("oasis", seed=6, jobs=3, horizon=7)
    run = hs.simulate(direct, "oasis")
    own = one[one["algorithm"] == "oasis"]["objective"].item()
    assert own == pytest.approx(run.objective)
    assert (frame["ratio_lower"].dropna() >= 1 - 1e-9).all()


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        ({"colour": [1]}, {}, "set.colour"),
        ({"jobs": []}, {}, "grid.jobs"),
        ({"jobs": "12"}, {}, "grid.jobs"),
        ({"jobs": [1]}, {"instances": 0}, "instances"),
    ],
)
def test_what_cannot_be_swept_is_named(grid, options, message):
    with pytest.raises(InputError, match=message):
        hs.sweep("oasis", grid, ["fifo"], **options, **QUICK)

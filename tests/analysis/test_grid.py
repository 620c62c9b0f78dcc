"""A sweep over a grid of settings."""

import re

import numpy as np
import pandas as pd
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


def test_values_may_be_of_numpy_and_pandas():
    grid = {"jobs": np.array([2, 3]), "servers": pd.Series([3]), "horizon": range(4, 5)}
    frame = hs.sweep(
        "oasis", grid, ["fifo"], instances=np.int64(1), seeds=np.int64(1), method="bound",
        time_limit=1, progress=False,
    )  # fmt: skip
    assert frame[["jobs", "servers", "horizon"]].values.tolist() == [[2, 3, 4], [3, 3, 4]]


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"instnces": 2}, "did you mean instances?"),
        ({"tim_limit": 2}, "did you mean time_limit?"),
        ({"workrs": 2}, "did you mean workers?"),
        ({"instances": 1.5}, "must be at least 1, a whole number"),
        ({"seeds": True}, "must be at least 1, a whole number"),
    ],
)
def test_an_option_that_is_wrong_is_named_with_the_closest(options, hint):
    with pytest.raises(InputError, match=f"^{next(iter(options))}: .*{re.escape(hint)}$"):
        hs.sweep("oasis", {"jobs": [2]}, ["fifo"], **options)
    with pytest.raises(InputError, match="did you mean jobs"):
        hs.sweep("oasis", {"jbs": [2]}, ["fifo"])


@pytest.mark.parametrize("seed", [1.5, True, "1", -1])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match=r"^seed: .*must be at least 0, a whole number"):
        hs.generate("oasis", seed=seed)

"""Utilities at many completions at once are those at one, to the last bit."""

import numpy as np
import pytest

from hindsched.instances.base import LinearUtility, PowerUtility, SigmoidUtility


@pytest.mark.parametrize(
    "utility",
    [
        LinearUtility(slope=-0.3, intercept=127.3),
        LinearUtility(slope=-0.1, intercept=30.000000000000004),  # the two terms cancel at 300
        PowerUtility(scale=421.7, exponent=1.37),
        SigmoidUtility(priority=7.3, decay=0.71, target=12.0),
    ],
)
def test_many_completions_are_each(utility):
    completions = np.arange(1.0, 601.0)
    found = utility.values(completions).tolist()
    assert found == [utility.value(completion) for completion in range(1, 601)]
    assert utility.values(completions[:0]).size == 0

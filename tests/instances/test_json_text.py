"""Indented JSON is letter by letter what Python's own encoder writes."""

import json
import math
from collections import OrderedDict
from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.json_text import json_text


class Colour(IntEnum):
    RED = 1


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
DATA = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
)


@given(DATA, st.sampled_from([None, 1, 2, 4]))
def test_the_text_is_that_of_python(data, indent):
    assert json_text(data, indent) == json.dumps(data, indent=indent, ensure_ascii=False)


@pytest.mark.parametrize(
    "data",
    [
        {0: [], 2.5: {"a": [1]}, None: {}, True: [[]]},
        {1: 2, None: 3},
        OrderedDict(a=OrderedDict(b=1), c=()),
        [np.float64(0.1), math.nan, Colour.RED, [Colour.RED]],
        {"ü\n": ["ö", "\ud800", {"\x00": -0.0}]},
        [[[[[[1, "[,]"]]]]]],
    ],
)
def test_odd_values_are_written_as_python_writes_them(data):
    assert json_text(data) == json.dumps(data, indent=1, ensure_ascii=False)


@pytest.mark.parametrize("data", [[object()], {"a": {1j}}, {(1, 2): [[]]}])
def test_what_is_no_json_is_refused_as_python_refuses_it(data):
    with pytest.raises(TypeError):
        json_text(data)

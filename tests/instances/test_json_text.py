"""Indented JSON is letter by letter what Python's own encoder writes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.json_text import json_text

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
DATA = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
)


@given(DATA, st.sampled_from([None, 1, 2, 4]))
def test_the_text_is_that_of_python(data, indent):
    assert json_text(data, indent) == json.dumps(data, indent=indent, ensure_ascii=False)


@pytest.mark.parametrize("data", [[object()], {"a": {1j}}, {(1, 2): [[]]}])
def test_what_is_no_json_is_refused_as_python_refuses_it(data):
    with pytest.raises(TypeError):
        json_text(data)

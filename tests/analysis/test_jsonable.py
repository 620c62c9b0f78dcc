"""What cannot be written in JSON becomes null; what has no meaning is refused."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from hindsched.analysis.jsonable import jsonable
from hindsched.solvers.door.status import Status


def test_numpy_enums_and_infinities():
    data = jsonable(
        {
            "count": np.int64(3),
            "share": np.float64(0.5),
            "flag": np.bool_(True),
            "array": np.array([[1.0, math.inf]]),
            "nothing": math.nan,
            "status": Status.OPTIMAL,
            "path": Path("a/b"),
            "set": {"b", "a"},
            1: (2, 3),
        }
    )
    assert json.loads(json.dumps(data, allow_nan=False)) == {
        "count": 3,
        "share": 0.5,
        "flag": True,
        "array": [[1.0, None]],
        "nothing": None,
        "status": "optimal",
        "path": "a/b",
        "set": ["a", "b"],
        "1": [2, 3],
    }


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="object has no JSON form"):
        jsonable({"x": object()})

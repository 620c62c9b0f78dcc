"""Names of array types, the same everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Amounts, prices, costs."""
Ints = NDArray[np.int64]
"""Counts, slots, positions."""
Bools = NDArray[np.bool_]
"""Which of some things."""

"""What numba does counts against no limit, is watched where kernels load, is not cut off."""

import importlib
import sys
from pathlib import Path

import pytest

from hindsched import limits
from hindsched.limits import OutOfTime, time_limit


def test_numba_is_not_stopped_half_way(tmp_path, monkeypatch):
    """A registry of numba's whose reading was stopped raises at every later compilation."""
    (tmp_path / "slow_to_register.py").write_text(
        "import time\ndone = []\ndef register():\n    end = time.monotonic() + 0.4\n"
        "    while time.monotonic() < end:\n        pass\n    done.append(True)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(limits, "_numba_folder", lambda: f"{tmp_path}/")
    slow = importlib.import_module("slow_to_register")

    def register_and_go_on():
        slow.register()
        while True:
            pass

    with pytest.raises(OutOfTime), time_limit(0.05):
        register_and_go_on()
    assert slow.done
    del sys.modules["slow_to_register"]


def test_the_folder_of_numba_is_known():
    import numba

    assert Path(numba.__file__).is_relative_to(limits._numba_folder())

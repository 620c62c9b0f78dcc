"""Where compiled kernels are kept when nothing that numba looks for can be written."""

import os
import stat
from pathlib import Path

import numba
import pytest

from hindsched import kernel_cache as cache


@pytest.fixture
def chosen(monkeypatch, tmp_path):
    """Choose a folder where only the temporary one can be written; numba's own is restored."""

    def choose(writable=()):
        real = cache._can_be_written
        monkeypatch.setattr(
            cache, "_can_be_written", lambda folder: folder in writable and real(folder)
        )
        monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
        monkeypatch.setattr(numba.config, "CACHE_DIR", "")
        cache.ensure_cache_folder()
        return numba.config.CACHE_DIR

    return choose


def test_numba_keeps_its_choice_where_it_has_one(chosen):
    assert chosen(writable=[Path(cache.__file__).parent / "__pycache__"]) == ""


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users here")
def test_a_folder_of_the_user_s_own_takes_its_place(chosen, tmp_path):
    folder = tmp_path / f"hindsched-{os.getuid()}"
    assert chosen() == str(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert chosen() == str(folder)  # the same in the next run


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users here")
def test_a_folder_that_others_can_write_is_not_trusted(chosen, tmp_path):
    folder = tmp_path / f"hindsched-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert chosen() != str(folder)
    assert stat.S_IMODE(Path(chosen()).stat().st_mode) == 0o700

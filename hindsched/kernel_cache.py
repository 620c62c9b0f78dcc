"""Where compiled kernels are kept, also where neither the package nor the home can be written."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parent / "solvers" / "kernels"
"""Where the kernels' sources are."""
_told = threading.Event()


def stamps_of(sources: Iterable[Path]) -> tuple[tuple[str, int, int], ...]:
    """Files with the times and sizes that tell whether they changed."""
    facts = [(source, source.stat()) for source in sorted(sources)]
    return tuple((str(source), stat.st_mtime_ns, stat.st_size) for source, stat in facts)


def ensure_cache_folder() -> None:
    """Give numba a folder of its own if all that it would look for are read-only.

    Numba refuses to compile a cached function if it can write nowhere: a package installed by
    another user, run without a writable home. The folder is below the system's temporary one and
    the user's alone, for what is read back from a cache is run.
    """
    candidates = [Path(__file__).parent / "__pycache__", _user_cache()]
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        candidates.append(Path(given))
    if any(_can_be_written(folder) for folder in candidates):
        return
    import numba

    numba.config.CACHE_DIR = str(_own_folder())


def keep_kernels_if_possible() -> None:
    """Let numba go on where it cannot write a kernel to its cache: a full disk, a limit of size.

    It would give up the kernel, compiled as it is, with an error that names no file. The first such
    error is a warning; the kernel is compiled again in the next process.
    """
    from numba.core import caching

    save: Any = caching.IndexDataCacheFile.save

    def save_if_possible(self: object, key: object, data: object) -> None:
        try:
            save(self, key, data)
        except OSError as error:
            if not _told.is_set():
                warnings.warn(f"compiled kernels are not kept: {error}", stacklevel=2)
            _told.set()

    if save.__name__ != save_if_possible.__name__:
        caching.IndexDataCacheFile.save = save_if_possible


def cache_folder() -> Path:
    """A folder for what belongs to compiled kernels, one that can be written if there is any."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(given) if given else _user_cache()
    return folder if _can_be_written(folder) else _own_folder()


def _user_cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return Path(given) if given else Path(os.path.expanduser("~/.cache"))


def _can_be_written(folder: Path) -> bool:
    """Whether a folder, or what of its parents exists, can be written."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _own_folder() -> Path:
    """A folder that nobody else can write, the same in every run where that can be told."""
    if not hasattr(os, "getuid"):
        return Path(tempfile.mkdtemp(prefix="hindsched-"))
    folder = Path(tempfile.gettempdir()) / f"hindsched-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if is_ours and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return folder
    return Path(tempfile.mkdtemp(prefix="hindsched-"))

"""How kernels are compiled: kept on disk, watched by the clock, without a way in for C.

Nobody calls a kernel from C, and numba would compile that way in for each: a tenth of its time.
"""

from __future__ import annotations

from functools import partial

from numba import njit

from hindsched.compiler_clock import load_compiler
from hindsched.kernel_cache import ensure_cache_folder

ensure_cache_folder()
load_compiler()
compiled = partial(njit, cache=True, no_cfunc_wrapper=True)

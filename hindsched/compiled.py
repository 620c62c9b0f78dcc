"""How kernels are compiled: kept on disk, watched by the clock, without a way in for C.

A kernel that was kept is as old as its file for numba, whatever became of the parts and constants
that it took from other files: here it is as old as all kernels' files that it may take from.

Nobody calls a kernel from C, and numba would compile that way in for each: a tenth of its time.

What only kernels call is a part of them: each takes its parts in and optimises them with its own
code. Numba would optimise every part on its own before and make machine code of it, which nobody
runs: up to a third of the time that a family compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Generic, TypeVar, cast

from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, StateDict
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.typed_passes import AnnotateTypes
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from hindsched.compiler_clock import load_compiler
from hindsched.kernel_cache import KERNELS, ensure_cache_folder, stamps_of

R = TypeVar("R")
__all__ = ["compiled", "intrinsic", "make_array", "part_of_kernel", "sources_of", "types"]


class _CodeToTakeIn(JITCodeLibrary):
    """Code that its callers copy and optimise, and of which no machine code is made."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Nowhere: `PartOfKernel` sees to it that nobody goes there."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> _CodeToTakeIn:
        """Who is asked to set the environment of machine code, of which there is none."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Do nothing."""


@register_pass(mutates_CFG=False, analysis_only=True)
class _LowerToTakeIn(LoweringPass):
    """Have the pass behind this one put its code into a `_CodeToTakeIn`."""

    _name = "lower_to_take_in"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: StateDict) -> bool:
        state.library = _CodeToTakeIn(state.targetctx.codegen(), state.func_id.func_qualname)
        return False


class _PartCompiler(CompilerBase):
    """Numba's own passes, and one that says where their code goes."""

    def define_pipelines(self) -> list[PassManager]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_LowerToTakeIn, AnnotateTypes)  # which is before code is made
        passes.finalize()
        return [passes]


class PartOfKernel(Generic[R]):
    """A function that only kernels call; called from Python it is a kernel like any other.

    It must not print, raise values that it works out, or call itself: a kernel that was compiled in
    this process has no environment for its parts.

    Parameters
    ----------
    function : callable
        What to compile.
    options
        Of `numba.njit`.
    """

    def __init__(self, function: Callable[..., R], **options: object) -> None:
        self.py_func = function
        self._options = options
        self._part = njit(
            pipeline_class=_PartCompiler,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            **options,
        )(function)
        update_wrapper(self, function)

    @property
    def _numba_type_(self) -> object:
        """What numba takes this for where a kernel calls it."""
        return self._part._numba_type_

    @cached_property
    def _alone(self) -> Callable[..., R]:
        return compiled(**self._options)(self.py_func)

    def __call__(self, *args: object, **kwargs: object) -> R:
        """Call it as a kernel of its own, compiled at the first call."""
        return self._alone(*args, **kwargs)


def part_of_kernel(**options: object) -> Callable[[Callable[..., R]], PartOfKernel[R]]:
    """Decorate a function that only kernels call: see `PartOfKernel`.

    Parameters
    ----------
    options
        Of `numba.njit`.
    """

    def decorate(function: Callable[..., R]) -> PartOfKernel[R]:
        return PartOfKernel(function, **options)

    return decorate


@cache
def sources_of(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Files from which the kernels of a folder take their parts, with their times and sizes.

    These are the files beside it, those of kernels of all families, and those of its own family,
    after which the folder is named.
    """
    folders = (folder, KERNELS, KERNELS / folder.name)
    return stamps_of({source for each in folders for source in each.glob("*.py")})


def compiled(**options: object) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorate a kernel: compiled at its first call, and kept until one of its sources changes.

    Parameters
    ----------
    options
        Of `numba.njit`.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        kernel = njit(cache=True, no_cfunc_wrapper=True, **options)(function)
        with suppress(AttributeError):  # where nothing is compiled
            kept = kernel._cache._cache_file
            kept._source_stamp = sources_of(Path(function.__code__.co_filename).parent)
        return cast(Callable[..., R], kernel)

    return decorate


ensure_cache_folder()
load_compiler()

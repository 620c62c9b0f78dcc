"""Compiled inner loops, named for what they compute, each with a numpy twin."""

from hindsched.kernel_cache import ensure_cache_folder

ensure_cache_folder()

"""Compiled kernels of `oasis`."""

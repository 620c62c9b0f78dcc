"""Compiled kernels of `mlbroker`."""

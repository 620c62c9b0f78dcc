"""Compiled kernels of `astraea`."""

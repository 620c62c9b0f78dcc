"""Compiled kernels of `edgecloud`."""

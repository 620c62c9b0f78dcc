"""Compiled kernels of `batchsched`."""

"""Compiled kernels of the families whose jobs run in one window."""

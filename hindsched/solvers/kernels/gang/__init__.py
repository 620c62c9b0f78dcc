"""Compiled kernels of gang: policies event by event, schedules by order, best responses."""

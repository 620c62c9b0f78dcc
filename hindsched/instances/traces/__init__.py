"""Loaders of real cluster traces, one module a format; the data stays where it is published."""

from hindsched.instances.traces.loading import LOADERS, load_trace
from hindsched.instances.traces.table import TraceTable, submit_slots

__all__ = ["LOADERS", "TraceTable", "load_trace", "submit_slots"]

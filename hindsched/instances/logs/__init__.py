"""Logs of other people's schedulers, one module a format, read into one neutral `Log`."""

from hindsched.instances.logs.api import FORMATS, find_format, read_log
from hindsched.instances.logs.capacity import Capacity
from hindsched.instances.logs.frame import read_frame
from hindsched.instances.logs.log import Log
from hindsched.instances.logs.notes import Note, Notes
from hindsched.instances.open_compressed import Limits

__all__ = [
    "FORMATS",
    "Capacity",
    "Limits",
    "Log",
    "Note",
    "Notes",
    "find_format",
    "read_frame",
    "read_log",
]

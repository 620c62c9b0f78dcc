"""Searches for schedules, guided by prices."""

"""Somebody else's schedule, judged: is it possible, and how far from the best possible."""

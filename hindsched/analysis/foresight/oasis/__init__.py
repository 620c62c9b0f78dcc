"""Futures of oasis: the linear program of a scenario."""

"""Compiled inner loops, named for what they compute, each with a numpy twin."""

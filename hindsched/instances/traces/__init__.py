"""Loaders of real cluster traces, one module a format; the data stays where it is published."""

"""A referee for schedulers that machines write: a certified score, however hard they cheat."""

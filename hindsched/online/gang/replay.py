"""Whole traces replayed by compiled policies; see ``solvers/methods/gang/replay.py``."""

from hindsched.solvers.methods.gang.replay import POLICIES, Policy, replay

__all__ = ["POLICIES", "Policy", "replay"]

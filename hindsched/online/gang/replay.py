"""Whole traces replayed by compiled policies; see ``solvers/families/gang/replay.py``."""

from hindsched.solvers.families.gang.replay import POLICIES, Policy, replay

__all__ = ["POLICIES", "Policy", "replay"]

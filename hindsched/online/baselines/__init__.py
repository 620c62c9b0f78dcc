"""The baselines that the papers' evaluations name, one module a baseline."""

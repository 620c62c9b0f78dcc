"""The simulator, the papers' online algorithms and the baselines."""

"""Solutions of `astraea`: what was decided, checked from the definition."""

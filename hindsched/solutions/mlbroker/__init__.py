"""Solutions of `mlbroker`: what was decided, checked from the definition."""

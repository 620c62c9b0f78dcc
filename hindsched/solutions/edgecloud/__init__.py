"""Solutions of `edgecloud`: what was decided, checked from the definition."""

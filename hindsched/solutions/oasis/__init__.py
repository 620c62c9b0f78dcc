"""Solutions of `oasis`: what was decided, checked from the definition."""

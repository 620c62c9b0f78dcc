"""Solutions of `batchsched`: what was decided, checked from the definition."""

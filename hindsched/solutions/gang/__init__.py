"""Solutions of gang."""

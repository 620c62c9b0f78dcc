"""Spaces of instances that a search may roam: which fields of a file vary, within which ranges."""

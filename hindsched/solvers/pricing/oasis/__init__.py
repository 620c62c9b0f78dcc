"""Exact pricing oracles of `oasis`'s blocks."""

"""Exact pricing oracles of `mlbroker`'s blocks."""

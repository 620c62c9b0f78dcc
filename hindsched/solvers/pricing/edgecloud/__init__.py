"""Exact pricing oracles of `edgecloud`'s blocks."""

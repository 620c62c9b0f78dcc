"""Exact pricing oracles of `astraea`'s blocks."""

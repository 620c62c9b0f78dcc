"""Exact pricing oracles of `batchsched`'s blocks."""

"""Pricing oracles of gang."""

"""Pricing oracles: the exact best response of one block to prices, one module a family."""

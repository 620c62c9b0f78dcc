"""Competitive ratios, sweeps, result store, reports and plots."""

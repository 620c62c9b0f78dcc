"""Engines that bound an offline optimum and certify the bound."""

"""Audits: anybody's schedule judged."""

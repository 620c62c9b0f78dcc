"""Audits: anybody's schedule of rigid jobs judged."""

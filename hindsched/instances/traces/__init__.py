"""Logs and traces of clusters: one neutral frame, one short reader a format."""

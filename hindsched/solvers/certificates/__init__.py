"""Certificates: made, written, checked, explained."""
